import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";
import { call, whenOnline, type Result } from "../rpc";

export type MemoryItem = Result<"memory/list">["items"][number];

export interface Asked {
  workspace: string;
  query: string;
  scope: string;
  category: string;
}

interface Page {
  items: MemoryItem[];
  next: string;
}

const pageSize = 50;

async function fetchPage(a: Asked, cursor: string): Promise<Page> {
  if (a.query) return { ...(await call("memory/search", { workspace_id: a.workspace, query: a.query, limit: pageSize })), next: "" };
  return call("memory/list", {
    workspace_id: a.workspace, limit: pageSize,
    ...(a.scope ? { scope: a.scope } : {}), ...(a.category ? { category: a.category } : {}), ...(cursor ? { cursor } : {}),
  });
}

/** The memories that are asked for, page by page. More is undefined at the end. */
export function useItems(asked: Asked): { rows: MemoryItem[]; error: unknown; loading: boolean; reload(): void; more: (() => void) | undefined } {
  const [state, set] = useState<{ rows: MemoryItem[]; next: string; loading: boolean; error?: unknown }>({ rows: [], next: "", loading: true });
  const turn = useRef(0);
  const key = JSON.stringify(asked);
  const ask = useCallback((cursor: string) => {
    const mine = ++turn.current;
    set((s) => ({ ...s, loading: true, error: undefined }));
    fetchPage(JSON.parse(key) as Asked, cursor).then(
      (page) => mine === turn.current && set((s) => ({ rows: cursor ? [...s.rows, ...page.items] : page.items, next: page.next, loading: false })),
      (error) => mine === turn.current && set((s) => ({ ...s, error, loading: false })),
    );
  }, [key]);
  useLayoutEffect(() => whenOnline(() => ask("")), [ask]);
  return { rows: state.rows, error: state.error, loading: state.loading, reload: () => ask(""), more: state.next && !state.loading ? () => ask(state.next) : undefined };
}
