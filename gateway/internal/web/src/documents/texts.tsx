// The editor's bundle in components.
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type * as Bundle from "../editor/editor";
import { loadEditor } from "../editor/load";
import { Busy, Problem } from "../ui/parts";

let loading: Promise<typeof Bundle> | undefined;

function load(): Promise<typeof Bundle> {
  loading ??= loadEditor().catch((err: unknown) => {
    loading = undefined;
    throw err;
  });
  return loading;
}

/** A place that the bundle fills: again when key changes. */
function Host({ id, make, kind }: { id: string; kind: string; make(bundle: typeof Bundle, parent: HTMLElement): Bundle.Editor }): JSX.Element {
  const ref = useRef<HTMLDivElement>(null);
  const latest = useRef(make);
  latest.current = make;
  const [state, set] = useState<{ ready: boolean; error?: unknown }>({ ready: false });
  const [tries, setTries] = useState(0);
  useLayoutEffect(() => {
    let editor: Bundle.Editor | undefined;
    let left = false;
    load().then((bundle) => {
      if (left || !ref.current) return;
      editor = latest.current(bundle, ref.current);
      set({ ready: true });
    }).catch((error: unknown) => !left && set({ ready: false, error }));
    return () => {
      left = true;
      editor?.destroy();
    };
  }, [id, tries]);
  return (
    <>
      {!state.ready && !state.error && <Busy what="Loading the editor" />}
      <Problem error={state.error} retry={() => setTries(tries + 1)} />
      <div class={"sheet " + kind} ref={ref} />
    </>
  );
}

/** A text that cannot be changed. */
export const Text = ({ text, label }: { text: string; label: string }): JSX.Element => <Host id={text} kind="read" make={(b, parent) => b.createEditor(parent, { text, label, readOnly: true })} />;

export function Diff({ before, after, label }: { before: string; after: string; label: string }): JSX.Element {
  return <Host id={before + "\0" + after} kind="read" make={(b, parent) => b.createDiff(parent, { before, after, label })} />;
}

export function Editor({ id, options, bind }: { id: string; options(): Bundle.EditorOptions; bind(editor: Bundle.Editor): void }): JSX.Element {
  return <Host id={id} kind="write" make={(b, parent) => {
    const editor = b.createEditor(parent, options());
    bind(editor);
    return editor;
  }} />;
}

export function Merge(props: Omit<Bundle.MergeOptions, "narrow">): JSX.Element {
  return <Host id={props.theirs} kind="merge" make={(b, parent) => b.createMerge(parent, { ...props, narrow: innerWidth < 900 })} />;
}
