// A workspace's tree as the gateway has it, kept live, and the rows that are shown of it.
import { signal } from "@preact/signals";
import { call, isCode, on, whenOnline, type Result } from "../rpc";
import type { Notifications } from "../schema";

type Page = Result<"thread/tree">;
export type Folder = Page["folders"][number];
export type Thread = Page["threads"][number];
export type Summary = Page["agents_docs"][number];
type Changed = Notifications["thread/tree/changed"];

interface Children {
  folders: Folder[];
  threads: Thread[];
  sorted: boolean;
}

const byName = new Intl.Collator("en", { numeric: true, sensitivity: "base" }).compare;
const none: Children = { folders: [], threads: [], sorted: true };

export class Tree {
  readonly folders = new Map<string, Folder>();
  readonly threads = new Map<string, Thread>();
  /** The live documents by their folders; the root's is at "". */
  readonly docs = new Map<string, Summary>();
  /** Scopes that have an archived document. */
  readonly archived = new Set<string>();
  /** Grows with each change. */
  readonly revision = signal(0);
  readonly ready = signal(false);
  readonly error = signal<unknown>(undefined);
  readonly name = signal("");

  private index: Map<string, Children> | undefined;
  private seq: number | undefined;
  private reading = false;
  private again = false;
  private held: Changed[] = [];
  private scheduled = 0;

  constructor(readonly workspace: string) {}

  /** Watches the workspace until the returned function is called. */
  start(): () => void {
    const leave = [on("thread/tree/changed", (c) => c.workspace_id === this.workspace && this.heard(c)), whenOnline(() => void this.watch())];
    return () => {
      leave.forEach((f) => f());
      call("workspace/unwatch", { workspace_id: this.workspace }).catch(() => undefined);
    };
  }

  private async watch(): Promise<void> {
    try {
      const at = await call("workspace/watch", { workspace_id: this.workspace, since_seq: this.seq ?? null });
      const first = this.seq === undefined;
      this.seq = Math.max(this.seq ?? 0, at.seq);
      if (first || at.gap || !this.ready.value) await this.read();
    } catch (err) {
      if (!isCode(err, "offline")) this.error.value = err;
    }
  }

  async read(): Promise<void> {
    if (this.reading) {
      this.again = true;
      return;
    }
    this.reading = true;
    try {
      do {
        this.again = false;
        await this.readOnce();
      } while (this.again);
      this.error.value = undefined;
      this.ready.value = true;
    } catch (err) {
      if (!isCode(err, "offline")) this.error.value = err;
      else this.ready.value = false; // the next connection reads again
    } finally {
      this.reading = false;
      this.held.splice(0).forEach((c) => this.apply(c));
      this.touch();
    }
  }

  private async readOnce(): Promise<void> {
    const at = { workspace_id: this.workspace };
    const pages: Page[] = [];
    const names = call("workspace/list", {});
    const old = call("thread/agents_doc/archived", { ...at, all: true, limit: 1_000 });
    old.catch(() => undefined);
    for (let cursor: string | null = ""; cursor !== null; cursor = pages.at(-1)!.next_cursor) {
      pages.push(await call("thread/tree", { ...at, ...(cursor ? { cursor } : {}) }));
    }
    const archived = (await old).archived;
    this.name.value = (await names).workspaces.find((w) => w.id === this.workspace)?.name ?? this.workspace;
    for (const m of [this.folders, this.threads, this.docs, this.archived]) m.clear();
    for (const p of pages) {
      for (const f of p.folders) this.folders.set(f.id, f);
      for (const t of p.threads) this.threads.set(t.id, t);
      for (const d of p.agents_docs) this.docs.set(d.folder_id ?? "", d);
    }
    for (const d of archived) this.archived.add(d.folder_id ?? "");
  }

  private heard(c: Changed): void {
    this.seq = Math.max(this.seq ?? 0, c.seq);
    if (this.reading) this.held.push(c);
    else if (c.gap) void this.read();
    else this.apply(c);
  }

