// What was typed and is not acknowledged yet, in the browser's IndexedDB.

export interface Draft {
  /** Made of the next four. */
  key: string;
  workspace: string;
  /** Empty is the root. */
  folder: string;
  /** The page that typed it, or "aside" and a time for a text that its writer gave up in a conflict. */
  page: string;
  who: string;
  text: string;
  /** What the text is based on, as it was last acknowledged: none has the version 0. */
  base: string;
  version: number;
  docID: string;
  /** The text that was sent last; its answer may have been lost. */
  sent: string | null;
  at: string;
}

/** This page; its lock is held until it is closed, by which others know that its drafts are not left over. */
export const page = Array.from(crypto.getRandomValues(new Uint8Array(8)), (b) => b.toString(16).padStart(2, "0")).join("");
const lock = (id: string): string => "grapnel.page." + id;
// Browsers have locks only where the connection is safe; without them each draft counts as left over.
void navigator.locks?.request(lock(page), () => new Promise(() => undefined));

export const keyOf = (workspace: string, folder: string, by: string, who: string): string => [workspace, folder, by, who].join("/");

let opened: Promise<IDBDatabase> | undefined;

function database(): Promise<IDBDatabase> {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open("grapnel", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("drafts", { keyPath: "key" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opened;
}

/** Does something in one transaction; they are done in the order of the calls. */
async function store<T>(mode: IDBTransactionMode, run: (s: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const db = await database();
  return new Promise((resolve, reject) => {
    const t = db.transaction("drafts", mode, { durability: "strict" });
    const request = run(t.objectStore("drafts"));
    t.oncomplete = () => resolve(request.result);
    t.onerror = t.onabort = () => reject(t.error);
  });
}

export const putDraft = (d: Draft): Promise<unknown> => store("readwrite", (s) => s.put(d));
export const dropDraft = (key: string): Promise<unknown> => store("readwrite", (s) => s.delete(key));

/** The drafts of one writer in a workspace that no open page works on, newest first. */
export async function leftOver(workspace: string, who: string): Promise<Draft[]> {
  const held = new Set((await navigator.locks?.query())?.held?.map((l) => l.name));
  const all = await store("readonly", (s) => s.getAll(IDBKeyRange.bound(workspace + "/", workspace + "/\uffff")) as IDBRequest<Draft[]>);
  return all.filter((d) => d.who === who && d.page !== page && !held.has(lock(d.page))).sort((a, b) => b.at.localeCompare(a.at));
}
