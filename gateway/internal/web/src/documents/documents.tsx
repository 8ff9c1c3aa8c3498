// Documents: workspaces, a workspace's tree, and the documents of its folders.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { call } from "../rpc";
import { address, navigate, route } from "../router";
import { may } from "../session";
import { store, stored } from "../stored";
import { count } from "../ui/format";
import { Busy, Empty, Head, Problem, Shown } from "../ui/parts";
import { useCall, useNotification, useTitle } from "../ui/use";
import { Confirm } from "../ui/action";
import { NameDialog, Picker, type Item } from "./dialogs";
import { Archived, Kept } from "./history";
import { InEffect, Scope, scopeAddress } from "./scope";
import { Text } from "./texts";
import { Tree, keyOf, rootKey, rowsOf, type Row } from "./tree";
import { plain } from "../ui/unseen";
import { TreeView, type Action } from "./treeview";

export function Documents(): JSX.Element {
  const [, workspace] = route.value.path;
  return workspace ? <Workspace key={workspace} id={workspace} /> : <Workspaces />;
}

function Workspaces(): JSX.Element {
  useTitle("Documents");
  const list = useCall("workspace/list", {});
  const [making, setMaking] = useState(false);
  const rows = list.data?.workspaces ?? [];
  return (
    <>
      <Head title="Documents" sub="The AGENTS.md documents of workspaces, folders and threads">
        {may("write") && <button type="button" class="primary" onClick={() => setMaking(true)}>New workspace…</button>}
      </Head>
      <Problem error={list.error} retry={list.reload} />
      {list.loading && !list.data && <Busy what="Reading workspaces" />}
      {list.data && rows.length === 0 && <Empty title="There are no workspaces"><p>A workspace holds a tree of folders and threads.</p></Empty>}
      <ul class="workspaces">{rows.map((w) => <li key={w.id}><a class="card" href={address(["documents", w.id])}><b><Shown text={w.name} /></b><code class="quiet">{w.id}</code></a></li>)}</ul>
      {making && <NewWorkspace close={() => setMaking(false)} />}
    </>
  );
}

const NewWorkspace = ({ close }: { close(): void }): JSX.Element => (
  <NameDialog title="New workspace" label="Name" name="" verb="Create" close={close} done={async (name) => navigate(address(["documents", (await call("workspace/create", { name })).workspace.id]))} />
);

type Asked = { what: Action | "open" | "workspace"; row: Row } | null;

const rowAddress = (workspace: string, row: { kind: string; id: string }): string =>
  row.kind === "thread" ? address(["documents", workspace, "thread", row.id]) : scopeAddress(workspace, row.id);

