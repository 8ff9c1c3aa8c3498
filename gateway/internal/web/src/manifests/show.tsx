// One manifest: its prompt as a bar, and everything that is recorded about how it came about.
import type { JSX } from "preact";
import { address, navigate, route } from "../router";
import { count, number, percent, short } from "../ui/format";
import { Busy, Empty, Facts, Head, Problem, Shown, Tabs, Tag, Time } from "../ui/parts";
import { Table } from "../ui/table";
import { useCall, useTitle } from "../ui/use";
import { Bar } from "./bar";
import { Ledger } from "./ledger";
import { SectionDetail } from "./section";
import { Why } from "./why";
import { causes, ownerName, reasons, sum, toneOf, type Manifest } from "./words";

export function Show({ id }: { id: string }): JSX.Element {
  const got = useCall("manifest/get", { manifest_id: id });
  const m = got.data;
  useTitle(m ? "Turn " + m.turn_id : "Manifest");
  if (!m) return got.error ? <Problem error={got.error} retry={got.reload} /> : <Busy what="Reading the manifest" />;
  return <Record m={m} />;
}

function Record({ m }: { m: Manifest }): JSX.Element {
  const tab = route.value.query.get("tab") ?? "sections";
  const tabs: [string, string, number | undefined][] = [
    ["sections", "Sections", m.sections.length],
    ["ledger", "Ledger", m.runs.length],
    ["reminders", "Reminders", m.reminders?.length ?? 0],
    ["omitted", "Omitted", m.omitted.length],
    ["diagnostics", "Diagnostics", m.diagnostics.length],
    ["tools", "Tools and calls", m.tools.length + (m.host_tools?.length ?? 0) + (m.calls?.length ?? 0)],
    ["why", "Why?", undefined],
    ["record", "Record", undefined],
  ];
  return (
    <>
      <Head title={<Shown text={"Turn " + m.turn_id} />} sub={<><Time at={m.created_at} /> · thread <a href={address(["manifests"], { workspace: m.workspace_id, thread: m.thread_id })}><Shown text={m.thread_id} /></a></>}>
        <a class="button" href={address(["manifests", "compare"], { b: m.manifest_id, workspace: m.workspace_id, thread: m.thread_id })}>Compare</a>
        <a class="button" href={address(["manifests", "blame"], { workspace: m.workspace_id, thread: m.thread_id })}>Cache breaks</a>
      </Head>
      {m.blocked && <p class="notice"><Tag tone="bad">blocked</Tag> No provider has seen a prompt of this turn.</p>}
      <Cache m={m} />
      <Tabs label="Parts of the record" current={tab} tabs={tabs.map(([name, label, n]) => ({
        id: name, to: address(["manifests", m.manifest_id], { tab: name }),
        label: n === undefined ? label : <>{label} <span class="quiet">{number(n)}</span></>,
      }))} />
      <Part m={m} tab={tab} />
    </>
  );
}

function Part({ m, tab }: { m: Manifest; tab: string }): JSX.Element {
  switch (tab) {
    case "ledger": return <Ledger m={m} />;
    case "reminders": return <Reminders m={m} />;
    case "omitted": return <Omitted m={m} />;
    case "diagnostics": return <Diagnostics m={m} />;
    case "tools": return <Tools m={m} />;
    case "why": return <Why m={m} />;
    case "record": return <Facts rows={facts(m)} />;
    default: return <Sections m={m} />;
  }
}

