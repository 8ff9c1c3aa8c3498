// A folder's or the root's document: what is in effect, the editor, the conflict, revisions and archived documents.
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { call } from "../rpc";
import { address, route } from "../router";
import { may } from "../session";
import { count, number } from "../ui/format";
import { Busy, Empty, Head, Problem, Shown, Tabs, Tag, type Tone } from "../ui/parts";
import { useNotification, useTitle } from "../ui/use";
import { Confirm } from "../ui/action";
import { Archived, Revisions } from "./history";
import { Editor, Merge, Text } from "./texts";
import { type Tree } from "./tree";
import { leaveWriting, mostChars, openWriting, type Conflict, type Effective, type State, type Writing } from "./writing";

export const scopeAddress = (workspace: string, folder: string | null, query?: Record<string, string | undefined>): string =>
  address(folder ? ["documents", workspace, "folder", folder] : ["documents", workspace, "root"], query);

export function Scope({ tree, folder }: { tree: Tree; folder: string }): JSX.Element {
  const write = may("write");
  const w = useMemo(() => openWriting(tree.workspace, folder, !write), [tree, folder, write]);
  useEffect(() => () => leaveWriting(w), [w]);
  const revision = tree.revision.value;
  const above = useMemo(() => new Set(["", ...tree.above(folder)]), [tree, folder, revision]);
  const known = folder === "" || tree.folders.has(folder);
  const path = tree.path(folder);
  useNotification("thread/agents_doc/changed", (c) => {
    if (c.workspace_id !== tree.workspace) return;
    if ((c.folder_id ?? "") === folder) w.heard(c.summary);
    else if (above.has(c.folder_id ?? "")) void w.refresh();
  });
  // A move of a folder above changes what is in effect.
  useEffect(() => void (revision > 1 && w.refresh()), [path, known]);
  const name = folder ? tree.folders.get(folder)?.name ?? folder : tree.name.value || tree.workspace;
  useTitle("AGENTS.md of " + name);
  const tab = route.value.query.get("tab") ?? "text";
  const [asked, setAsked] = useState(false);
  const doc = w.doc.value;
  if (!known && !w.dirty) return <Empty title="There is no such folder"><p>It was deleted, or the address is mistyped.</p></Empty>;
  return (
    <>
      <Head title={<Shown text={name} />} sub={folder ? <>Folder in <Shown text={tree.path(tree.folders.get(folder)?.parent_id ?? "")} /></> : "Root of the workspace"}>
        {doc && write && tab === "text" && !w.conflict.value && <button type="button" disabled={w.state.value !== "saved"} onClick={() => setAsked(true)}>Archive…</button>}
      </Head>
      {!known && <Problem error="The folder was deleted. Your text is kept in this browser: copy it elsewhere." />}
      <Tabs label="Document" current={tab} tabs={[["text", "Text"], ["revisions", "Revisions"], ["archived", "Archived"]].map(([id, label]) => ({ id: id!, label, to: scopeAddress(tree.workspace, folder, { tab: id === "text" ? undefined : id }) }))} />
      {doc === undefined && !w.dirty ? (w.error.value ? <Problem error={w.error.value} retry={() => void w.refresh()} /> : <Busy what="Reading the document" />)
        : tab === "revisions" ? <Revisions w={w} />
        : tab === "archived" ? <Archived tree={tree} folder={folder} w={w} />
        : <Written w={w} tree={tree} />}
      {asked && doc && (
        <Confirm title="Archive this document?" verb="Archive" close={() => setAsked(false)} act={async () => {
          await call("thread/agents_doc/archive", { workspace_id: tree.workspace, folder_id: folder || null, expected_version: doc.version, expected_doc_id: doc.id });
          await w.refresh();
        }}>
          <p>It is no longer in effect here and below. It can be restored, with all its revisions.</p>
        </Confirm>
      )}
    </>
  );
}

/** Which document is in effect, and where it comes from. */
export function InEffect({ workspace, effective, of }: { workspace: string; effective: Effective; of: string }): JSX.Element {
  if (!effective) return <p class="effect"><Tag tone="plain">none</Tag> No document is in effect {of}.</p>;
  const from = effective.source_path.join(" / ") || "Root";
  if (!effective.inherited) return <p class="effect"><Tag tone="good">explicit</Tag> This document is in effect {of}.</p>;
  return <p class="effect"><Tag tone="info">inherited</Tag> <span>In effect {of}: the document of <a href={scopeAddress(workspace, effective.source_folder_id)}><Shown text={from} /></a></span></p>;
}

