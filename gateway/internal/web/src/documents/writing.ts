// The text of one scope while it is written: kept in the browser with each change, saved by itself, merged with the
// changes of others.
import { effect, signal, untracked } from "@preact/signals";
import { RpcError, call, isCode, online, type Result } from "../rpc";
import { me, who } from "../session";
import { dropDraft, keyOf, leftOver, page, putDraft, type Draft } from "./drafts";
import { merge3 } from "./merge3";

type View = Result<"thread/agents_doc/get">;
export type Doc = NonNullable<View["explicit"]>;
export type Effective = View["effective"];
export type State = "saved" | "unsaved" | "saving" | "offline" | "conflict" | "failed" | "read-only";

export interface Conflict {
  /** What both texts are based on. */
  base: string;
  mine: string;
  /** Null: somebody archived the document. */
  theirs: Doc | null;
}

export const mostChars = 65_536;
const pause = 800; // after the last key
const retryAfter = 5_000;

/** The length in Unicode scalar values, which the gateway counts. */
export function chars(text: string): number {
  let n = text.length;
  for (let i = 0; i < text.length; i++) if ((text.charCodeAt(i) & 0xfc00) === 0xd800) n--;
  return n;
}

/** A text as the gateway keeps it. */
const normal = (text: string): string => text.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n").replace(/\p{Surrogate}/gu, "\ufffd");

export class Writing {
  readonly state = signal<State>("saved");
  /** Why saving failed. */
  readonly problem = signal("");
  /** What the writer should know, such as of a merge. */
  readonly notice = signal("");
  readonly warnings = signal<string[]>([]);
  readonly conflict = signal<Conflict | null>(null);
  /** The scope's own document as it was last seen; undefined before that. */
  readonly doc = signal<Doc | null | undefined>(undefined);
  readonly effective = signal<Effective>(null);
  readonly error = signal<unknown>(undefined);
  readonly length = signal(0);
  /** How many characters a prompt takes; 0 if that is not known. */
  readonly room = signal(0);
  text = "";
  /** Called when the text changes other than by typing. */
  onText: ((text: string) => void) | undefined;

  private base = { content: "", version: 0, docID: "" };
  private sent: string | null = null;
  private timer = 0;
  private sending = false;
  private heardWhileSending = false;
  private writes = 0; // of the draft, under way
  private lost = false; // the last write of the draft failed
  private kept = false; // there is a draft
  private begun = false;
  readonly owner = who(); // nobody else saves the text
  private readonly leave: () => void;

  constructor(readonly workspace: string, readonly folder: string, readonly readOnly: boolean) {
    if (readOnly) this.state.value = "read-only";
    this.leave = effect(() => {
      if (me.value && online.value) void untracked(() => this.refresh()); // with each connection
    });
  }

  get dirty(): boolean {
    return !this.readOnly && normal(this.text) !== this.base.content;
  }

  /** Whether closing the page now would lose something. */
  get unsafe(): boolean {
    return this.dirty && (this.writes > 0 || this.lost);
  }

  /** Whether the one who types is not logged in. */
  private get away(): boolean {
    return !me.value || who() !== this.owner;
  }

  /** Reads the scope, and takes over or merges what others have saved. */
  async refresh(): Promise<void> {
    if (this.away) return;
    if (this.sending) {
      this.heardWhileSending = true;
      return;
    }
    const left = this.begun ? undefined : this.leftOver(); // while the gateway answers
    try {
      const view = await call("thread/agents_doc/get", { workspace_id: this.workspace, folder_id: this.folder || null });
      this.error.value = undefined;
      this.effective.value = view.effective;
      this.room.value = view.prompt_chars;
      if (this.sending) {
        this.heardWhileSending = true; // the answer may be older than what is being saved
        return;
      }
      if (!this.begun) await this.begin(view.explicit, await left);
      else this.reconcile(view.explicit);
    } catch (err) {
      if (isCode(err, "offline")) this.markOffline();
      else if (this.begun && this.dirty) this.fail(err);
      else this.error.value = err;
    }
    if (this.dirty && online.value && !this.conflict.value) void this.push();
  }