function Workspace({ id }: { id: string }): JSX.Element {
  const tree = useMemo(() => new Tree(id), [id]);
  useLayoutEffect(() => tree.start(), [tree]);
  const [, , kind, item = ""] = route.value.path;
  const write = may("write");
  const [expanded, setExpanded] = useState<ReadonlySet<string>>(() => new Set(stored<string[]>(sessionStorage, "grapnel.open." + id, [])));
  const [asked, setAsked] = useState<Asked>(null);
  const [drawer, setDrawer] = useState(false);
  const [error, setError] = useState<unknown>();
  useTitle(tree.name.value || "Documents");
  const revision = tree.revision.value;
  const rows = useMemo(() => rowsOf(tree, expanded), [tree, expanded, revision]);
  const open = (ids: string[], on = true): void => {
    const next = new Set(expanded);
    ids.forEach((f) => (on ? next.add(f) : next.delete(f)));
    setExpanded(next);
    store(sessionStorage, "grapnel.open." + id, [...next]);
  };
  // The row of the address is shown, wherever it came from.
  const parent = kind === "folder" ? tree.folders.get(item)?.parent_id : kind === "thread" ? tree.threads.get(item)?.folder_id : null;
  useEffect(() => {
    if (parent) open(tree.above(parent));
    setDrawer(false);
  }, [kind, item, parent]);
  useEffect(() => {
    const keys = (e: KeyboardEvent): void => {
      if (e.key.toLowerCase() !== "k" || !(e.ctrlKey || e.metaKey) || e.altKey || e.shiftKey || document.querySelector("dialog[open]")) return;
      e.preventDefault();
      e.stopPropagation();
      setAsked({ what: "open", row: rows[0]! });
    };
    addEventListener("keydown", keys, true);
    return () => removeEventListener("keydown", keys, true);
  }, [rows]);

  const mayDrop = (moved: Row, into: Row): boolean =>
    into.kind !== "thread" && moved.parent !== into.key && moved.key !== into.key && !(moved.kind === "folder" && tree.above(into.id).includes(moved.id));
  const move = async (moved: Row, into: string): Promise<void> => {
    const at = { workspace_id: id };
    if (moved.kind === "folder") tree.apply({ action: "moved", ...(await call("folder/move", { ...at, folder_id: moved.id, parent_id: into || null })) });
    else tree.apply({ action: "moved", ...(await call("thread/move", { ...at, thread_id: moved.id, folder_id: into || null })) });
    open([...tree.above(into)]);
    setError(undefined);
  };
  if (tree.error.value && !tree.ready.value) return <><Head title="Documents" /><Problem error={tree.error.value} /><p><a href="/documents">All workspaces</a></p></>;
  return (
    <div class="docs">
      <section class={"treeside" + (drawer ? " open" : "")} aria-label="Tree">
        <div class="treehead">
          <Chooser id={id} name={tree.name.value} create={() => setAsked({ what: "workspace", row: rows[0]! })} write={write} />
          <button type="button" class="drawer" aria-expanded={drawer} onClick={() => setDrawer(!drawer)}>Tree</button>
          <button type="button" onClick={() => setAsked({ what: "open", row: rows[0]! })} title="Ctrl+K or ⌘K">Find…</button>
          {write && <button type="button" onClick={() => setAsked({ what: "folder", row: rows.find((r) => r.key === keyOf("folder", item)) ?? rows[0]! })}>New folder…</button>}
        </div>
        <Problem error={error ?? tree.error.value} />
        {!tree.ready.value && tree.folders.size === 0 && <Busy what="Reading the tree" />}
        <TreeView
          rows={rows} current={kind === "folder" || kind === "thread" ? keyOf(kind, item) : kind === "root" ? rootKey : ""} write={write}
          toggle={(row, on) => open([row.id], on)} show={(row) => navigate(rowAddress(id, row))} act={(what, row) => (what === "move" && row.kind === "root" ? undefined : setAsked({ what, row }))}
          mayDrop={mayDrop} drop={(moved, into) => void move(moved, into.id).catch(setError)}
        />
      </section>
      <div class="docside">
        {kind === "root" ? <Scope key="" tree={tree} folder="" />
          : !tree.ready.value && tree.folders.size === 0 ? null
          : kind === "folder" ? <Scope key={item} tree={tree} folder={item} />
          : kind === "thread" ? <ThreadView key={item} tree={tree} id={item} />
          : <Overview tree={tree} />}
      </div>
      {asked && <Asking tree={tree} asked={asked} close={() => setAsked(null)} move={move} mayDrop={mayDrop} expand={(f) => open(tree.above(f))} />}
    </div>
  );
}

function Chooser({ id, name, create, write }: { id: string; name: string; create(): void; write: boolean }): JSX.Element {
  const list = useCall("workspace/list", {});
  const rows = list.data?.workspaces ?? [];
  const choose = (to: string): void => {
    if (to === "+") create();
    else navigate(address(["documents", ...(to ? [to] : [])]));
  };
  return (
    <select aria-label="Workspace" value={id} onChange={(e) => { choose(e.currentTarget.value); e.currentTarget.value = id; }}>
      {!rows.some((w) => w.id === id) && <option value={id}>{plain(name || id)}</option>}
      {rows.map((w) => <option key={w.id} value={w.id}>{plain((w.id === id && name) || w.name)}</option>)}
      <option value="">All workspaces</option>
      {write && <option value="+">New workspace…</option>}
    </select>
  );
}

/** The dialog of what was asked for. */
function Asking({ tree, asked, close, move, mayDrop, expand }: { tree: Tree; asked: NonNullable<Asked>; close(): void; move(row: Row, into: string): Promise<void>; mayDrop(moved: Row, into: Row): boolean; expand(folder: string): void }): JSX.Element {
  const { what, row } = asked;
  const at = { workspace_id: tree.workspace };
  const place = row.kind === "root" ? "the root" : `“${plain(row.name)}”`;
  const items = useMemo(() => {
    const detail = (parent: string | null): string => (parent ? tree.path(parent) : "Root");
    const list: Item[] = what === "move" || what === "open" ? [{ key: rootKey, name: tree.name.value, detail: "the root" }] : [];
    if (list.length === 0) return list;
    for (const f of tree.folders.values()) {
      if (what === "open" || mayDrop(row, { ...row, kind: "folder", id: f.id, key: keyOf("folder", f.id) })) list.push({ key: keyOf("folder", f.id), name: f.name, detail: "folder in " + detail(f.parent_id) });
    }
    if (what === "open") for (const t of tree.threads.values()) list.push({ key: keyOf("thread", t.id), name: t.title, detail: "thread in " + detail(t.folder_id) });
    return list;
  }, [what, row]);
  const split = (key: string): { kind: string; id: string } => ({ kind: key.slice(0, key.indexOf(":")), id: key.slice(key.indexOf(":") + 1) });
  switch (what) {
    case "workspace":
      return <NewWorkspace close={close} />;
    case "open":
      return <Picker title="Find a folder or thread" items={items} choose={(key) => navigate(rowAddress(tree.workspace, split(key)))} close={close} />;
    case "move":
      return <Picker title={`Move ${place} to`} items={items} choose={(key) => move(row, split(key).id)} close={close} />;
    case "folder":
    case "thread":
      return <NameDialog title={`New ${what} in ${place}`} label={what === "folder" ? "Name" : "Title"} name="" verb="Create" close={close} done={async (name) => {
        const parent = row.id || null;
        const made = what === "folder" ? await call("folder/create", { ...at, parent_id: parent, name }) : await call("thread/create", { ...at, folder_id: parent, title: name });
        tree.apply({ action: "created", ...made });
        expand(row.id);
        navigate(rowAddress(tree.workspace, { kind: what, id: "folder" in made ? made.folder.id : made.thread.id }));
      }} />;
    case "rename":
      return <NameDialog title={"Rename " + (row.kind === "root" ? "the workspace" : place)} label={row.kind === "thread" ? "Title" : "Name"} name={row.name} verb="Rename" close={close} done={async (name) => {
        tree.apply({ action: "renamed", ...(row.kind === "root" ? await call("workspace/rename", { ...at, name }) : row.kind === "folder" ? await call("folder/rename", { ...at, folder_id: row.id, name }) : await call("thread/rename", { ...at, thread_id: row.id, title: name })) });
      }} />;
    case "delete":
      return <Deleting tree={tree} row={row} close={close} />;
  }
}