function Written({ w, tree }: { w: Writing; tree: Tree }): JSX.Element {
  const [begun, setBegun] = useState(false);
  const { doc, effective, conflict } = w;
  const e = effective.value;
  if (conflict.value) return <Conflicting w={w} conflict={conflict.value} />;
  const inherited = e?.inherited ? e.doc.content : null;
  const editing = !!doc.value || begun || w.dirty;
  return (
    <>
      <InEffect workspace={tree.workspace} effective={e} of="here" />
      {w.notice.value && <p class="note" role="status"><Shown text={w.notice.value} /></p>}
      {!editing && (
        <>
          {!w.readOnly && (
            <div class="tools">
              <button type="button" class="primary" onClick={() => setBegun(true)}>Write one here</button>
              {inherited !== null && <button type="button" onClick={() => { setBegun(true); w.put(inherited); }}>Begin with a copy of the inherited one</button>}
            </div>
          )}
          {inherited !== null ? <Text text={inherited} label="The inherited document, read-only" /> : <Empty title="There is no AGENTS.md here"><p>Folders above have none either.</p></Empty>}
        </>
      )}
      {editing && (
        <>
          <Editor id={w.workspace + "/" + w.folder} bind={(editor) => { w.onText = (text) => editor.replace(text); if (begun) editor.focus(); }}
            options={() => ({ text: w.text, label: "AGENTS.md", readOnly: w.readOnly, changed: (text) => w.changed(text), save: () => void w.push("manual") })} />
          <Status w={w} />
          {inherited !== null && <details class="card"><summary>The inherited document, in effect while this one is blank</summary><Text text={inherited} label="The inherited document, read-only" /></details>}
        </>
      )}
    </>
  );
}

const words: Record<State, [Tone, string]> = {
  saved: ["good", "saved"], unsaved: ["plain", "not saved yet"], saving: ["info", "saving…"], offline: ["warn", "offline (kept here)"], conflict: ["bad", "conflict"], failed: ["bad", "not saved (kept here)"], "read-only": ["plain", "read-only"],
};

function Status({ w }: { w: Writing }): JSX.Element {
  const [tone, word] = words[w.state.value];
  const n = w.length.value;
  const room = w.room.value;
  return (
    <footer class="status">
      <span role="status"><Tag tone={tone}>{word}</Tag></span>
      {w.doc.value && <span class="quiet">version {w.doc.value.version}</span>}
      <span class={n > mostChars ? "bad" : n > 0.9 * mostChars ? "warn" : "quiet"}>{number(n)} of {count(mostChars, "character", "characters")}</span>
      {room > 0 && <span class={n > room ? "warn" : "quiet"}>a prompt takes {number(room)}</span>}
      {w.state.value === "failed" && <span class="bad"><Shown text={w.problem.value} /> <button type="button" class="plain" onClick={() => void w.push("manual")}>Try again</button></span>}
      {w.warnings.value.map((text) => <Tag key={text} tone="warn"><Shown text={text} /></Tag>)}
      {!w.readOnly && <span class="quiet hint">Tab indents; Escape, then Tab leaves the text.</span>}
    </footer>
  );
}

function Conflicting({ w, conflict }: { w: Writing; conflict: Conflict }): JSX.Element {
  const { theirs, base, mine } = conflict;
  const by = theirs?.updated_by || "Somebody else";
  if (!theirs) {
    return (
      <section class="stack" aria-label="Conflict">
        <div class="problem" role="alert"><span aria-hidden="true">✕</span><p>The document was archived while you wrote. Your text is kept here.</p></div>
        <div class="tools">
          <button type="button" class="primary" onClick={() => w.resolve(w.text)}>Save mine as a new document</button>
          <button type="button" onClick={() => w.resolve(null)}>Leave it archived, put mine aside</button>
        </div>
        <Text text={w.text} label="Your text" />
      </section>
    );
  }
  return (
    <section class="stack" aria-label="Conflict">
      <div class="problem" role="alert"><span aria-hidden="true">✕</span><p><Shown text={by} /> changed the same lines, and saved version {theirs.version}. Nothing is lost: your text is kept here, and theirs stays among the revisions. Edit below, or take one.</p></div>
      <div class="tools">
        <button type="button" class="primary" onClick={() => w.resolve(w.text)}>Save the edited text</button>
        <button type="button" onClick={() => w.resolve(mine)}>Take mine</button>
        <button type="button" onClick={() => w.resolve(null)}>Take theirs, put mine aside</button>
      </div>
      <div class="sides"><span><b>Theirs</b>, version {theirs.version}</span><span><b>Mine</b>, to edit</span></div>
      <Merge theirs={theirs.content} theirLabel={"Theirs, version " + theirs.version} text={w.text} label="Mine, to edit" changed={(text) => w.changed(text)} />
      <details class="card"><summary>The text that both began with</summary><Text text={base} label="The text that both began with" /></details>
    </section>
  );
}
