// JSON Schema, as far as a plugin needs it: the type of the values that a schema describes, and a check of the common
// keywords. Keywords that it does not know are ignored; the host checks configurations against the whole schema.

import { isObject } from "./codec.js";

/** Schema is a JSON Schema. Any keyword may be written; check knows those listed here. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: { readonly [name: string]: Schema };
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema | boolean;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly [keyword: string]: unknown;
}

/** FromSchema is the type of the values that a schema describes, and any where the schema does not say. */
export type FromSchema<S> =
  S extends { enum: readonly (infer E)[] } ? E
  : S extends { const: infer C } ? C
  : S extends { type: "string" } ? string
  : S extends { type: "number" | "integer" } ? number
  : S extends { type: "boolean" } ? boolean
  : S extends { type: "null" } ? null
  : S extends { type: "array"; items: infer I } ? FromSchema<I>[]
  : S extends { type: "object"; properties: infer P } ? Members<P, S extends { required: readonly (infer R)[] } ? R : never>
  : any;

type Members<P, R> = { [N in keyof P as N extends R ? N : never]: FromSchema<P[N]> } & { [N in keyof P as N extends R ? never : N]?: FromSchema<P[N]> };

/** Mistake is what is wrong with a value; pointer (a JSON pointer) says where. */
export interface Mistake {
  pointer: string;
  message: string;
}

/** check returns the first mistake of a JSON value, or undefined. */
export function check(schema: Schema | boolean | undefined, value: unknown, pointer = ""): Mistake | undefined {
  if (schema === false) return { pointer, message: "is not allowed" };
  if (!isObject(schema)) return undefined;
  const wrong = (message: string): Mistake => ({ pointer, message });
  if (schema.type !== undefined) {
    const types = Array.isArray(schema.type) ? schema.type : [schema.type];
    if (!types.some((type) => isOf(type, value))) return wrong(`must be of type ${types.join(" or ")}`);
  }
  if (schema.enum && !schema.enum.some((allowed) => same(allowed, value))) return wrong(`must be one of ${JSON.stringify(schema.enum)}`);
  if ("const" in schema && !same(schema.const, value)) return wrong(`must be ${JSON.stringify(schema.const)}`);
  if (typeof value === "number" && !within(value, schema.minimum, schema.maximum)) return wrong(range("be", schema.minimum, schema.maximum));
  if (typeof value === "string" && !within([...value].length, schema.minLength, schema.maxLength)) {
    return wrong(range("have a length", schema.minLength, schema.maxLength));
  }
  if (Array.isArray(value)) {
    if (!within(value.length, schema.minItems, schema.maxItems)) return wrong(range("have a length", schema.minItems, schema.maxItems));
    if (schema.prefixItems !== undefined) return undefined; // items then means the others
    return first(value.keys(), (i) => check(schema.items, value[i], `${pointer}/${i}`));
  }
  return isObject(value) ? checkMembers(schema, value, pointer) : undefined;
}

function checkMembers(schema: Schema, value: Record<string, unknown>, pointer: string): Mistake | undefined {
  const known: Record<string, Schema> = schema.properties ?? {};
  // Which members are additional depends on keywords that are not looked at here.
  const other = schema.patternProperties === undefined ? schema.additionalProperties : undefined;
  const missing = schema.required?.find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) return { pointer, message: `must have ${JSON.stringify(missing)}` };
  return first(Object.keys(value), (name) => {
    const at = `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    return check(Object.hasOwn(known, name) ? known[name] : other, value[name], at);
  });
}

function isOf(type: string, value: unknown): boolean {
  switch (type) {
    case "null": return value === null;
    case "array": return Array.isArray(value);
    case "object": return isObject(value);
    case "integer": return Number.isInteger(value);
  }
  return typeof value === type;
}

function same(a: unknown, b: unknown): boolean {
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, i) => same(item, b[i]));
  if (!isObject(a)) return a === b;
  return isObject(b) && Object.keys(a).length === Object.keys(b).length && Object.keys(a).every((name) => Object.hasOwn(b, name) && same(a[name], b[name]));
}

const within = (n: number, least = -Infinity, most = Infinity) => n >= least && n <= most;

function range(verb: string, least?: number, most?: number): string {
  return `must ${verb} ${[least !== undefined && `at least ${least}`, most !== undefined && `at most ${most}`].filter(Boolean).join(" and ")}`;
}

function first<T, R>(items: Iterable<T>, look: (item: T) => R | undefined): R | undefined {
  for (const item of items) {
    const found = look(item);
    if (found !== undefined) return found;
  }
  return undefined;
}
