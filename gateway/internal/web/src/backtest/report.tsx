// What came of a backtest.
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { count, number } from "../ui/format";
import { Dialog, Facts, Shown, Tag, Time, type Tone } from "../ui/parts";
import { Table, type Column } from "../ui/table";
import type { Report, Row } from "./run";

const pageSize = 50;
const tones: Record<string, Tone> = { allow: "good", ask: "warn", deny: "bad", fail: "bad", rewrite: "info" };

export function ReportView({ report: r }: { report: Report }): JSX.Element {
  return (
    <section class="backtest" aria-label="Report">
      <p class="verdict"><strong><Shown text={r.summary} /></strong></p>
      {r.partial && <p><Tag tone="warn">partial</Tag> It was interrupted: the rest was not judged.</p>}
      {r.offered && <p>No rules are in force: those that come along judged. To put them in force: <code>grapnel rules add {r.offered.join(" ")}</code></p>}
      {r.hint && <p><Tag tone="warn">look</Tag> <Shown text={r.hint} /></p>}
      <Days days={r.days} />
      <div class="columns">
        <Part title="Hooks and reasons" there={r.causes.length > 0}>
          <Table label="Hooks and reasons" rows={r.causes.slice(0, 20)} rowKey={(c) => JSON.stringify([c.hook, c.verdict, c.why])} columns={[
            { name: "Calls", right: true, cell: (c) => number(c.calls) }, { name: "Verdict", cell: (c) => <Verdict of={c.verdict} /> },
            { name: "Hook", cell: (c) => <Shown text={c.hook} /> }, { name: "Why", cell: (c) => <Shown text={c.why} /> },
          ]} />
        </Part>
        <Part title="Commonest shapes" there={r.shapes.length > 0}>
          <Table label="Commonest shapes" rows={r.shapes} rowKey={(s) => s.shape} columns={[
            { name: "Calls", right: true, cell: (s) => number(s.calls) }, { name: "Shape", cell: (s) => <code><Shown text={s.shape} /></code> },
          ]} />
        </Part>
      </div>
      <Rows report={r} />
      <Facts rows={[
        ["Read", <Shown text={[...r.read.agents, ...r.read.versions].join(", ") || "–"} />],
        ["Not read", <Shown text={[...r.read.omitted, ...r.read.problems.map((p) => p.path + ": " + p.why)].join(", ") || "–"} />],
        ["Plugins not run", <Shown text={r.not_run.map((n) => n.plugin + ": " + n.why).join("; ") || "–"} />],
        ["Judged before", count(r.read.before, "file", "files")],
      ]} />
    </section>
  );
}

function Part({ title, there, children }: { title: string; there: boolean; children: ComponentChildren }): JSX.Element | null {
  return there ? <section class="part"><h2>{title}</h2>{children}</section> : null;
}

const Verdict = ({ of }: { of: string }): JSX.Element => <Tag tone={tones[of] ?? "plain"}>{of}</Tag>;

const dayTime = 86_400_000;
const mostDays = 90;

/** Calls of each day, and below them those that have a row, each by its own scale. */
function Days({ days }: { days: Report["days"] }): JSX.Element | null {
  const known = new Map(days.filter((d) => d.day !== "unknown").map((d) => [Date.parse(d.day), d]));
  const last = Math.max(...known.keys()), n = Math.min(mostDays, (last - Math.min(...known.keys())) / dayTime + 1);
  if (known.size < 2) return null;
  const shown = Array.from({ length: n }, (_, i) => known.get(last - (n - 1 - i) * dayTime));
  const name = (i: number): string => new Date(last - (n - 1 - i) * dayTime).toISOString().slice(0, 10);
  const calls = Math.max(...shown.map((d) => d?.judged ?? 0)), hits = Math.max(...shown.map((d) => d?.hits ?? 0));
  const bar = (i: number, value: number, most: number, bottom: number, tone: string): JSX.Element | false =>
    value > 0 && <rect class={tone} x={i * 10 + 1} width={8} y={bottom - Math.max(1, (30 * value) / most)} height={Math.max(1, (30 * value) / most)} />;
  return (
    <figure class="card days">
      <svg viewBox={`0 0 ${Math.max(300, n * 10)} 66`} preserveAspectRatio="none" role="img" aria-label={`Calls of each day, up to ${calls}, and below them hits, up to ${hits}`}>
        {shown.map((d, i) => d && <g key={i}><title>{`${d.day}: ${count(d.judged, "call", "calls")}, ${count(d.hits, "hit", "hits")}`}</title>{bar(i, d.judged, calls, 31, "calls")}{bar(i, d.hits, hits, 65, "hits")}</g>)}
      </svg>
      <figcaption class="quiet">{name(0)} to {name(n - 1)}, a column a day: calls up to {number(calls)}, hits up to {number(hits)}</figcaption>
    </figure>
  );
}

function Rows({ report: r }: { report: Report }): JSX.Element {
  const [limit, setLimit] = useState(pageSize);
  const [open, show] = useState<Row>();
  const all = r.rows.length + r.rows_omitted;
  const columns: Column<Row>[] = [
    { name: "Time", wide: true, cell: (c) => <Time at={c.time} /> },
    { name: "Agent", wide: true, cell: (c) => c.agent },
    { name: "Verdict", cell: (c) => <>{c.was && c.was + " → "}<Verdict of={c.verdict} /></> },
    { name: "Call", cell: (c) => <button type="button" class="link call" onClick={() => show(c)}><Shown text={c.call || c.prompt || "Show"} /></button> },
    { name: "Became", wide: true, cell: (c) => c.became || "–" },
  ];
  return (
    <Part title={all === r.rows.length ? count(all, "row", "rows") : `The newest ${number(r.rows.length)} of ${number(all)} rows`} there={all > 0}>
      <Table label="Calls" columns={columns} rows={r.rows.slice(0, limit)} rowKey={(c) => String(r.rows.indexOf(c))} />
      {limit < r.rows.length && <p><button type="button" onClick={() => setLimit(limit + pageSize)}>Show more</button></p>}
      {all > r.rows.length && <p class="quiet">All of them: <code>grapnel backtest --json</code></p>}
      {open && <Dialog title={open.tool || "Prompt"} close={() => show(undefined)}><Whole row={open} /><div class="buttons"><button type="button" onClick={() => show(undefined)}>Close</button></div></Dialog>}
    </Part>
  );
}

function Whole({ row: c }: { row: Row }): JSX.Element {
  return (
    <>
      <pre tabIndex={0}><Shown text={c.call} /></pre>
      <Facts rows={[
        ["Verdict", <>{c.was && c.was + " → "}<Verdict of={c.verdict} /></>], ["What became of it", <Shown text={[c.became, c.refused].filter(Boolean).join(", by ") || "the transcript does not say"} />],
        ["Time", <Time at={c.time} />], ["Agent", c.agent], ["Project", <Shown text={c.dir || "–"} />], ["Session", <Shown text={c.session} />],
      ]} />
      <div><h3>Decided by</h3>{c.by.map((d, i) => <p key={i}><Shown text={d.hook || "grapnel"} />: <Shown text={d.reason} /> <code class="quiet"><Shown text={d.code} /></code></p>)}</div>
      {c.prompt && <div><h3>Prompt</h3><p><Shown text={c.prompt} /></p></div>}
    </>
  );
}
