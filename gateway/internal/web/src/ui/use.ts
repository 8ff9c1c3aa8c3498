// Hooks that all views share. What asks the gateway does so in layout effects: other effects wait for a frame to be drawn.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { call, on, whenOnline, type MethodName, type Params, type Result } from "../rpc";
import type { Notifications } from "../schema";
import { plain } from "./unseen";

export interface Called<R> {
  /** The last result; it stays while a newer one is awaited. */
  data: R | undefined;
  error: unknown;
  loading: boolean;
  reload(): void;
}

/** Calls a method when its params change, after each reconnect, and on reload. Null params call nothing. */
export function useCall<M extends MethodName>(method: M, params: Params<M> | null): Called<Result<M>> {
  const [state, set] = useState<{ data?: Result<M>; error?: unknown; loading: boolean }>({ loading: params !== null });
  const turn = useRef(0);
  const key = JSON.stringify(params);
  const run = useCallback(() => {
    const mine = ++turn.current;
    if (key === "null") return set({ loading: false });
    set((s) => ({ ...s, loading: true }));
    call(method, JSON.parse(key) as Params<M>).then(
      (data) => mine === turn.current && set({ data, loading: false }),
      (error) => mine === turn.current && set((s) => ({ ...s, error, loading: false })),
    );
  }, [method, key]);
  useLayoutEffect(() => {
    set({ loading: key !== "null" });
    return whenOnline(run);
  }, [run]);
  return { data: state.data, error: state.error, loading: state.loading, reload: run };
}

/** Listens to a notification while the view is shown. */
export function useNotification<N extends keyof Notifications>(name: N, heard: (params: Notifications[N]) => void): void {
  const latest = useRef(heard);
  latest.current = heard;
  useLayoutEffect(() => on(name, (p) => latest.current(p)), [name]);
}

/** Runs f every so many milliseconds while the page is visible. */
export function useEvery(ms: number, f: () => void): void {
  const latest = useRef(f);
  latest.current = f;
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && latest.current(), ms);
    return () => clearInterval(timer);
  }, [ms]);
}

/** The document's title while the view is shown. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = plain(title) + " · Grapnel";
  }, [title]);
}
