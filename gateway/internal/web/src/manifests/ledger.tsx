// The ledger: which hook ran when, in its phase and layer, against the time that it had.
import type { JSX } from "preact";
import { address, navigate, route } from "../router";
import { milliseconds, number } from "../ui/format";
import { Empty, Shown, Tag } from "../ui/parts";
import { Table } from "../ui/table";
import { plain } from "../ui/unseen";
import { runTone, type Manifest, type Run } from "./words";

interface Lane {
  run: Run;
  from: number; // in ms, from the beginning of the phase
  to: number;
}

interface Block {
  phase: string;
  lanes: Lane[];
  used: number;
  granted: number;
}

/** Runs by phase. Those of a layer run at once, and a layer begins when the one before it has ended. */
export function blocksOf(m: Manifest): Block[] {
  const blocks: Block[] = [];
  const used = new Map<string, number>();
  for (const run of m.runs) {
    let block = blocks.at(-1);
    if (block?.phase !== run.phase) {
      const nth = used.get(run.phase) ?? 0;
      used.set(run.phase, nth + 1);
      const budget = m.budgets.phases.filter((b) => b.phase === run.phase)[nth];
      block = { phase: run.phase, lanes: [], used: budget?.used_ms ?? 0, granted: budget?.granted_ms ?? 0 };
      blocks.push(block);
    }
    const before = block.lanes.filter((l) => l.run.layer < run.layer);
    const from = Math.max(0, ...before.map((l) => l.to)) + run.queue_ms;
    block.lanes.push({ run, from, to: from + run.duration_ms });
  }
  return blocks;
}

export function Ledger({ m }: { m: Manifest }): JSX.Element {
  if (m.runs.length === 0) return <Empty title="No hook was subscribed to these phases" />;
  const chosen = route.value.query.get("run") ?? "";
  return (
    <>
      <div class="timelines">{blocksOf(m).map((b, i) => <Timeline key={i} block={b} chosen={chosen} choose={(run) => navigate(address(["manifests", m.manifest_id], { tab: "ledger", run }), true)} />)}</div>
      <Table label="Hook runs" rows={m.runs.map((r, i) => ({ ...r, i }))} rowKey={(r) => String(r.i)} rowClass={(r) => (r.subscription === chosen ? "chosen" : "")} columns={[
        { name: "Hook", cell: (r) => <Shown text={r.subscription} /> },
        { name: "Phase", wide: true, cell: (r) => <code>{r.phase}</code> },
        { name: "Stage", wide: true, cell: (r) => r.stage },
        { name: "State", cell: (r) => <><Tag tone={runTone(r.state)}>{r.state.replaceAll("_", " ")}</Tag> {r.code && <code class="quiet">{r.code}</code>}</> },
        { name: "Took", right: true, cell: (r) => milliseconds(r.duration_ms) },
        { name: "Waited", right: true, wide: true, cell: (r) => (r.queue_ms ? milliseconds(r.queue_ms) : "–") },
        { name: "Brought", right: true, wide: true, cell: (r) => number(r.contributions.length) },
        { name: "Cut", wide: true, cell: (r) => (r.cut.length ? <Tag tone="warn">{r.cut.map((c) => `${number(c.kept)} of ${number(c.original)}`).join(", ")}</Tag> : "–") },
      ]} />
    </>
  );
}

const row = 20;
const label = 190;
const width = 720;

function Timeline({ block, chosen, choose }: { block: Block; chosen: string; choose: (run: string) => void }): JSX.Element {
  const longest = Math.max(block.used, ...block.lanes.map((l) => l.to), 0.001);
  // The budget is drawn where it is near: a call of 2 ms under 1,000 would be a dot.
  const near = block.granted > 0 && block.granted < 4 * longest;
  const scale = width / (near ? Math.max(longest, block.granted) : longest);
  const height = block.lanes.length * row + 22;
  return (
    <figure class="card timeline" tabIndex={0} aria-label={"Timeline of " + block.phase}>
      <figcaption>
        <h2><code>{block.phase}</code></h2>
        <span class="quiet">{milliseconds(block.used)} of {block.granted ? milliseconds(block.granted) : "no budget"}</span>
      </figcaption>
      <svg viewBox={`0 0 ${label + width + 60} ${height}`} role="group" aria-label={"Runs of " + block.phase}>
        {near && <line class="budget" x1={label + block.granted * scale} x2={label + block.granted * scale} y1={0} y2={height - 16} />}
        {near && <text class="axis" x={label + block.granted * scale} y={height - 4} text-anchor="end">budget {milliseconds(block.granted)}</text>}
        <text class="axis" x={label} y={height - 4}>0</text>
        {!near && <text class="axis" x={label + width} y={height - 4} text-anchor="end">{milliseconds(longest)}{block.granted > 0 && `; the budget of ${milliseconds(block.granted)} is far off`}</text>}
        {block.lanes.map((l, i) => (
          <g key={i} class={"lane " + runTone(l.run.state) + (l.run.subscription === chosen ? " chosen" : "")} role="button" tabindex={0}
            aria-label={`${clip(l.run.subscription)}${milliseconds(l.run.duration_ms)} ${l.run.state}, layer ${l.run.layer}`}
            onClick={() => choose(l.run.subscription)} onKeyDown={(e) => (e.key === "Enter" || e.key === " ") && (e.preventDefault(), choose(l.run.subscription))}>
            <text x={label - 8} y={i * row + 14} text-anchor="end">{clip(l.run.subscription)}</text>
            <rect x={label + l.from * scale} y={i * row + 3} width={Math.max(2, (l.to - l.from) * scale)} height={row - 7} rx="3" />
            <text class="took" x={label + l.to * scale + 5} y={i * row + 14}>{milliseconds(l.run.duration_ms)}</text>
          </g>
        ))}
      </svg>
    </figure>
  );
}

const clip = (text: string): string => plain(text.length > 26 ? text.slice(0, 25) + "…" : text);
