// The JSON form of the contract's messages, by the generated tables. Names are those of the wire without "_json";
// lengths of time are milliseconds. Decoding fills in every default; encoding checks types, because a frame that the
// host cannot read would end the session, and leaves defaults out.

import { type Kind, kindMessages, messages } from "./generated.js";

interface Field {
  wire: string;
  api: string;
  read: (value: any, sparse: boolean) => unknown;
  write: (value: any, where: string) => unknown;
}

interface Plan {
  fields: Field[];
  names: Set<string>;
}

type Reader = Field["read"];
type Writer = Field["write"];
type Fields = Record<string, any>;

const plans = new Map<string, Plan>();

/**
 * decode returns a message as handlers see it, with every default. With sparse it has only what the wire has, in plain
 * objects, which is easier to compare.
 */
export function decode(message: string, wire: unknown, sparse = false): any {
  const from: Fields = isObject(wire) ? wire : {};
  if (message === "Text") {
    return { value: from.value ?? "", withheld: from.withheld_chars != null, chars: integer(from.withheld_chars) };
  }
  const out: Fields = {};
  for (const field of planOf(message).fields) {
    if (!sparse || from[field.wire] !== undefined) out[field.api] = field.read(from[field.wire], sparse);
  }
  return out;
}

/** decodeContribution returns a contribution as encode takes it, without defaults. */
export function decodeContribution(wire: Fields): any {
  const kind = Object.keys(kindMessages).find((name) => wire[name] != null) as Kind;
  return { kind, ...decode("Contribution", wire, true), ...decode(kindMessages[kind], wire[kind], true) };
}

/** encode returns the wire form of a message, or throws a TypeError that names the field. */
export function encode(message: string, value: unknown): Fields {
  if (message === "Contribution") return encodeContribution(value);
  if (message === "OnFailure") value = onFailure(value);
  if (message === "Text" || message === "Preview") value = text(message, value);
  if (!isObject(value)) throw new TypeError(`want a ${message} (an object), got ${nameOf(value)}`);
  const plan = planOf(message);
  for (const name in value) {
    if (!plan.names.has(name)) throw new TypeError(`${message}.${name}: there is no such field`);
  }
  return write(plan, value, message);
}

function encodeContribution(value: unknown): Fields {
  if (!isObject(value)) throw new TypeError(`want a contribution (an object), got ${nameOf(value)}`);
  const message = Object.hasOwn(kindMessages, String(value.kind)) && kindMessages[value.kind as Kind];
  if (!message) throw new TypeError(`want a contribution with a known kind, got ${JSON.stringify(value.kind)}`);
  const [head, body] = [planOf("Contribution"), planOf(message)];
  for (const name in value) {
    if (name !== "kind" && !head.names.has(name) && !body.names.has(name)) throw new TypeError(`${message}.${name}: there is no such field`);
  }
  const out = write(head, value, message);
  out[value.kind as Kind] = write(body, value, message);
  return out;
}

function write(plan: Plan, value: Fields, message: string): Fields {
  const out: Fields = {};
  for (const field of plan.fields) {
    const encoded = field.write(value[field.api], `${message}.${field.api}`);
    if (encoded !== undefined) out[field.wire] = encoded;
  }
  return out;
}

/** typeOf returns the type of a message's field by its name in the API, or undefined. */
export function typeOf(message: string, api: string): string | undefined {
  const field = planOf(message).fields.find((field) => field.api === api);
  return field && messages[message]![field.wire];
}

export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** integer reads a whole number of the host: a JSON number, or a decimal string as protojson prints it. */
export function integer(value: unknown): number {
  const n = typeof value === "string" && value !== "" ? Number(value) : (value ?? 0);
  if (!Number.isSafeInteger(n)) throw new TypeError(`want a whole number, got ${nameOf(value)}`);
  return n as number;
}

function planOf(message: string): Plan {
  let plan = plans.get(message);
  if (!plan) {
    const fields = Object.entries(messages[message]!).map(([wire, type]) => fieldOf(wire, type));
    plan = { fields, names: new Set(fields.map((field) => field.api)) };
    plans.set(message, plan);
  }
  return plan;
}

