// A form that is made from a JSON Schema.
import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";
import type { Json } from "../schema";
import { JsonField } from "../ui/json";
import { blank, control, properties, variant, type Schema } from "./schema";

type Change = (value: Json | undefined) => void;

interface FieldProps {
  root: Schema;
  schema: Schema;
  name: string;
  required: boolean;
  /** One of an array, which needs no mark that it is required. */
  item?: boolean;
  value: Json | undefined;
  change: Change;
}

const isObject = (v: Json | undefined): v is { [name: string]: Json } => v !== null && typeof v === "object" && !Array.isArray(v);

/** The fields of an object's schema. */
export function Fields({ root, schema, value, change }: { root: Schema; schema: Schema; value: Json | undefined; change: Change }): JSX.Element {
  const now = isObject(value) ? value : {};
  const set = (name: string, v: Json | undefined): void => {
    const next = { ...now };
    if (v === undefined) delete next[name];
    else next[name] = v;
    change(next);
  };
  const all = properties(schema);
  if (all.length === 0) return <p class="quiet">The phase has no input.</p>;
  return <div class="fields">{all.map((p) => <Field key={p.name} root={root} schema={p.schema} name={p.name} required={p.required} value={now[p.name]} change={(v) => set(p.name, v)} />)}</div>;
}

function Field(p: FieldProps): JSX.Element {
  const s = variant(p.root, p.schema, p.value);
  const own = { ...p, schema: s };
  switch (control(s)) {
    case "object": return <ObjectField {...own} />;
    case "array": return <ArrayField {...own} />;
    case "json": return <JsonField label={p.name + " (JSON)" + (p.required ? " *" : "")} value={p.value} change={p.change} rows={2} />;
    default: return <Simple {...own} />;
  }
}

function Simple(p: FieldProps): JSX.Element {
  const id = useId();
  const about = p.schema.description;
  return (
    <div class="field">
      <label for={id}>{p.name}{p.required && !p.item && <span class="required"> required</span>}</label>
      <Control id={id} {...p} />
      {about && <small class="quiet" id={id + "d"}>{about}</small>}
    </div>
  );
}

function Control({ id, schema: s, required, value, change }: FieldProps & { id: string }): JSX.Element {
  const more = { id, "aria-describedby": s.description ? id + "d" : undefined };
  switch (control(s)) {
    case "number":
      return <input {...more} type="number" step="any" min={s.minimum} max={s.maximum} value={typeof value === "number" ? value : ""} onInput={(e) => change(e.currentTarget.value === "" ? undefined : e.currentTarget.valueAsNumber)} />;
    case "boolean":
      return <Select more={more} options={[false, true]} required={required} value={value} change={change} />;
    case "choice":
      return <Select more={more} options={s.enum ?? []} required={required} value={value} change={change} />;
    default: {
      const edit = (text: string): void => change(text === "" && !required ? undefined : text);
      return <textarea {...more} class="grows" rows={1} value={typeof value === "string" ? value : ""} placeholder={s.format === "date-time" ? "2026-01-31T12:00:00Z" : undefined} onInput={(e) => edit(e.currentTarget.value)} />;
    }
  }
}

function Select({ more, options, required, value, change }: { more: object; options: Json[]; required: boolean; value: Json | undefined; change: Change }): JSX.Element {
  const at = options.findIndex((o) => o === value);
  return (
    <select {...more} value={String(at)} onChange={(e) => change(options[Number(e.currentTarget.value)])}>
      {(!required || at < 0) && <option value="-1">–</option>}
      {options.map((o, i) => <option key={i} value={String(i)}>{String(o)}</option>)}
    </select>
  );
}

function Group({ name, required, about, actions, children }: { name: string; required: boolean; about?: string; actions: ComponentChildren; children?: ComponentChildren }): JSX.Element {
  return (
    <fieldset class="group">
      <legend>{name}{required && <span class="required"> required</span>} {actions}</legend>
      {about && <small class="quiet">{about}</small>}
      {children}
    </fieldset>
  );
}

/** An object that is absent has no fields yet, so that schemas that contain themselves end. */
function ObjectField(p: FieldProps): JSX.Element {
  const there = isObject(p.value);
  const toggle = (): void => p.change(there ? undefined : blank(p.root, p.schema));
  const action = (!there || !p.required) && <button type="button" class="plain" onClick={toggle} aria-label={(there ? "Remove " : "Add ") + p.name}>{there ? "Remove" : "Add"}</button>;
  return (
    <Group name={p.name} required={p.required && !p.item} about={p.schema.description} actions={action}>
      {there && <Fields root={p.root} schema={p.schema} value={p.value} change={p.change} />}
    </Group>
  );
}

function ArrayField(p: FieldProps): JSX.Element {
  const list = Array.isArray(p.value) ? p.value : [];
  const items = p.schema.items ?? {};
  const put = (next: Json[]): void => p.change(next.length === 0 && !p.required ? undefined : next);
  const set = (i: number, v: Json | undefined): void => put(list.map((old, j) => (i === j ? (v ?? blank(p.root, items)) : old)));
  const add = <button type="button" class="plain" aria-label={"Add to " + p.name} onClick={() => put([...list, blank(p.root, items)])}>Add</button>;
  return (
    <Group name={p.name} required={p.required} about={p.schema.description} actions={add}>
      {list.map((v, i) => (
        <div key={i} class="item">
          <Field root={p.root} schema={items} name={`${p.name} ${i + 1}`} required item value={v} change={(n) => set(i, n)} />
          <button type="button" class="plain" aria-label={`Remove ${p.name} ${i + 1}`} onClick={() => put(list.filter((_, j) => j !== i))}>✕</button>
        </div>
      ))}
    </Group>
  );
}
