// The part of JSON Schema that forms are made from.
import type { Json } from "../schema";

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  type?: string | string[];
  enum?: Json[];
  const?: Json;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  description?: string;
  format?: string;
  minimum?: number;
  maximum?: number;
  pattern?: string;
}

export type Control = "text" | "number" | "boolean" | "choice" | "object" | "array" | "json";

const deepest = 20;

/** Follows references, and looks through "this or null". */
export function resolve(root: Schema, schema: Schema): Schema {
  let s = schema;
  for (let i = 0; i < deepest; i++) {
    const of = (s.anyOf ?? s.oneOf)?.filter((o) => o.type !== "null");
    const target = s.$ref?.startsWith("#/$defs/") ? root.$defs?.[decodeURIComponent(s.$ref.slice(8))] : of?.length === 1 ? of[0] : undefined;
    if (!target) return s;
    s = { ...target, description: s.description ?? target.description };
  }
  return s;
}

/** Of a choice between text and other forms of it: text, unless the value has another form already. */
export function variant(root: Schema, schema: Schema, value: Json | undefined): Schema {
  const s = resolve(root, schema);
  const text = (s.anyOf ?? s.oneOf)?.find((o) => resolve(root, o).type === "string");
  return text && (value === undefined || typeof value === "string") ? { ...resolve(root, text), description: s.description } : s;
}

export function control(s: Schema): Control {
  const types = (Array.isArray(s.type) ? s.type : [s.type]).filter((t) => t !== "null");
  if (s.enum?.every((v) => typeof v === "string" || typeof v === "number")) return "choice";
  switch (types.length === 1 ? types[0] : undefined) {
    case "string": return "text";
    case "integer":
    case "number": return "number";
    case "boolean": return "boolean";
    case "object": return s.properties && Object.keys(s.properties).length > 0 ? "object" : "json";
    case "array": return s.items && typeof s.items === "object" ? "array" : "json";
    default: return "json";
  }
}

/** The least value of a schema: what is required, empty. */
export function blank(root: Schema, schema: Schema, depth = 0): Json {
  const s = variant(root, schema, undefined);
  if (s.const !== undefined) return s.const;
  switch (control(s)) {
    case "text": return "";
    case "number": return s.minimum ?? 0;
    case "boolean": return false;
    case "choice": return s.enum?.[0] ?? "";
    case "array": return [];
    case "json": return (Array.isArray(s.type) ? s.type : [s.type]).includes("object") ? {} : null;
    case "object": {
      if (depth > deepest) return {};
      const names = s.required ?? [];
      return Object.fromEntries(names.map((n) => [n, blank(root, s.properties?.[n] ?? {}, depth + 1)]));
    }
  }
}

/** The properties of an object, those that are required first. */
export function properties(s: Schema): { name: string; schema: Schema; required: boolean }[] {
  const required = new Set(s.required);
  const all = Object.entries(s.properties ?? {}).map(([name, schema]) => ({ name, schema, required: required.has(name) }));
  return [...all.filter((p) => p.required), ...all.filter((p) => !p.required)];
}
