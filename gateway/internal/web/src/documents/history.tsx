// Revisions of a document, archived documents, and texts that are kept in this browser.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call, type Result } from "../rpc";
import { route } from "../router";
import { may, who } from "../session";
import { count, number } from "../ui/format";
import { Busy, Problem, Shown, Tag, Time } from "../ui/parts";
import { Table } from "../ui/table";
import { useCall } from "../ui/use";
import { dropDraft, leftOver, type Draft } from "./drafts";
import { scopeAddress } from "./scope";
import { Diff, Text } from "./texts";
import type { Tree } from "./tree";
import type { Writing } from "./writing";

type Revision = Result<"thread/agents_doc/revisions">["revisions"][number];
type ArchivedDoc = Result<"thread/agents_doc/archived">["archived"][number];

const pageSize = 50;
const person = (name: string): JSX.Element => (name ? <Shown text={name} /> : <span class="quiet">unnamed</span>);

export function Revisions({ w }: { w: Writing }): JSX.Element {
  const doc = w.doc.value;
  const [older, setOlder] = useState<Revision[]>([]);
  const [error, setError] = useState<unknown>();
  const list = useCall("thread/agents_doc/revisions", doc ? { workspace_id: w.workspace, doc_id: doc.id, limit: pageSize } : null);
  useEffect(() => {
    if (doc) list.reload();
  }, [doc?.version]);
  if (!doc) return <p class="quiet">There is no document here, so there are no revisions. Those of archived documents are under Archived.</p>;
  if (!list.data) return list.error ? <Problem error={list.error} retry={list.reload} /> : <Busy what="Reading revisions" />;
  const newest = list.data.revisions;
  const rows = [...newest, ...older.filter((r) => r.doc_id === doc.id && r.version < (newest.at(-1)?.version ?? 0))];
  const last = rows.at(-1)?.version ?? 1;
  const version = Number(route.value.query.get("version"));
  const more = (): void => {
    call("thread/agents_doc/revisions", { workspace_id: w.workspace, doc_id: doc.id, limit: pageSize, before_version: last }).then((r) => setOlder([...older, ...r.revisions]), setError);
  };
  return (
    <>
      {version > 0 && <Compared key={version} w={w} version={version} docID={doc.id} />}
      <Table label="Revisions" rows={rows} rowKey={(r) => String(r.version)} rowClass={(r) => (r.version === version ? "chosen" : "")} columns={[
        { name: "Version", right: true, cell: (r) => <a href={scopeAddress(w.workspace, w.folder, { tab: "revisions", version: String(r.version) })}>{r.version}{r.version === doc.version && " (current)"}</a> },
        { name: "Saved", cell: (r) => <Time at={r.saved_at} /> },
        { name: "By", cell: (r) => person(r.saved_by) },
        { name: "How", wide: true, cell: (r) => r.save_reason },
        { name: "Characters", right: true, cell: (r) => number(r.chars) },
      ]} />
      <Problem error={error} />
      {last > 1 && <button type="button" onClick={more}>Older revisions</button>}
    </>
  );
}

/** One revision, compared with the current text. */
function Compared({ w, version, docID }: { w: Writing; version: number; docID: string }): JSX.Element {
  const found = useCall("thread/agents_doc/revisions", { workspace_id: w.workspace, doc_id: docID, limit: 1, before_version: version + 1, include_content: true });
  const [error, setError] = useState<unknown>();
  const current = w.doc.value;
  const text = found.data?.revisions[0]?.content;
  const settled = w.state.value === "saved";
  const restore = (): void => {
    call("thread/agents_doc/restore", { workspace_id: w.workspace, folder_id: w.folder || null, doc_id: docID, version, expected_version: current?.version ?? null }).then((r) => w.adopt(r.doc), setError);
  };
  return (
    <section class="card" aria-label={"Version " + version}>
      <div class="head">
        <h2>{version === current?.version ? `Version ${version}, the current one` : `From version ${version} to the current one`}</h2>
        {may("write") && current && version !== current.version && <button type="button" disabled={!settled} title={settled ? undefined : "Once your text is saved"} onClick={restore}>Restore version {version}</button>}
      </div>
      <Problem error={error ?? found.error} />
      {text == null ? <Busy what="Reading the text" /> : text === current?.content ? <><p class="quiet">Its text is the current one.</p><Text text={text} label={"Version " + version} /></> : <Diff before={text} after={current?.content ?? ""} label={`Changes from version ${version} to the current text`} />}
    </section>
  );
}