/** What is known of the provider's cache, in a sentence. */
function Cache({ m }: { m: Manifest }): JSX.Element {
  const text = sum(m.sections.map((s) => s.tokens));
  const tools = m.cache.tool_tokens ?? 0;
  const of = (n: number | null, all: number): string => (n == null ? "unknown" : `${number(n)} of ${number(all)} (${percent(n, all)})`);
  return (
    <p class="cache">
      <span><strong>{number(text + tools || sum(m.sections.map((s) => s.chars)))}</strong> {text + tools ? "tokens" : "characters"}{tools > 0 && `: ${number(text)} of text, ${number(tools)} of tools`}</span>
      <span>from the cache: predicted {of(m.cache.predicted, text + tools)}, reported {of(m.cache.actual, m.usage?.input_tokens ?? 0)}</span>
      {m.cache.cause && (
        <span>
          <Tag tone={m.cache.tokens_lost > 0 ? "warn" : "info"}>{causes[m.cache.cause] ?? m.cache.cause}</Tag>{" "}
          {m.cache.broke_at && <>at <a href={address(["manifests", m.manifest_id], { section: m.cache.broke_at })}><Shown text={m.cache.broke_at} /></a></>}
          {m.cache.owner && <> of <Shown text={ownerName(m.cache.owner)} /></>}
          {m.cache.tokens_lost > 0 && <>, {count(m.cache.tokens_lost, "token", "tokens")} read again</>}
        </span>
      )}
    </p>
  );
}

function Sections({ m }: { m: Manifest }): JSX.Element {
  if (m.sections.length === 0) return <Empty title="This record has no prompt"><p>It is of a phase, an erasure, or a turn that was blocked.</p></Empty>;
  const selected = route.value.query.get("section") ?? m.sections[0]?.section_id ?? "";
  const section = m.sections.find((s) => s.section_id === selected);
  const choose = (id: string): void => navigate(address(["manifests", m.manifest_id], { section: id }), true);
  return (
    <>
      <Bar sections={m.sections} selected={selected} choose={choose} />
      {section ? <SectionDetail m={m} section={section} /> : <Problem error={`There is no section ${selected} in this prompt.`} />}
    </>
  );
}

function Omitted({ m }: { m: Manifest }): JSX.Element {
  if (m.omitted.length === 0) return <Empty title="Nothing was left out" />;
  return (
    <Table label="What was left out" rows={m.omitted} rowKey={(o) => o.owner + " " + o.id} columns={[
      { name: "What", cell: (o) => <Shown text={o.id} /> },
      { name: "Owner", cell: (o) => <Shown text={ownerName(o.owner)} /> },
      { name: "Characters", right: true, cell: (o) => number(o.chars) },
      { name: "Why", cell: (o) => <>{reasons[o.reason] ?? o.reason} <code class="quiet">{o.reason}</code></> },
    ]} />
  );
}

function Reminders({ m }: { m: Manifest }): JSX.Element {
  if (!m.reminders?.length) return <Empty title="No reminder was handed over" />;
  return (
    <Table label="Reminders that were handed over" rows={m.reminders.map((r, i) => ({ ...r, i }))} rowKey={(r) => String(r.i)} columns={[
      { name: "What", cell: (r) => <Shown text={r.contribution_id} /> },
      { name: "Owner", cell: (r) => <Shown text={ownerName(r.owner)} /> },
      { name: "With", cell: (r) => <Shown text={r.with || "the prompt"} /> },
      { name: "Characters", right: true, cell: (r) => number(r.chars) },
      { name: "Hash", wide: true, cell: (r) => <code title={r.hash}>{short(r.hash)}</code> },
    ]} />
  );
}

function Diagnostics({ m }: { m: Manifest }): JSX.Element {
  if (m.diagnostics.length === 0) return <Empty title="There are no remarks" />;
  return (
    <Table label="Diagnostics" rows={m.diagnostics.map((d, i) => ({ ...d, i }))} rowKey={(d) => String(d.i)} columns={[
      { name: "Severity", cell: (d) => <Tag tone={toneOf(d.severity)}>{d.severity}</Tag> },
      { name: "Code", cell: (d) => <code>{d.code}</code> },
      { name: "About", wide: true, cell: (d) => <Shown text={d.hook_source || d.section_id || "–"} /> },
      { name: "Message", cell: (d) => <Shown text={d.message} /> },
    ]} />
  );
}

