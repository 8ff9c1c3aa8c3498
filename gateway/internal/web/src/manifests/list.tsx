// The list of kept manifests: live, and of any length.
import type { JSX } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { call, isCode, whenOnline, type Params } from "../rpc";
import { address, navigate, route } from "../router";
import { count, number, percent } from "../ui/format";
import { Busy, Empty, Head, Problem, Shown, Tag, Time } from "../ui/parts";
import { LongTable, type Column } from "../ui/table";
import { plain } from "../ui/unseen";
import { useCall, useNotification, useTitle } from "../ui/use";
import type { Row } from "./words";

const page = 200;

export function List(): JSX.Element {
  useTitle("Manifests");
  const workspace = route.value.query.get("workspace") ?? "";
  const thread = route.value.query.get("thread") ?? "";
  const list = useOverview(workspace, thread);
  const threads = useCall("manifest/threads", { ...(workspace && { workspace_id: workspace }), limit: page }).data?.threads;
  const narrow = (w: string, t: string): void => navigate(address(["manifests"], { workspace: w, thread: t }), true);
  return (
    <>
      <Head title="Manifests" sub="Every prompt that was compiled: what went in, from whom, and what was left out.">
        <Filter label="Workspace" value={workspace} set={(w) => narrow(w, thread)} known={[...new Set(threads?.map((t) => t.workspace_id))].map((id) => ({ id, words: "" }))} />
        <Filter label="Thread" value={thread} set={(t) => narrow(workspace, t)}
          known={(threads ?? []).map((t) => ({ id: t.thread_id, words: [t.title, count(t.manifests, "manifest", "manifests")].filter(Boolean).join(", ") }))} />
        <form class="filter" role="search" onSubmit={(e) => { e.preventDefault(); navigate(address(["manifests", "search"], { sentence: new FormData(e.currentTarget).get("sentence") as string, workspace, thread })); }}>
          <input type="search" name="sentence" aria-label="Words of a prompt" placeholder="words of a prompt" size={18} />
          <button type="submit">Search</button>
        </form>
        <a class="button" href="/manifests/search">More fields</a>
        {thread && <a class="button" href={address(["manifests", "blame"], { workspace, thread })}>Cache breaks</a>}
        <a class="button" href={address(["manifests", "verify"], { workspace, thread })}>Verify</a>
      </Head>
      <Problem error={list.error} retry={list.again} />
      {!list.rows && !list.error && <Busy what="Reading manifests" />}
      {list.rows?.length === 0 && (
        <Empty title="There are no manifests here">
          <p>{workspace || thread ? "None is of this workspace and thread." : "Each compiled prompt leaves one, as soon as a host compiles turns."}</p>
        </Empty>
      )}
      {!!list.rows?.length && (
        <LongTable label="Manifests, newest first" columns={columns} rows={list.rows} rowKey={(r) => r.manifest_id} rowHeight={38} narrowHeight={84} near={list.older} />
      )}
    </>
  );
}

const columns: Column<Row>[] = [
  { name: "Time", width: "9.5rem", cell: (r) => <Time at={r.created_at} /> },
  { name: "Turn", width: "minmax(5rem, 1.2fr)", cell: (r) => <a href={address(["manifests", r.manifest_id])}><Shown text={r.thread_id + " / " + r.turn_id} /></a> },
  { name: "Workspace", wide: true, width: "8rem", cell: (r) => <Shown text={r.workspace_id || "–"} /> },
  { name: "Tokens", right: true, width: "5rem", cell: (r) => (r.kind !== "prompt" ? <span class="quiet">–</span> : r.tokens == null ? <span class="quiet" title="characters">{number(r.chars)} ch</span> : number(r.tokens)) },
  { name: "Cached", right: true, wide: true, width: "8.5rem", cell: cached },
  { name: "Marks", below: true, width: "minmax(5rem, 1.2fr)", cell: marks },
];

function cached(r: Row): JSX.Element {
  const share = (n: number | null, all: number | null): string => (n == null ? "–" : all ? percent(n, all) : number(n));
  return <span title="predicted, and what the provider reported">{share(r.cache_predicted, r.tokens)} → {share(r.cache_actual, r.input_tokens)}</span>;
}

function marks(r: Row): JSX.Element {
  return (
    <>
      {r.kind !== "prompt" && <Tag tone="plain">{r.kind}</Tag>}
      {r.blocked && <Tag tone="bad">blocked</Tag>}
      {r.denied && <Tag tone="warn">denied</Tag>}
      {r.failed_runs > 0 && <Tag tone="bad">{count(r.failed_runs, "failure", "failures")}</Tag>}
      {r.cut_sections > 0 && <Tag tone="warn">{number(r.cut_sections)} cut</Tag>}
      {r.omitted > 0 && <Tag tone="info">{number(r.omitted)} omitted</Tag>}
    </>
  );
}

/** A field that suggests what is known. */
function Filter({ label, value, set, known }: { label: string; value: string; set: (v: string) => void; known: { id: string; words: string }[] }): JSX.Element {
  return (
    <label class="filter">
      <span>{label}</span>
      <input type="search" value={value} placeholder="all" size={10} list={"known-" + label} onChange={(e) => set(e.currentTarget.value.trim())} />
      <datalist id={"known-" + label}>{known.map(({ id, words }) => <option key={id} value={id}>{plain(words)}</option>)}</datalist>
    </label>
  );
}

/** The rows that were read so far, newest first. New ones come by themselves; older ones when the end comes near. */
function useOverview(workspace: string, thread: string): { rows?: Row[]; error: unknown; older(): void; again(): void } {
  const [rows, setRows] = useState<Row[]>();
  const [more, setMore] = useState(false);
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const [round, setRound] = useState(0);
  const filter: Params<"manifest/overview"> = { ...(workspace && { workspace_id: workspace }), ...(thread && { thread_id: thread }) };

  useLayoutEffect(() => {
    let mine = true;
    setRows(undefined);
    setError(undefined);
    const leave = whenOnline(() => {
      const watched = workspace ? { workspace_id: workspace } : {};
      call("manifest/watch", watched).catch(() => undefined); // the list works without
      call("manifest/overview", { ...filter, limit: page }).then(
        (r) => {
          if (!mine) return;
          setRows(r.rows);
          setMore(r.more);
        },
        (err) => mine && !isCode(err, "offline") && setError(err),
      );
    });
    return () => {
      mine = false;
      leave();
      call("manifest/unwatch", workspace ? { workspace_id: workspace } : {}).catch(() => undefined);
    };
  }, [workspace, thread, round]);

  useNotification("manifest/kept", ({ rows: kept }) => {
    const fresh = kept.filter((r) => (!workspace || r.workspace_id === workspace) && (!thread || r.thread_id === thread));
    setRows((old) => {
      const seen = new Set(old?.slice(0, page).map((r) => r.manifest_id));
      return old && [...fresh.filter((r) => !seen.has(r.manifest_id)).reverse(), ...old];
    });
  });

  const older = (): void => {
    const last = rows?.at(-1);
    if (!more || busy || !last) return;
    setBusy(true);
    call("manifest/overview", { ...filter, before: last.manifest_id, limit: page }).then(
      (r) => {
        setRows((old) => [...(old ?? []), ...r.rows]);
        setMore(r.more);
        setBusy(false);
      },
      (err) => {
        setError(err);
        setBusy(false);
      },
    );
  };
  return { rows, error, older, again: () => setRound(round + 1) };
}