/** Archived documents: of a scope, or with folder null of the workspace. */
export function Archived({ tree, folder, w }: { tree: Tree; folder: string | null; w?: Writing }): JSX.Element {
  const all = folder === null;
  const list = useCall("thread/agents_doc/archived", { workspace_id: tree.workspace, ...(all ? { all: true } : { folder_id: folder || null }), limit: 1_000 });
  const [shown, setShown] = useState<ArchivedDoc | null>(null);
  const [error, setError] = useState<unknown>();
  useEffect(() => list.reload(), [tree.revision.value]);
  if (!list.data) return list.error ? <Problem error={list.error} retry={list.reload} /> : <Busy what="Reading archived documents" />;
  const rows = list.data.archived;
  if (rows.length === 0) return <p class="quiet">No documents are archived{all ? "" : " here"}.</p>;
  const restore = (d: ArchivedDoc): void => {
    const live = tree.docs.get(d.folder_id ?? "");
    call("thread/agents_doc/restore", { workspace_id: tree.workspace, folder_id: d.folder_id, doc_id: d.id, version: d.version, ...(live ? { expected_version: live.version } : {}) })
      .then(() => { setError(undefined); list.reload(); void w?.refresh(); }, setError);
  };
  const scope = (d: ArchivedDoc): JSX.Element => (d.folder_id && !tree.folders.has(d.folder_id) ? <span class="quiet">a deleted folder</span> : <a href={scopeAddress(tree.workspace, d.folder_id)}><Shown text={tree.path(d.folder_id ?? "")} /></a>);
  const settled = !w || w.state.value === "saved";
  return (
    <>
      <Problem error={error} />
      {shown && <ArchivedText key={shown.id} workspace={tree.workspace} doc={shown} close={() => setShown(null)} />}
      <Table label="Archived documents" rows={rows} rowKey={(d) => d.id} columns={[
        ...(all ? [{ name: "Folder", cell: scope }] : []),
        { name: "Archived", cell: (d: ArchivedDoc) => <Time at={d.archived_at} /> },
        { name: "By", wide: true, cell: (d: ArchivedDoc) => person(d.archived_by) },
        { name: "Characters", right: true, cell: (d: ArchivedDoc) => number(d.chars) },
        { name: "", cell: (d: ArchivedDoc) => (
          <div class="tools">
            <button type="button" onClick={() => setShown(d)}>Show</button>
            {may("write") && (!d.folder_id || tree.folders.has(d.folder_id)) && <button type="button" disabled={!settled} onClick={() => restore(d)}>{tree.docs.has(d.folder_id ?? "") ? "Put over the current text" : "Restore"}</button>}
          </div>
        ) },
      ]} />
    </>
  );
}

function ArchivedText({ workspace, doc, close }: { workspace: string; doc: ArchivedDoc; close(): void }): JSX.Element {
  const found = useCall("thread/agents_doc/revisions", { workspace_id: workspace, doc_id: doc.id, limit: 1, before_version: doc.version + 1, include_content: true });
  const text = found.data?.revisions[0]?.content;
  return (
    <section class="card" aria-label="Archived text">
      <div class="head"><h2>Archived, version {doc.version}</h2><button type="button" onClick={close}>Close</button></div>
      <Problem error={found.error} />
      {text == null ? <Busy what="Reading the text" /> : <Text text={text} label="Archived text, read-only" />}
    </section>
  );
}

/** Texts that who is logged in typed in this browser and did not save. */
export function Kept({ tree }: { tree: Tree }): JSX.Element | null {
  const [list, setList] = useState<Draft[]>([]);
  const [shown, setShown] = useState("");
  const read = (): void => void leftOver(tree.workspace, who()).then(setList, () => undefined);
  useEffect(read, [tree]);
  if (list.length === 0) return null;
  return (
    <section class="stack" aria-label="Texts kept in this browser">
      <h2>{count(list.length, "text is", "texts are")} kept in this browser</h2>
      <p class="quiet">They were typed here and are not saved, or were put aside in a conflict.</p>
      {list.map((d) => (
        <div class="card" key={d.key}>
          <div class="head">
            <span>{d.folder && !tree.folders.has(d.folder) ? "A deleted folder" : <a href={scopeAddress(tree.workspace, d.folder)}><Shown text={tree.path(d.folder)} /></a>} <Tag tone="warn">{d.page.startsWith("aside") ? "put aside" : "not saved"}</Tag> <span class="quiet"><Time at={d.at} />, {count(d.text.length, "character", "characters")}</span></span>
            <span class="tools">
              <button type="button" aria-expanded={shown === d.key} onClick={() => setShown(shown === d.key ? "" : d.key)}>{shown === d.key ? "Hide" : "Show"}</button>
              <button type="button" class="danger" onClick={() => void dropDraft(d.key).then(read)}>Discard</button>
            </span>
          </div>
          {shown === d.key && <Text text={d.text} label="Kept text, read-only" />}
        </div>
      ))}
    </section>
  );
}