  /** Puts a change into the tree: of a notification, or of a call's result. */
  apply(c: Partial<Changed>): void {
    const gone = c.action === "deleted";
    if (c.gap) void this.read();
    if (c.workspace) {
      if (gone) this.error.value = new Error("The workspace was deleted.");
      else this.name.value = c.workspace.name;
    }
    if (c.folder) gone ? this.folders.delete(c.folder.id) : this.folders.set(c.folder.id, c.folder);
    if (c.thread) gone ? this.threads.delete(c.thread.id) : this.threads.set(c.thread.id, c.thread);
    if (c.agents_doc) {
      const scope = c.agents_doc.folder_id ?? "";
      if (c.action === "archived") {
        this.docs.delete(scope);
        this.archived.add(scope);
      } else this.docs.set(scope, c.agents_doc);
    }
    // Many changes at once are shown at once.
    this.scheduled ||= window.setTimeout(() => this.touch(), 40);
  }

  private touch(): void {
    clearTimeout(this.scheduled);
    this.scheduled = 0;
    this.index = undefined;
    this.revision.value++;
  }

  children(id: string): Children {
    if (!this.index) {
      this.index = new Map();
      const of = (parent: string | null): Children => {
        const had = this.index!.get(parent ?? "");
        if (had) return had;
        const made: Children = { folders: [], threads: [], sorted: false };
        this.index!.set(parent ?? "", made);
        return made;
      };
      for (const f of this.folders.values()) of(f.parent_id).folders.push(f);
      for (const t of this.threads.values()) of(t.folder_id).threads.push(t);
    }
    const list = this.index.get(id) ?? none;
    if (!list.sorted) {
      list.folders.sort((a, b) => byName(a.name, b.name) || byName(a.id, b.id));
      list.threads.sort((a, b) => byName(a.title, b.title) || byName(a.id, b.id));
      list.sorted = true;
    }
    return list;
  }

  /** The ids of the folders from the root down to one, with it. */
  above(folder: string): string[] {
    const ids: string[] = [];
    for (let f = this.folders.get(folder); f && ids.length < 100; f = this.folders.get(f.parent_id ?? "")) ids.unshift(f.id);
    return ids;
  }

  path(folder: string): string {
    return folder ? this.above(folder).map((id) => this.folders.get(id)!.name).join(" / ") : "Root";
  }

  /** How much lies below a folder. */
  below(id: string): { folders: number; threads: number; docs: number } {
    const sum = { folders: 0, threads: this.children(id).threads.length, docs: this.docs.has(id) ? 1 : 0 };
    for (const f of this.children(id).folders) {
      const s = this.below(f.id);
      sum.folders += 1 + s.folders;
      sum.threads += s.threads;
      sum.docs += s.docs;
    }
    return sum;
  }
}

export type Badge = "active" | "draft" | "archived" | "inherited" | "";

export interface Row {
  /** The kind and the id. */
  key: string;
  kind: "root" | "folder" | "thread";
  id: string;
  name: string;
  level: number;
  /** The key of the row above it in the tree; empty for the root. */
  parent: string;
  position: number;
  size: number;
  expandable: boolean;
  expanded: boolean;
  badge: Badge;
}

export const rootKey = "root:";
export const keyOf = (kind: Row["kind"], id: string): string => kind + ":" + id;

/** The rows of a tree in their order; those below folders that are not expanded are left out. */
export function rowsOf(tree: Tree, expanded: ReadonlySet<string>): Row[] {
  const rows: Row[] = [];
  const badge = (scope: string, inherits: boolean): Badge => {
    const doc = tree.docs.get(scope);
    if (doc) return doc.status;
    return inherits ? "inherited" : tree.archived.has(scope) ? "archived" : "";
  };
  const walk = (scope: string, parent: string, level: number, inherits: boolean): void => {
    const { folders, threads } = tree.children(scope);
    const size = folders.length + threads.length;
    const below = inherits || tree.docs.get(scope)?.status === "active";
    folders.forEach((f, i) => {
      const key = keyOf("folder", f.id);
      const inside = tree.children(f.id);
      const expandable = inside.folders.length + inside.threads.length > 0;
      const open = expandable && expanded.has(f.id);
      rows.push({ key, kind: "folder", id: f.id, name: f.name, level, parent, position: i + 1, size, expandable, expanded: open, badge: badge(f.id, below) });
      if (open) walk(f.id, key, level + 1, below);
    });
    threads.forEach((t, i) => {
      rows.push({ key: keyOf("thread", t.id), kind: "thread", id: t.id, name: t.title, level, parent, position: folders.length + i + 1, size, expandable: false, expanded: false, badge: "" });
    });
  };
  rows.push({ key: rootKey, kind: "root", id: "", name: tree.name.value, level: 1, parent: "", position: 1, size: 1, expandable: true, expanded: true, badge: badge("", false) });
  walk("", rootKey, 2, false);
  return rows;
}
