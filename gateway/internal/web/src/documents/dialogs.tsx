// The dialogs of the tree: names, moves, deletions, and finding by name.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { useAction } from "../ui/action";
import { Dialog, Problem, Shown } from "../ui/parts";

export function NameDialog({ title, label, name, verb, done, close }: { title: string; label: string; name: string; verb: string; done(name: string): Promise<unknown>; close(): void }): JSX.Element {
  const [text, setText] = useState(name);
  const action = useAction(() => done(text.trim()).then(close));
  return (
    <Dialog title={title} close={close}>
      <form class="stack" onSubmit={(e) => { e.preventDefault(); if (text.trim()) action.run(); }}>
        <label class="stack">{label}<input value={text} maxLength={256} required autofocus onInput={(e) => setText(e.currentTarget.value)} onFocus={(e) => e.currentTarget.select()} /></label>
        <Problem error={action.error} />
        <div class="buttons"><button type="button" onClick={close}>Cancel</button><button type="submit" class="primary" aria-disabled={action.busy} disabled={!text.trim()}>{verb}</button></div>
      </form>
    </Dialog>
  );
}

export interface Item {
  key: string;
  name: string;
  /** Where it is, and what it is. */
  detail: string;
}

const mostShown = 60;

/** Finds one of many by parts of its name and place, and chooses it. */
export function Picker({ title, items, choose, close }: { title: string; items: Item[]; choose(key: string): Promise<unknown> | void; close(): void }): JSX.Element {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const action = useAction(async (i: Item) => { await choose(i.key); close(); });
  const found = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const rank = (i: Item): number => (words[0] && i.name.toLowerCase().startsWith(words[0]) ? 0 : words.every((w) => i.name.toLowerCase().includes(w)) ? 1 : 2);
    const fits = items.filter((i) => {
      const all = (i.detail + " " + i.name).toLowerCase();
      return words.every((w) => all.includes(w));
    });
    return words.length > 0 ? fits.sort((a, b) => rank(a) - rank(b)) : fits;
  }, [text, items]);
  const shown = found.slice(0, mostShown);
  const take = (i: Item | undefined): void => {
    if (i) action.run(i);
  };
  const keys = (e: KeyboardEvent): void => {
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[e.key];
    if (to !== undefined && shown.length > 0) {
      e.preventDefault();
      const next = (to + shown.length) % shown.length;
      setAt(next);
      document.getElementById("pick-" + next)?.scrollIntoView({ block: "nearest" });
    } else if (e.key === "Enter") {
      e.preventDefault();
      take(shown[at]);
    }
  };
  return (
    <Dialog title={title} close={close}>
      <input
        type="search" role="combobox" list={undefined} aria-label={title} aria-expanded="true" aria-controls="pick-list" aria-activedescendant={shown[at] ? "pick-" + at : undefined}
        autofocus autocomplete="off" placeholder="Part of the name or path" value={text} onKeyDown={keys} onInput={(e) => { setText(e.currentTarget.value); setAt(0); }}
      />
      <Problem error={action.error} />
      <ul id="pick-list" role="listbox" class="picks" aria-label="Found">
        {shown.map((i, n) => (
          <li key={i.key} id={"pick-" + n} role="option" aria-selected={n === at} onClick={() => take(i)}><Shown text={i.name} /> <span class="quiet"><Shown text={i.detail} /></span></li>
        ))}
      </ul>
      <p class="quiet" role="status">{found.length === 0 ? "Nothing is found." : found.length > mostShown ? `The first ${mostShown} of ${found.length}` : `${found.length} found`}</p>
    </Dialog>
  );
}
