// What the gateway's engine does, as it happens.
import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { address, navigate, route } from "../router";
import { number } from "../ui/format";
import { jsonText } from "../ui/json";
import { Dialog, Empty, Head, Problem, Shown, Tag, Time, type Tone } from "../ui/parts";
import { LongTable, type Column } from "../ui/table";
import { useTitle } from "../ui/use";
import { useEvents, type Row } from "./stream";

const kinds = ["plugin", "run", "fail_open", "dropped", "log", "audit", "diagnostic", "job", "reload", "dispatch", "breaker", "abandoned", "manifest"];
const levels = ["debug", "info", "warn", "error"];
const tones: Record<string, Tone> = { debug: "plain", info: "info", warn: "warn", error: "bad" };
const rowHeight = 30;

const levelOf = (e: Row): string => e.level.toLowerCase();

export function Events(): JSX.Element {
  useTitle("Events");
  const [paused, pause] = useState(false);
  const [open, show] = useState<Row>();
  const events = useEvents(paused);
  const q = route.value.query;
  const kind = q.get("kind") ?? "", level = q.get("level") ?? "", plugin = q.get("plugin") ?? "";
  const rows = useMemo(() => events.rows.filter((e) =>
    (kind === "" || e.kind === kind) && (plugin === "" || e.plugin === plugin) && (level === "" || levels.indexOf(levelOf(e)) >= levels.indexOf(level))),
  [events.rows, kind, level, plugin]);
  const plugins = useMemo(() => [...new Set(events.rows.map((e) => e.plugin).filter(Boolean))].sort(), [events.rows]);
  return (
    <>
      <Head title="Events" sub={<>{number(rows.length)}{rows.length < events.rows.length && " of " + number(events.rows.length)} shown, the newest first{paused && `; paused, ${number(events.waiting)} waiting`}</>}>
        <Filter name="kind" label="Kind" value={kind} options={kinds} />
        <Filter name="level" label="Level" value={level} options={levels} suffix=" and worse" />
        <Filter name="plugin" label="Plugin" value={plugin} options={plugin && !plugins.includes(plugin) ? [plugin, ...plugins] : plugins} />
        <button type="button" aria-pressed={paused} class={paused ? "primary" : ""} onClick={() => pause(!paused)}>{paused ? "Continue" : "Pause"}</button>
        <button type="button" onClick={events.clear}>Clear</button>
      </Head>
      <Problem error={events.error} />
      {rows.length > 0 ? <Stream rows={rows} show={show} /> : <Empty title="No events yet"><p>They appear here while this view is open.</p></Empty>}
      {open && <Dialog title={"Event: " + open.kind} close={() => show(undefined)}><Whole event={open} /><div class="buttons"><button type="button" onClick={() => show(undefined)}>Close</button></div></Dialog>}
    </>
  );
}

function Filter({ name, label, value, options, suffix = "" }: { name: string; label: string; value: string; options: string[]; suffix?: string }): JSX.Element {
  const go = (next: string): void => navigate(address(["events"], { ...Object.fromEntries(route.value.query), [name]: next }), true);
  return (
    <select aria-label={label} value={value} onChange={(e) => go(e.currentTarget.value)}>
      <option value="">{label}: all</option>
      {options.map((o) => <option key={o} value={o}>{o.replace("_", " ") + suffix}</option>)}
    </select>
  );
}

/** The rows; who has scrolled down keeps seeing the same ones while newer come on top. */
function Stream({ rows, show }: { rows: Row[]; show: (e: Row) => void }): JSX.Element {
  const ref = useRef<HTMLDivElement>(null);
  const newest = useRef(rows[0]?.n ?? 0);
  useLayoutEffect(() => {
    const body = ref.current?.querySelector(".body");
    const added = rows.findIndex((r) => r.n <= newest.current);
    if (body && body.scrollTop > 0 && added > 0) body.scrollTop += added * rowHeight;
    newest.current = rows[0]?.n ?? 0;
  }, [rows]);
  const columns = useMemo(() => eventColumns(show), [show]);
  return <div class="stream" ref={ref}><LongTable label="Events" columns={columns} rows={rows} rowKey={(e) => String(e.n)} rowHeight={rowHeight} /></div>;
}

function eventColumns(show: (e: Row) => void): Column<Row>[] {
  return [
    { name: "Time", width: "5.2rem", cell: (e) => <Time at={e.time} /> },
    { name: "Level", width: "5.2rem", cell: (e) => <Tag tone={tones[levelOf(e)] ?? "plain"}>{levelOf(e)}</Tag> },
    { name: "Kind", width: "6rem", wide: true, cell: (e) => e.kind.replace("_", " ") },
    { name: "From", width: "minmax(7rem, 16rem)", wide: true, cell: (e) => <Shown text={e.subscription || e.plugin || e.phase || "–"} /> },
    { name: "What", width: "minmax(0, 1fr)", cell: (e) => <button type="button" class="what" onClick={() => show(e)}><What event={e} /></button> },
  ];
}

function What({ event: e }: { event: Row }): JSX.Element {
  const words = [e.state.toLowerCase() === levelOf(e) ? "" : e.state, e.code].filter(Boolean).join(" ");
  return <><span class="narrow">{e.kind.replace("_", " ")} </span>{words && <code><Shown text={words} /></code>} <Shown text={e.message || (e.phase && (e.subscription || e.plugin) ? e.phase : "")} />{!words && !e.message && "Show"}</>;
}

function Whole({ event }: { event: Row }): JSX.Element {
  const { n: _, ...rest } = event;
  return <pre tabIndex={0}><Shown text={jsonText(rest)} /></pre>;
}
