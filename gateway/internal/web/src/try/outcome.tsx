// What came of a dispatch.
import type { ComponentChildren, JSX } from "preact";
import { runTone } from "../plugins/words";
import { address } from "../router";
import type { Result } from "../rpc";
import type { Json } from "../schema";
import { may } from "../session";
import { count, milliseconds } from "../ui/format";
import { Folded } from "../ui/json";
import { Shown, Tag, type Tone } from "../ui/parts";
import { Table, type Column } from "../ui/table";

/** One exchange: the names beside the subscription are shown as they come. */
export interface Exchange {
  subscription: string;
  [name: string]: Json;
}

export type Outcome = NonNullable<Result<"phase/dispatch">> & { exchanges?: Exchange[] };
type Run = Outcome["runs"][number];

const verdictTones: Record<string, Tone> = { allow: "good", ask: "warn", deny: "bad" };

/** The outcome in a word. */
export function outcomeWord(o: Outcome): [Tone, string] {
  if (o.error) return ["bad", "failed: " + o.error.code];
  if (o.decision) return [verdictTones[o.decision.verdict] ?? "plain", o.decision.verdict];
  return ["good", "succeeded"];
}

export function OutcomeView({ outcome: o }: { outcome: Outcome }): JSX.Element {
  const [tone, word] = outcomeWord(o);
  const m = o.merged;
  return (
    <section class="outcome" aria-labelledby="outcome">
      <div class="line">
        <h2 id="outcome" tabIndex={-1}>Outcome of {o.phase}</h2> <Tag tone={tone}>{word}</Tag>
        <span class="quiet">{count(o.runs.length, "run", "runs")}, {milliseconds(o.budget.used_ms)} of {milliseconds(o.budget.granted_ms)}</span>
      </div>
      {o.error && <p class="card bad"><span><Shown text={o.error.subscription || o.phase} />: <Shown text={o.error.message} /></span></p>}
      {o.decision?.reasons.map((r, i) => <p key={i} class="line"><Tag tone={verdictTones[r.verdict] ?? "plain"}>{r.verdict}</Tag> <Shown text={r.reason} /> <span class="quiet"><Shown text={r.subscription + " " + r.reason_code} /></span></p>)}
      <Ledger runs={o.runs} contributions={o.contributions} />
      <div class="columns">
        <div class="card">
          <h3>What was merged</h3>
          <Merged name="Sections" rows={m.sections.map((s) => [s.section_id, s.owner, s.content])} />
          <Merged name="Contexts" rows={m.contexts.map((c) => [c.domain, c.owner, c.content])} />
          <Merged name="Rewrites" rows={m.rewrites.map((r) => [r.path, r.owner, JSON.stringify(r.value)])} />
          <Merged name="Policies" rows={m.policies.map((p) => [p.domain + "/" + p.key, p.owner, JSON.stringify(p.value)])} />
          <Merged name="Reminders" rows={m.reminders.map((r) => [r.type, r.owner, r.text])} />
          <Merged name="Tools" rows={m.tools.map((t) => [t.name, t.owner, ""])} />
          {o.contributions.length === 0 && <p class="quiet">No hook contributed anything.</p>}
        </div>
        <Exchanges of={o.exchanges} />
      </div>
      <Diagnostics of={o.diagnostics} />
      <Folded title="The whole outcome as JSON" value={o} />
    </section>
  );
}

function Merged({ name, rows }: { name: string; rows: [string, string, string][] }): JSX.Element | null {
  if (rows.length === 0) return null;
  return (
    <div class="merged">
      <h4>{name}</h4>
      {rows.map(([id, owner, text], i) => (
        <div key={i}>
          <p class="line"><code><Shown text={id} /></code> <small class="quiet">by <Shown text={owner} /></small></p>
          {text && <pre><Shown text={text} /></pre>}
        </div>
      ))}
    </div>
  );
}

function Exchanges({ of }: { of: Exchange[] | undefined }): JSX.Element {
  return (
    <div class="card">
      <h3>What each hook was sent and answered</h3>
      {of === undefined ? <p class="quiet">The gateway recorded no exchanges.</p> : of.length === 0 && <p class="quiet">No hook was called.</p>}
      {of?.map(({ subscription, ...rest }, i) => (
        <div key={i} class="exchange">
          <p class="line"><b><Shown text={subscription} /></b> <span class="quiet">{simple(rest)}</span></p>
          {Object.entries(rest).filter(([, v]) => v !== null && typeof v === "object").map(([name, v]) => <Folded key={name} title={name.replaceAll("_", " ")} value={v} />)}
        </div>
      ))}
    </div>
  );
}