  /** The text of this scope that an earlier page left behind. */
  private async leftOver(): Promise<Draft | undefined> {
    if (this.readOnly) return undefined;
    const all = await leftOver(this.workspace, this.owner).catch(() => []);
    return all.find((d) => d.folder === this.folder && !d.page.startsWith("aside"));
  }

  private async begin(doc: Doc | null, left: Draft | undefined): Promise<void> {
    if (this.begun) return;
    this.begun = true;
    if (left) {
      this.base = { content: left.base, version: left.version, docID: left.docID };
      this.sent = left.sent;
      this.setText(left.text);
      this.keep();
      await dropDraft(left.key).catch(() => undefined);
      this.notice.value = "A text that was typed here and not saved was found in this browser.";
    }
    this.reconcile(doc);
  }

  /** The user typed. */
  changed(text: string): void {
    this.text = text;
    this.length.value = chars(text);
    if (this.conflict.value) return this.keep();
    if (!this.dirty && !this.sending) return this.settle();
    this.keep();
    this.notice.value = "";
    if (this.state.value !== "offline" && this.state.value !== "saving") this.state.value = "unsaved";
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.push(), pause);
  }

  /** Sets the text as if it were typed. */
  put(text: string): void {
    this.setText(text);
    this.changed(text);
  }

  async push(reason: "autosave" | "manual" = "autosave"): Promise<void> {
    clearTimeout(this.timer);
    if (this.readOnly || this.sending || this.conflict.value || !this.begun || this.away) return;
    const text = normal(this.text);
    if (reason === "autosave" && text === this.base.content) return this.settle();
    if (chars(text) > mostChars) return this.fail(`The text is longer than ${mostChars.toLocaleString("en")} characters: shorten it to save it.`);
    if (!online.value) return this.markOffline();
    this.sending = true;
    this.sent = text;
    this.state.value = "saving";
    if (text !== this.base.content) this.keep();
    try {
      const saved = await call("thread/agents_doc/save", {
        workspace_id: this.workspace, folder_id: this.folder || null, content: text, save_reason: reason,
        expected_version: this.base.version, ...(this.base.docID ? { expected_doc_id: this.base.docID } : {}),
      });
      const before = this.doc.value?.status;
      this.warnings.value = saved.warnings.map((w) => w.message);
      this.rebase(saved.doc);
      this.sending = false;
      if (before !== saved.doc.status) this.heardWhileSending = true; // another document may be in effect
      if (this.dirty) {
        this.state.value = "unsaved";
        this.timer = window.setTimeout(() => void this.push(), pause);
      } else this.settle();
    } catch (err) {
      this.sending = false;
      if (isCode(err, "version_conflict")) this.heardWhileSending = true;
      else if (isCode(err, "offline")) this.markOffline();
      else this.fail(err);
    }
    if (this.heardWhileSending) {
      this.heardWhileSending = false;
      await this.refresh();
    }
  }

  /** Somebody, maybe this page, has saved or archived the document. */
  heard(summary: { id: string; version: number } | null): void {
    const known = this.base;
    if (summary ? summary.id === known.docID && summary.version <= known.version : known.docID === "") return;
    void this.refresh();
  }

  /** Takes a document as what there is now, as after a restore. */
  adopt(doc: Doc | null): void {
    this.reconcile(doc);
  }

  /** Ends a conflict with a text; null takes theirs, and puts mine aside. */
  resolve(text: string | null): void {
    const c = this.conflict.value;
    if (!c) return;
    if (text === null) void this.keep("aside-" + new Date().toISOString().replace(/\W/g, ""));
    this.conflict.value = null;
    this.rebase(c.theirs);
    this.setText(text ?? c.theirs?.content ?? "");
    if (!this.dirty) return this.settle();
    this.keep();
    void this.push("manual");
  }

  private reconcile(theirs: Doc | null): void {
    const mine = normal(this.text);
    const { content, version, docID } = this.base;
    if (theirs ? theirs.id === docID && theirs.version === version : docID === "") {
      this.doc.value = theirs;
      if (this.conflict.value) this.conflict.value = null;
    } else if (mine === content || theirs?.content === mine) {
      this.rebase(theirs);
      this.conflict.value = null;
      this.setText(theirs?.content ?? "");
    } else if (theirs && theirs.content === this.sent) {
      this.rebase(theirs); // it was saved, and the answer was lost
    } else {
      const merged = theirs ? merge3(content, mine, theirs.content) : null;
      if (theirs && merged && merged.conflicts === 0) {
        this.rebase(theirs);
        this.conflict.value = null;
        this.setText(merged.text);
        this.keep();
        this.notice.value = `Your changes and those of ${theirs.updated_by || "somebody else"} were merged.`;
      } else {
        this.doc.value = theirs;
        this.conflict.value = { base: content, mine: this.conflict.value?.mine ?? this.text, theirs };
        this.state.value = "conflict";
        this.keep();
        return;
      }
    }
    if (!this.dirty) this.settle();
  }

  private rebase(doc: Doc | null): void {
    this.base = doc ? { content: doc.content, version: doc.version, docID: doc.id } : { content: "", version: 0, docID: "" };
    this.doc.value = doc;
  }

  private setText(text: string): void {
    this.text = text;
    this.length.value = chars(text);
    this.onText?.(text);
  }

  private settle(): void {
    clearTimeout(this.timer);
    this.problem.value = "";
    if (this.readOnly) return;
    this.state.value = "saved";
    this.sent = null;
    if (this.kept) {
      this.kept = false;
      void dropDraft(this.draftKey(page)).catch(() => undefined);
    }
  }

  private draftKey(as: string): string {
    return keyOf(this.workspace, this.folder, as, this.owner);
  }

  /** Keeps the text in the browser. */
  private keep(as = page): void {
    if (this.readOnly) return;
    if (as === page) this.kept = true;
    this.writes++;
    putDraft({
      key: this.draftKey(as), workspace: this.workspace, folder: this.folder, page: as, who: this.owner, text: this.text,
      base: this.base.content, version: this.base.version, docID: this.base.docID, sent: this.sent, at: new Date().toISOString(),
    }).then(() => (this.lost = false), () => (this.lost = true)).finally(() => this.writes--);
  }

  private markOffline(): void {
    if (this.dirty && !this.conflict.value) this.state.value = "offline";
  }

  private fail(err: unknown): void {
    this.problem.value = err instanceof Error ? err.message : String(err);
    this.state.value = "failed";
    if (err instanceof RpcError && !["invalid_params", "too_large", "not_found", "unauthorized"].includes(err.code)) {
      this.timer = window.setTimeout(() => void this.push(), retryAfter);
    }
  }

  /** Ends it if nothing is unsent. */
  close(): boolean {
    if (this.dirty || this.sending) {
      void this.push();
      return false;
    }
    clearTimeout(this.timer);
    this.leave();
    return true;
  }
}

const running = new Map<string, Writing>();
const runningKey = (workspace: string, folder: string, owner = who()): string => JSON.stringify([workspace, folder, owner]);

/** The writing of a scope: one that still has unsent text goes on where it was. */
export function openWriting(workspace: string, folder: string, readOnly: boolean): Writing {
  for (const [key, w] of running) if (!w.onText && w.close()) running.delete(key);
  const key = runningKey(workspace, folder);
  const had = running.get(key);
  if (had && had.readOnly === readOnly) return had;
  const w = new Writing(workspace, folder, readOnly);
  running.set(key, w);
  return w;
}

/** Leaves a scope. Unsent text goes on being sent, and stays in the browser until then. */
export function leaveWriting(w: Writing): void {
  w.onText = undefined;
  if (w.close()) running.delete(runningKey(w.workspace, w.folder, w.owner));
}

addEventListener("beforeunload", (event) => {
  if ([...running.values()].some((w) => w.unsafe)) event.preventDefault();
});
