// What changes something: buttons that wait, and dialogs that ask before.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Dialog, Problem } from "./parts";

export interface Action<A extends unknown[] = []> {
  busy: boolean;
  error: unknown;
  run(...args: A): void;
}

/** An action that runs once at a time and keeps its error. Its button is not disabled meanwhile, which would lose the focus. */
export function useAction<A extends unknown[] = []>(act: (...args: A) => Promise<unknown>): Action<A> {
  const [state, set] = useState<{ busy: boolean; error?: unknown }>({ busy: false });
  const shown = useRef(true);
  useEffect(() => () => void (shown.current = false), []);
  const ended = (error?: unknown): void => void (shown.current && set({ busy: false, error }));
  const run = (...args: A): void => {
    if (state.busy) return;
    set({ busy: true });
    act(...args).then(() => ended(), ended);
  };
  return { busy: state.busy, error: state.error, run };
}

/** Asks before it acts. It closes after success, and shows the error otherwise. */
export function Confirm({ title, verb, act, close, children }: { title: string; verb: string; act: () => Promise<unknown>; close: () => void; children: ComponentChildren }): JSX.Element {
  const action = useAction(() => act().then(close));
  return (
    <Dialog title={title} close={close}>
      {children}
      <Problem error={action.error} />
      <div class="buttons">
        <button type="button" autofocus onClick={close}>Cancel</button>
        <button type="button" class="danger" aria-disabled={action.busy} onClick={action.run}>{verb}</button>
      </div>
    </Dialog>
  );
}

/** Gives the focus to the heading if what had it goes with what was there. */
export function useFocusKept(there: boolean): void {
  useEffect(() => {
    if (!there) return;
    return () => {
      if (document.activeElement === document.body) document.querySelector<HTMLElement>("main h1")?.focus({ preventScroll: true });
    };
  }, [there]);
}

/** The ids of the chosen rows among those that are there. */
export function useChoice<K extends string | number>(there: K[]): { ids: K[]; has(id: K): boolean; toggle(id: K): void; all(on: boolean): void } {
  const [set, change] = useState<ReadonlySet<K>>(new Set());
  const ids = there.filter((id) => set.has(id));
  const toggle = (id: K): void => change((s) => new Set(s.has(id) ? [...s].filter((x) => x !== id) : [...s, id]));
  return { ids, has: (id) => set.has(id), toggle, all: (on) => change(new Set(on ? there : [])) };
}
