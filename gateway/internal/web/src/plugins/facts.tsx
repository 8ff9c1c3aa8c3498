// What is known of one plugin.
import type { ComponentChildren, JSX } from "preact";
import { ago, bytes, milliseconds, number, short } from "../ui/format";
import { Facts, Shown, Tag, Time } from "../ui/parts";
import type { LastError, Plugin } from "./words";

type Grants = Plugin["grants"];

export function LastErrorText({ error }: { error: LastError | null }): JSX.Element {
  if (!error) return <span class="quiet">–</span>;
  return (
    <span class="lasterror">
      <code>{error.code}</code>{error.plugin_code && <> <code><Shown text={error.plugin_code} /></code></>} <span class="quiet">{ago(error.at)}</span>
      {error.message && <><br /><small><Shown text={error.message} /></small></>}
    </span>
  );
}

export const load = (p: Plugin): string => `${number(p.working)} of ${number(p.concurrency)}` + (p.waiting > 0 ? `, ${number(p.waiting)} waiting` : "");

export function PluginFacts({ plugin: p }: { plugin: Plugin }): JSX.Element {
  const rows: [string, ComponentChildren][] = [
    ["In this state since", <Time at={p.since} relative />],
    ["Version", p.version ? <Shown text={p.version} /> : "–"],
    ["Memory", p.memory_bytes > 0 ? bytes(p.memory_bytes) : "–"],
    ["Working", load(p)],
    ["Restarts", number(p.restarts) + (p.recycled ? `, ${number(p.recycled)} times replaced` : "")],
    ["Process started", <Time at={p.started_at} relative />],
    ["All calls: p50, p99", p.took.count > 0 ? `${milliseconds(p.took.p50_ms)} / ${milliseconds(p.took.p99_ms)}` : "–"],
    ["Wait for a slot: p50, p99", p.queued.count > 0 ? `${milliseconds(p.queued.p50_ms)} / ${milliseconds(p.queued.p99_ms)}` : "–"],
    ["Replies", p.replies.count > 0 ? `${number(p.replies.count)}, ${bytes(Math.round(p.replies.bytes / p.replies.count))} on average` : "–"],
    ["Configuration", "generation " + number(p.generation)],
    ["Program", p.sha256 && p.sha256 !== "builtin" ? <code title={p.sha256}>{short(p.sha256)}{p.pinned ? " pinned" : " not pinned"}</code> : "built in"],
    ["Last error", <LastErrorText error={p.last_error} />],
  ];
  if (p.next_start) rows.splice(1, 0, ["Next start", <Time at={p.next_start} />]);
  for (const [name, n] of [["Calls that hang", p.abandoned], ["Log lines dropped", p.log_lines_dropped], ["Answers dropped", p.answers_dropped]] as const) {
    if (n > 0) rows.push([name, number(n)]);
  }
  return <Facts rows={rows} />;
}

export function Sandbox({ plugin: p }: { plugin: Plugin }): JSX.Element {
  const lacks = p.tier_lacks ?? [];
  const absent = p.absent_paths ?? [];
  return (
    <section class="card" aria-labelledby="sandbox">
      <h2 id="sandbox">Sandbox and grants</h2>
      <p class="line">
        <Tag tone={lacks.length + absent.length > 0 ? "warn" : "plain"}>{p.tier || "no tier"}</Tag>
        {lacks.length + absent.length === 0 && <span class="quiet">Nothing is missing that was requested.</span>}
      </p>
      {lacks.length > 0 && <p>This kernel lacks: {lacks.map((l) => <code key={l} class="chip"><Shown text={l} /></code>)}</p>}
      {absent.length > 0 && <p>Granted paths that did not exist at the start: {absent.map((l) => <code key={l} class="chip"><Shown text={l} /></code>)}</p>}
      {p.requested === null && <p class="quiet">It has not described itself: what it asks for is not known.</p>}
      <GrantTable asked={p.requested ?? {}} granted={p.grants} />
      {p.grant_hash && <p class="quiet">Hash of its grants: <code title={p.grant_hash}>{short(p.grant_hash)}</code></p>}
    </section>
  );
}

const covers = (granted: string, name: string): boolean => granted === name || (granted.endsWith("*") && name.startsWith(granted.slice(0, -1)));

/** Grants by name: granted, and missing of what was asked for. */
function GrantTable({ asked, granted }: { asked: Grants; granted: Grants }): JSX.Element {
  const names = ([...new Set([...Object.keys(asked), ...Object.keys(granted)])] as (keyof Grants)[]).sort();
  if (names.length === 0) return <p class="quiet">Nothing was granted.</p>;
  return (
    <div class="scroll">
      <table>
        <thead><tr><th scope="col">Grant</th><th scope="col">Granted</th><th scope="col">Asked for, not granted</th></tr></thead>
        <tbody>
          {names.map((name) => {
            const has = granted[name] ?? [];
            const missing = (asked[name] ?? []).filter((v) => !has.some((g) => covers(g, v)));
            return <tr key={name}><td>{name}</td><td><Chips of={has} /></td><td>{missing.length > 0 && <Tag tone="warn">missing</Tag>} <Chips of={missing} /></td></tr>;
          })}
        </tbody>
      </table>
    </div>
  );
}

const Chips = ({ of }: { of: string[] }): JSX.Element => <>{of.length === 0 ? <span class="quiet">–</span> : of.map((v) => <code key={v} class="chip"><Shown text={v} /></code>)}</>;