function fieldOf(wire: string, type: string): Field {
  const shape = /^(?:(list|map) )?(\w+)(\?)?$/.exec(type)!;
  const ms = wire.endsWith("_ns");
  const [read, write] = ms ? milliseconds : scalarOrMessage(shape[2]!);
  const api = ms ? `${wire.slice(0, -3)}_ms` : wire.endsWith("_json") ? wire.slice(0, -5) : wire;
  if (shape[1] === "list") return { wire, api, read: listReader(read), write: listWriter(write) };
  if (shape[1] === "map") return { wire, api, read: mapReader(read), write: mapWriter(write) };
  if (shape[3]) return { wire, api, read: (v, sparse) => (v == null ? undefined : read(v, sparse)), write: maybe(write) };
  return { wire, api, read, write: write === writeJSON ? writeJSON : withoutDefault(write) };
}

function scalarOrMessage(type: string): [Reader, Writer] {
  switch (type) {
    case "string":
      return [(v) => v ?? "", (v, where) => check(typeof v === "string", v, "a string", where)];
    case "bool":
      return [(v) => v ?? false, (v, where) => check(typeof v === "boolean", v, "true or false", where)];
    case "int":
      return [(v) => integer(v), (v, where) => check(Number.isSafeInteger(v), v, "a whole number", where)];
    case "number":
      return [(v) => v ?? 0, (v, where) => check(Number.isFinite(v), v, "a number", where)];
    case "json":
      return [(v) => v, writeJSON];
  }
  return [(v, sparse) => decode(type, v, sparse), (v) => encode(type, v)];
}

const milliseconds: [Reader, Writer] = [
  (v) => integer(v) / 1e6,
  (v, where) => Math.round(check(Number.isFinite(v) && Math.abs(v) < 9e9, v, "a number of milliseconds", where) * 1e6),
];

function writeJSON(value: unknown): unknown {
  return value;
}

function maybe(write: Writer): Writer {
  return (v, where) => (v == null ? undefined : write(v, where));
}

function withoutDefault(write: Writer): Writer {
  return (v, where) => {
    if (v == null) return undefined;
    const encoded = write(v, where);
    return encoded === "" || encoded === 0 || encoded === false ? undefined : encoded;
  };
}

function listReader(read: Reader): Reader {
  return (v, sparse) => (Array.isArray(v) ? v.map((item) => read(item, sparse)) : []);
}

function listWriter(write: Writer): Writer {
  return (v, where) => {
    if (v == null) return undefined;
    check(Array.isArray(v), v, "a list", where);
    return v.length > 0 ? Array.from(v, (item) => write(item, where)) : undefined;
  };
}

// A map has no prototype, so that a name such as "constructor" is absent unless the host sent it.
function mapReader(read: Reader): Reader {
  return (v, sparse) => {
    const entries = Object.entries(isObject(v) ? v : {}).map(([name, item]) => [name, read(item, sparse)]);
    return sparse ? Object.fromEntries(entries) : Object.setPrototypeOf(Object.fromEntries(entries), null);
  };
}

function mapWriter(write: Writer): Writer {
  return (v, where) => {
    if (v == null) return undefined;
    check(isObject(v), v, "an object", where);
    const entries = Object.entries(v).filter(([, item]) => item !== undefined);
    return entries.length > 0 ? Object.fromEntries(entries.map(([name, item]) => [name, write(item, `${where}.${name}`)])) : undefined;
  };
}

function check(ok: boolean, value: any, want: string, where: string): any {
  if (!ok) throw new TypeError(`${where}: want ${want}, got ${nameOf(value)}`);
  return value;
}

function nameOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : typeof value === "number" || typeof value === "bigint" ? `the number ${value}` : `a value of type ${typeof value}`;
}

/** text takes the forms of a fixture too: a string, or {"withheld": true, "chars": 12}. */
function text(message: string, v: any): unknown {
  const length = (s: string) => [...s].length;
  if (message === "Text") {
    if (typeof v === "string") return { value: v };
    return v?.withheld ? { withheld_chars: v.chars ?? 0 } : { value: v?.value ?? "" };
  }
  if (typeof v === "string") return { text: v, original_length: length(v) };
  return v?.withheld ? { withheld: true, original_length: v.chars ?? v.original_length ?? 0 } : v;
}

function onFailure(v: any): unknown {
  if (typeof v === "string") return { default: v };
  const { default: word, ...by_cause } = isObject(v) ? v : { default: v };
  return { default: word, by_cause };
}