const simple = (rest: { [name: string]: Json }): ComponentChildren =>
  Object.entries(rest).filter(([, v]) => (typeof v === "string" && v !== "") || typeof v === "number").map(([name, v]) => <span key={name}>{name.endsWith("_ms") ? "" : name.replaceAll("_", " ") + " "}{name.endsWith("_ms") ? milliseconds(Number(v)) : <Shown text={String(v)} />} </span>);

function Diagnostics({ of }: { of: Outcome["diagnostics"] }): JSX.Element | null {
  if (of.length === 0) return null;
  const tones: Record<string, Tone> = { info: "info", warning: "warn", error: "bad" };
  return (
    <div class="card">
      <h3>Diagnostics</h3>
      {of.map((d, i) => <p key={i} class="line"><Tag tone={tones[d.severity] ?? "plain"}>{d.severity}</Tag> <code>{d.code}</code> <Shown text={d.message} /> <span class="quiet"><Shown text={d.subscription || d.plugin} /></span></p>)}
    </div>
  );
}

const stages = ["transform", "contribute", "validate", "observe", "tool", "host"];

/** A run with where it began: hooks of one layer run at the same time, stages and their layers one after the other. */
interface Placed {
  run: Run;
  begin: number;
}

function place(runs: Run[]): { rows: Placed[]; total: number } {
  const most = 1 + Math.max(...runs.map((r) => r.layer));
  const step = (r: Run): number => stages.indexOf(r.stage) * most + r.layer;
  const steps = [...new Set(runs.map(step))].sort((a, b) => a - b);
  const begins = new Map<number, number>();
  let total = 0;
  for (const s of steps) {
    begins.set(s, total);
    total += Math.max(...runs.filter((r) => step(r) === s).map((r) => r.queue_ms + r.duration_ms));
  }
  return { rows: runs.map((run) => ({ run, begin: begins.get(step(run)) ?? 0 })), total: Math.max(total, 0.001) };
}

function Ledger({ runs, contributions }: { runs: Run[]; contributions: Outcome["contributions"] }): JSX.Element {
  if (runs.length === 0) return <p class="quiet">No hook subscribes to this phase.</p>;
  const { rows, total } = place(runs);
  const kinds = (r: Run): string => [...new Set(contributions.filter((c) => c.subscription === r.subscription).map((c) => c.kind.replaceAll("_", " ")))].join(", ");
  const columns: Column<Placed>[] = [
    { name: "Hook", cell: ({ run: r }) => <><HookLink run={r} /><br /><small class="quiet">{r.stage}</small></> },
    { name: "State", cell: ({ run: r }) => <><Tag tone={runTone(r.state)}>{r.state.replace("_", " ")}</Tag>{r.verdict && <> <Tag tone={verdictTones[r.verdict] ?? "plain"}>{r.verdict}</Tag></>}{r.code && <><br /><code>{r.code}</code></>}{r.plugin_code && <> <code><Shown text={r.plugin_code} /></code></>}</> },
    { name: "Time", right: true, cell: ({ run: r }) => milliseconds(r.duration_ms) },
    { name: "Timeline, " + milliseconds(total), cell: (p) => <Bar placed={p} total={total} /> },
    { name: "Contributed", wide: true, cell: ({ run: r }) => kinds(r) || <span class="quiet">–</span> },
  ];
  return <Table label="Ledger" columns={columns} rows={rows} rowKey={(p) => p.run.subscription + p.run.phase} />;
}

function HookLink({ run: r }: { run: Run }): JSX.Element {
  const name = <Shown text={r.subscription} />;
  return may("admin") && r.plugin ? <a class="name" href={address(["plugins", r.plugin])}>{name}</a> : <span class="name">{name}</span>;
}

const barWidth = 220;

function Bar({ placed: { run: r, begin }, total }: { placed: Placed; total: number }): JSX.Element {
  const x = (ms: number): number => (ms / total) * barWidth;
  const label = `begins at ${milliseconds(begin)}, waits ${milliseconds(r.queue_ms)}, runs ${milliseconds(r.duration_ms)}`;
  return (
    <svg class="bar" viewBox={`0 0 ${barWidth} 14`} preserveAspectRatio="none" role="img" aria-label={label}>
      <title>{label}</title>
      <line class="axis" x1="0" x2={barWidth} y1="13" y2="13" />
      <rect class="queue" x={x(begin)} y="5" width={x(r.queue_ms)} height="4" />
      <rect class={"run " + runTone(r.state)} x={x(begin + r.queue_ms)} y="2" width={Math.max(1.5, x(r.duration_ms))} height="10" rx="1.5" />
    </svg>
  );
}
