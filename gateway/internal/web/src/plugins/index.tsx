// The plugins: what needs attention first, then all of them; and each one with its hooks.
import type { JSX } from "preact";
import { address, route } from "../router";
import { ago, bytes, count, milliseconds, number } from "../ui/format";
import { Busy, Facts, Head, Problem, Shown, Tag, Time } from "../ui/parts";
import { Table, type Column } from "../ui/table";
import { useCall, useEvery, useTitle } from "../ui/use";
import { PluginDetail } from "./detail";
import { LastErrorText, load } from "./facts";
import { Issues } from "./issues";
import { Reloaded, ReloadButton } from "./reload";
import { pluginTone, type Plugin, type Status } from "./words";

const refreshTime = 2_000;

export function Plugins(): JSX.Element {
  const status = useCall("status", {});
  useEvery(refreshTime, status.reload);
  const name = route.value.path[1];
  return (
    <>
      <Problem error={status.error} retry={status.reload} />
      {status.data ? <Shows name={name} status={status.data} reload={status.reload} /> : !status.error && <Busy what="Asking for the status" />}
    </>
  );
}

function Shows({ name, status, reload }: { name: string | undefined; status: Status; reload: () => void }): JSX.Element {
  return name === undefined ? <List status={status} reload={reload} /> : <PluginDetail key={name} name={name} status={status} reload={reload} />;
}

function List({ status: s, reload }: { status: Status; reload: () => void }): JSX.Element {
  useTitle("Plugins");
  return (
    <>
      <Head title="Plugins" sub={<>{count(s.plugins.length, "plugin", "plugins")}, {count(s.hooks.length, "hook", "hooks")}, up since <Time at={s.started_at} /></>}>
        <ReloadButton after={reload} />
      </Head>
      <Issues issues={s.issues} ran={s.hooks.some((h) => h.runs + h.cached > 0)} />
      {s.reload && !s.reload.ok && <section class="card" aria-label="Last reload"><h2>The last reload was refused</h2><Reloaded result={s.reload} /></section>}
      <Table label="Plugins" columns={columns(s)} rows={s.plugins} rowKey={(p) => p.plugin} />
      <Above status={s} />
      <div class="columns">
        <div class="part"><h2 id="phases">Phases</h2><Phases status={s} /></div>
        <div class="part"><h2 id="gateway">Gateway</h2><div class="card"><GatewayFacts status={s} /></div></div>
      </div>
    </>
  );
}

function Above({ status }: { status: Status }): JSX.Element | null {
  const rows = Object.entries(status.above).flatMap(([agent, list]) => list.map((row) => ({ agent, ...row })));
  const list: Column<(typeof rows)[number]>[] = [
    { name: "Agent", cell: (r) => r.agent },
    { name: "What", cell: (r) => <>{r.kind} <code><Shown text={r.id} /></code><br /><small class="quiet"><Shown text={r.path} /></small></> },
    { name: "Can", cell: (r) => <Shown text={r.can.join(", ") || "nothing"} /> },
    { name: "Last word", wide: true, cell: (r) => (r.before ? <Tag tone="warn">yes</Tag> : "no") },
  ];
  return rows.length > 0 ? <div class="part"><h2 id="above">Above Grapnel's hooks</h2><Table label="Above Grapnel's hooks" columns={list} rows={rows} rowKey={(r) => r.agent + r.path + r.id} /></div> : null;
}

function columns(s: Status): Column<Plugin>[] {
  const hooks = (p: Plugin): number => s.hooks.filter((h) => h.plugin === p.plugin && h.subscription).length;
  return [
    { name: "Plugin", cell: (p) => <><a class="name" href={address(["plugins", p.plugin])}><Shown text={p.plugin} /></a><br /><small class="quiet">{p.version ? <Shown text={p.version} /> : "no version"}</small></> },
    { name: "State", cell: (p) => <Tag tone={pluginTone(p.state)} title={"since " + ago(p.since)}>{p.state}</Tag> },
    { name: "Sandbox", wide: true, cell: (p) => <>{p.tier || "–"}{(p.tier_lacks ?? []).length > 0 && <> <Tag tone="warn">partial</Tag></>}</> },
    { name: "Hooks", right: true, wide: true, cell: (p) => number(hooks(p)) },
    { name: "Memory", right: true, wide: true, cell: (p) => (p.memory_bytes > 0 ? bytes(p.memory_bytes) : "–") },
    { name: "Restarts", right: true, wide: true, cell: (p) => number(p.restarts) },
    { name: "Working", right: true, wide: true, cell: (p) => load(p) },
    { name: "p50", right: true, wide: true, cell: (p) => (p.took.count > 0 ? milliseconds(p.took.p50_ms) : "–") },
    { name: "p99", right: true, cell: (p) => (p.took.count > 0 ? milliseconds(p.took.p99_ms) : "–") },
    { name: "Last error", wide: true, cell: (p) => <LastErrorText error={p.last_error} /> },
  ];
}

function Phases({ status }: { status: Status }): JSX.Element {
  type Phase = Status["phases"][number];
  const took = (p: Phase, ms: number): string => (p.took.count > 0 ? milliseconds(ms) : "–");
  const list: Column<Phase>[] = [
    { name: "Phase", cell: (p) => <code>{p.phase}</code> },
    { name: "Dispatches", right: true, cell: (p) => number(p.dispatches) },
    { name: "Failed", right: true, cell: (p) => number(p.failed) },
    { name: "p50", right: true, wide: true, cell: (p) => took(p, p.took.p50_ms) },
    { name: "p99", right: true, cell: (p) => took(p, p.took.p99_ms) },
  ];
  const used = status.phases.filter((p) => p.dispatches > 0);
  return used.length > 0 ? <Table label="Phases" columns={list} rows={used} rowKey={(p) => p.phase} /> : <p class="quiet">No phase has been dispatched since the start.</p>;
}

function GatewayFacts({ status: s }: { status: Status }): JSX.Element {
  return (
    <Facts rows={[
      ["Version", s.version],
      ["Store", <Shown text={s.store} />],
      ["Configuration", <Shown text={s.config || "defaults"} />],
      ["Reloads", `${number(s.reloads)}, ${number(s.reloads_refused)} refused`],
      ["Connections", number(s.connections)],
      ["Open turns", `${number(s.kept_turns.open)} of ${number(s.kept_turns.limit)}`],
      ["Background work", <a href="/jobs">{number(s.queue.waiting + s.queue.scheduled)} waiting, {number(s.queue.running)} running, {number(s.queue.dead)} dead</a>],
      ["Manifests since the start", `${number(s.stats.manifests_kept)} kept` + (s.stats.manifests_not_kept > 0 ? `, ${number(s.stats.manifests_not_kept)} not kept` : "")],
    ]} />
  );
}