function Deleting({ tree, row, close }: { tree: Tree; row: Row; close(): void }): JSX.Element {
  const at = { workspace_id: tree.workspace };
  const in_ = row.kind === "thread" ? null : tree.below(row.id);
  const some = !!in_ && in_.folders + in_.threads + in_.docs > 0;
  const done = async (): Promise<void> => {
    if (row.kind === "root") {
      await call("workspace/delete", { ...at, recursive: some });
      return navigate("/documents");
    }
    const parent = row.kind === "folder" ? tree.folders.get(row.id)?.parent_id : tree.threads.get(row.id)?.folder_id;
    if (row.kind === "folder") await call("folder/delete", { ...at, folder_id: row.id, recursive: some });
    else tree.apply({ action: "deleted", ...(await call("thread/delete", { ...at, thread_id: row.id })) });
    const [, , , item = ""] = route.value.path;
    if (item === row.id || tree.above(item).includes(row.id)) navigate(scopeAddress(tree.workspace, parent ?? null), true);
  };
  return (
    <Confirm title={row.kind === "root" ? "Delete the workspace?" : `Delete the ${row.kind}?`} verb="Delete" close={close} act={done}>
      <p><b><Shown text={row.name} /></b></p>
      {in_ && <p>{some ? <>In it: {count(in_.folders, "folder", "folders")}, {count(in_.threads, "thread", "threads")}, {count(in_.docs, "document", "documents")}. {row.kind === "root" ? "All are deleted." : "Folders are deleted too, documents are archived, and threads move to the parent."}</> : "It is empty."}</p>}
      {row.kind === "thread" && <p>The thread is taken out of the tree, and its conversation is deleted.</p>}
    </Confirm>
  );
}

function Overview({ tree }: { tree: Tree }): JSX.Element {
  return (
    <>
      <Head title={<Shown text={tree.name.value} />} sub={[count(tree.folders.size, "folder", "folders"), count(tree.threads.size, "thread", "threads"), count(tree.docs.size, "document", "documents")].join(", ")}>
        <a href={scopeAddress(tree.workspace, null)}>Open the root’s document</a>
      </Head>
      <Kept tree={tree} />
      <h2>Archived documents</h2>
      <Archived tree={tree} folder={null} />
    </>
  );
}

function ThreadView({ tree, id }: { tree: Tree; id: string }): JSX.Element {
  const thread = tree.threads.get(id);
  const found = useCall("thread/agents_doc/resolve_for_thread", { workspace_id: tree.workspace, thread_id: id });
  const title = thread?.title ?? id;
  useTitle(title);
  useNotification("thread/agents_doc/changed", (c) => c.workspace_id === tree.workspace && found.reload());
  useEffect(() => found.reload(), [tree.path(thread?.folder_id ?? "")]);
  const e = found.data?.effective ?? null;
  return (
    <>
      <Head title={<Shown text={title} />} sub={<>Thread in <Shown text={tree.path(thread?.folder_id ?? "")} /></>}>
        {thread && <a href={scopeAddress(tree.workspace, thread.folder_id)}>{may("write") ? "Write the document of its folder" : "The document of its folder"}</a>}
      </Head>
      <Problem error={found.error} retry={found.reload} />
      {found.data && <InEffect workspace={tree.workspace} effective={e && { ...e, inherited: true }} of="for this thread" />}
      {e && <Text text={e.doc.content} label="The document in effect, read-only" />}
      {!found.data && !found.error && <Busy what="Reading the document" />}
    </>
  );
}