function Tools({ m }: { m: Manifest }): JSX.Element {
  return (
    <>
      {m.tools.length > 0 && (
        <Table label="Tools that the model was offered" rows={m.tools} rowKey={(t) => t.name} columns={[
          { name: "Tool", cell: (t) => <Shown text={t.name} /> },
          { name: "Answered by", cell: (t) => <Shown text={ownerName(t.owner)} /> },
          { name: "Offered", cell: (t) => (t.hidden_domain ? <Tag tone="plain">hidden until <Shown text={t.hidden_domain} /> is asked for</Tag> : <Tag tone="good">yes</Tag>) },
          { name: "Hash", wide: true, cell: (t) => <code title={t.hash}>{short(t.hash)}</code> },
        ]} />
      )}
      {!!m.host_tools?.length && (
        <Table label="Tools of the host" rows={m.host_tools} rowKey={(t) => t.name} columns={[
          { name: "Tool of the host", cell: (t) => <Shown text={t.name} /> },
          { name: "Hash", wide: true, cell: (t) => <code title={t.hash}>{short(t.hash)}</code> },
        ]} />
      )}
      {!!m.calls?.length && (
        <Table label="What was decided" rows={m.calls.map((c, i) => ({ ...c, i }))} rowKey={(c) => String(c.i)} columns={[
          { name: "Phase", cell: (c) => <code>{c.phase}</code> },
          { name: "Tool", cell: (c) => <Shown text={c.tool ?? "–"} /> },
          { name: "Verdict", cell: (c) => (c.verdict ? <Tag tone={c.verdict === "deny" ? "bad" : c.verdict === "ask" ? "warn" : "good"}>{c.verdict}</Tag> : "–") },
          { name: "Result", cell: (c) => <>{resultOf(c)} {c.code && <code class="quiet">{c.code}</code>}</> },
          { name: "Decided by", cell: (c) => <Shown text={c.decided_by?.map((d) => d.subscription + (d.contribution_id ? ` (${d.contribution_id})` : "") + (d.shadow ? " (shadow)" : "")).join(", ") ?? "–"} /> },
          { name: "Rewritten by", wide: true, cell: (c) => <Shown text={c.rewritten_by?.join(", ") ?? "–"} /> },
          { name: "Facts", wide: true, cell: (c) => c.facts?.join(", ") ?? "–" },
        ]} />
      )}
      {m.tools.length + (m.host_tools?.length ?? 0) + (m.calls?.length ?? 0) === 0 && <Empty title="No tool was offered, and nothing was decided" />}
    </>
  );
}

/** What came of a call, in a word. */
function resultOf(c: NonNullable<Manifest["calls"]>[number]): string {
  if (c.verdict === "deny" || (c.phase === "tool.pre_call" && c.state) || c.code === "forbidden" || c.code === "denied") return "refused";
  if (!c.state) return "–";
  return c.state === "succeeded" ? "made" : "failed";
}

function facts(m: Manifest): [string, JSX.Element | string][] {
  const hash = (v: string | undefined): JSX.Element => <code title={v}>{v ? short(v, 24) : "–"}</code>;
  return [
    ["Manifest", <code>{m.manifest_id}</code>], ["Place in the thread", number(m.seq)], ["Workspace", <Shown text={m.workspace_id || "–"} />],
    ["Session", <Shown text={m.session_id || "–"} />], ["Actor", <Shown text={m.actor ?? "–"} />], ["Profile", <Shown text={m.profile} />], ["Round", number(m.round)],
    ["Hash", hash(m.hash)], ["Hash of the one before", hash(m.prev)], ["Content hash", hash(m.content_hash)], ["Whole prompt", hash(m.hash_full)],
    ["Stable part", hash(m.hash_stable)], ["Dynamic part", hash(m.hash_dynamic)], ["Tools", hash(m.hash_tools)],
    ["Provider, model", <Shown text={[m.cache.provider, m.cache.model].filter(Boolean).join(", ") || "–"} />],
    ["Cache key", <code><Shown text={m.cache.plan.key ?? "–"} /></code>],
    ["Breakpoints", <Shown text={m.cache.plan.breakpoints?.map((b) => b.section_id || b.after).join(", ") || "–"} />],
    ["Conversation", m.history ? `${number(m.history.entries)} messages, ${number(m.history.cut ?? 0)} cut` : "–"],
    ["Configuration", hash(m.config_hash)], ["Build", m.build ?? "–"], ["Schema", number(m.schema_version)],
    ["Budget of the turn", `${number(m.budgets.turn.used_chars)} of ${number(m.budgets.turn.granted_chars)} characters`],
  ];
}
