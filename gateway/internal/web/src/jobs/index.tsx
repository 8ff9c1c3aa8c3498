// Background work: what waits, what runs, and what was given up.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { mayOperate } from "../plugins/reload";
import { call, type Result } from "../rpc";
import { address, route } from "../router";
import { Confirm, useAction, useChoice, useFocusKept } from "../ui/action";
import { ago, count, number } from "../ui/format";
import { Busy, Empty, Head, Problem, Shown, Tag, Tabs, Time, type Tone } from "../ui/parts";
import { Table, type Column } from "../ui/table";
import { useCall, useEvery, useTitle } from "../ui/use";

const refreshTime = 2_000;
const pageSize = 50;
const states = ["waiting", "scheduled", "running", "dead"] as const;
const tones: Record<string, Tone> = { waiting: "plain", scheduled: "plain", running: "info", dead: "bad" };

type Listed = Result<"jobs/list">;
type Job = Listed["jobs"][number];

export function Jobs(): JSX.Element {
  useTitle("Jobs");
  const state = route.value.query.get("state") ?? "";
  const [limit, setLimit] = useState(pageSize);
  const list = useCall("jobs/list", { ...(state ? { state } : {}), limit });
  useEvery(refreshTime, list.reload);
  return (
    <>
      <Head title="Jobs" sub="What hooks do in the background, after the turn has gone on." />
      <Filters counts={list.data?.counts} state={state} />
      <Problem error={list.error} retry={list.reload} />
      {list.data ? <List key={state} list={list.data} state={state} reload={list.reload} /> : list.loading && <Busy what="Asking for the jobs" />}
      {!!list.data?.next && <p><button type="button" onClick={() => setLimit(limit + pageSize)}>Show more</button></p>}
    </>
  );
}

function Filters({ counts, state }: { counts: Listed["counts"] | undefined; state: string }): JSX.Element {
  const tab = (id: (typeof states)[number]): { id: string; label: string; to: string } => ({
    id,
    label: id[0]?.toUpperCase() + id.slice(1) + (counts ? " " + number(counts[id]) : ""),
    to: address(["jobs"], { state: id }),
  });
  return <Tabs label="State" current={state} tabs={[{ id: "", label: "Unfinished", to: address(["jobs"]) }, ...states.map(tab)]} />;
}

function List({ list, state, reload }: { list: Listed; state: string; reload: () => void }): JSX.Element {
  // Only dead jobs can be retried or removed; the others are being worked on.
  const dead = list.jobs.filter((j) => j.state === "dead");
  const choice = useChoice(dead.map((j) => j.id));
  useFocusKept(dead.length > 0);
  if (list.jobs.length === 0) return <Empty title={state ? "No job is " + state : "No background work"}><p>{state === "dead" ? "Nothing was given up." : "Observing hooks and jobs that plugins ask for show up here."}</p></Empty>;
  const columns = mayOperate() ? [chooser(choice), ...jobColumns] : jobColumns;
  return (
    <>
      {mayOperate() && <Change choice={choice} reload={reload} dead={dead} />}
      <Table label="Jobs" columns={columns} rows={list.jobs} rowKey={(j) => String(j.id)} rowClass={(j) => (choice.ids.includes(j.id) ? "chosen" : "")} />
    </>
  );
}

function chooser(choice: ReturnType<typeof useChoice<number>>): Column<Job> {
  return {
    name: "Select",
    cell: (j) => (j.state === "dead" ? <input type="checkbox" aria-label={"Select job " + j.id} checked={choice.has(j.id)} onChange={() => choice.toggle(j.id)} /> : <span class="hidden">cannot be selected</span>),
  };
}

const jobColumns: Column<Job>[] = [
  { name: "Job", right: true, wide: true, cell: (j) => j.id },
  { name: "State", cell: (j) => <Tag tone={tones[j.state] ?? "plain"}>{j.state}</Tag> },
  { name: "Work", cell: (j) => <><span class="name"><Shown text={j.subscription} /></span><br /><small class="quiet"><Shown text={j.kind || j.phase} /></small></> },
  { name: "Turn", wide: true, cell: (j) => <small><Shown text={[j.workspace_id, j.thread_id, j.turn_id].filter(Boolean).join(" / ")} /></small> },
  { name: "Tries", right: true, wide: true, cell: (j) => <>{number(j.attempts)}{j.requeued > 0 && <span class="quiet"> +{number(j.requeued)} put off</span>}</> },
  { name: "Last failure", cell: (j) => (j.code ? <code>{j.code}</code> : <span class="quiet">–</span>) },
  { name: "Added", wide: true, cell: (j) => <Time at={j.added_at} relative /> },
  { name: "When", cell: (j) => when(j) },
];

function when(j: Job): JSX.Element {
  if (j.ended_at) return <>discarded <Time at={j.ended_at} relative /></>;
  if (j.state === "scheduled") return <>at <Time at={j.due_at} /></>;
  if (j.state === "running") return <>{j.begun_at ? "since " : "now"}{j.begun_at && <Time at={j.begun_at} />}</>;
  return <>due {ago(j.due_at)}</>;
}

function Change({ choice, dead, reload }: { choice: ReturnType<typeof useChoice<number>>; dead: Job[]; reload: () => void }): JSX.Element | null {
  const [asks, ask] = useState(false);
  const ids = choice.ids;
  const retry = useAction(() => call("jobs/retry", { ids }).then(() => {
    choice.all(false);
    reload();
  }));
  const remove = (): Promise<void> => call("jobs/remove", { ids }).then(() => {
    choice.all(false);
    reload();
  });
  if (dead.length === 0) return null;
  return (
    <div class="tools" role="group" aria-label="Dead jobs">
      <label class="check"><input type="checkbox" checked={ids.length === dead.length} onChange={(e) => choice.all(e.currentTarget.checked)} /> All dead jobs shown</label>
      <button type="button" disabled={ids.length === 0} aria-disabled={retry.busy} onClick={retry.run}>Retry {ids.length || ""}</button>
      <button type="button" class="danger" disabled={ids.length === 0} onClick={() => ask(true)}>Remove {ids.length || ""}…</button>
      <Problem error={retry.error} />
      {asks && (
        <Confirm title={"Remove " + count(ids.length, "job", "jobs") + "?"} verb="Remove" act={remove} close={() => ask(false)}>
          <p>The work is not done any more. This cannot be undone.</p>
          <ul class="named">{dead.filter((j) => choice.has(j.id)).slice(0, 10).map((j) => <li key={j.id}>{j.id} <Shown text={j.subscription} /> <code>{j.code}</code></li>)}</ul>
          {ids.length > 10 && <p class="quiet">and {number(ids.length - 10)} more</p>}
        </Confirm>
      )}
    </div>
  );
}
