// JSON as text: shown, and edited.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import type { Json } from "../schema";
import { Shown } from "./parts";

export const jsonText = (value: unknown): string => (value === undefined ? "" : JSON.stringify(value, null, 2));

/** JSON that can be unfolded. It is made into text when it is first unfolded. */
export function Folded({ title, value, open }: { title: ComponentChildren; value: unknown; open?: boolean }): JSX.Element {
  const [seen, see] = useState(open === true);
  return (
    <details class="folded" open={open} onToggle={(e) => e.currentTarget.open && see(true)}>
      <summary>{title}</summary>
      {seen && <pre tabIndex={0}><Shown text={jsonText(value)} /></pre>}
    </details>
  );
}

function parsed(text: string): { value?: Json; error: string } {
  if (text.trim() === "") return { error: "" };
  try {
    return { value: JSON.parse(text) as Json, error: "" };
  } catch (err) {
    return { error: err instanceof Error ? err.message : String(err) };
  }
}

/** An editor of JSON. Text that is not JSON stays in the field and changes nothing. */
export function JsonField({ label, value, change, rows }: { label: string; value: Json | undefined; change: (value: Json | undefined) => void; rows?: number }): JSX.Element {
  const id = useId();
  const [text, setText] = useState(jsonText(value));
  const now = parsed(text);
  const outside = jsonText(value);
  useEffect(() => {
    if (now.error !== "" || jsonText(now.value) !== outside) setText(outside);
  }, [outside]);
  const edit = (next: string): void => {
    setText(next);
    const p = parsed(next);
    if (p.error === "") change(p.value);
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea id={id} class="mono" rows={rows ?? 3} spellcheck={false} value={text} aria-invalid={now.error !== ""} aria-describedby={id + "e"} onInput={(e) => edit(e.currentTarget.value)} />
      <span id={id + "e"} class="mistake" role="status">{now.error && "Not JSON yet: " + now.error}</span>
    </div>
  );
}
