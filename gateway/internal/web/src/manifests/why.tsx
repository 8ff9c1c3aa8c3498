// Why something is, or is not, in a prompt; and who wrote a sentence of it.
import type { JSX } from "preact";
import { address, navigate, route } from "../router";
import { Busy, Empty, Problem, Shown, Tag } from "../ui/parts";
import { Table } from "../ui/table";
import { useCall } from "../ui/use";
import { ownerName, reasons, runTone, type Manifest } from "./words";

export function Why({ m }: { m: Manifest }): JSX.Element {
  const asked = route.value.query.get("about") ?? "";
  const sentence = route.value.query.get("said") ?? "";
  const ask = (e: SubmitEvent, name: "about" | "said"): void => {
    e.preventDefault();
    const value = String(new FormData(e.currentTarget as HTMLFormElement).get(name) ?? "");
    navigate(address(["manifests", m.manifest_id], { tab: "why", [name]: name === "about" ? value.trim() : value }));
  };
  return (
    <>
      <form class="card search" onSubmit={(e) => ask(e, "about")}>
        <label class="whole">Why is this in the prompt, or not? <input name="about" list="known" key={asked} defaultValue={asked} required placeholder="a section, hook, plugin or tool" /></label>
        <datalist id="known">{known(m).map((id) => <option key={id} value={id} />)}</datalist>
        <button type="submit" class="primary">Ask</button>
      </form>
      {m.texts_kept && (
        <form class="card search" onSubmit={(e) => ask(e, "said")}>
          <label class="whole">Who wrote this? <input name="said" key={sentence} defaultValue={sentence} required placeholder="a sentence of the prompt" /></label>
          <button type="submit">Find</button>
        </form>
      )}
      {asked || sentence ? <Answer m={m} asked={asked} sentence={sentence} /> : <Empty title="Ask about anything that this turn knows, or about a hook that did not run" />}
    </>
  );
}

/** Everything that the record names, once each, in order. */
function known(m: Manifest): string[] {
  const ids = [
    m.sections.map((s) => s.section_id), m.omitted.map((o) => o.id), m.runs.map((r) => r.subscription), m.plugins.map((p) => p.plugin), m.tools.map((t) => t.name), (m.reminders ?? []).map((r) => r.contribution_id),
  ].flat();
  return [...new Set(ids)].sort();
}

function Answer({ m, asked, sentence }: { m: Manifest; asked: string; sentence: string }): JSX.Element {
  const got = useCall("manifest/explain", { manifest_id: m.manifest_id, workspace_id: m.workspace_id, ...(asked ? { id: asked } : { sentence }) });
  const e = got.data;
  if (got.error) return <Problem error={got.error} retry={got.reload} />;
  if (!e || got.loading) return <Busy what="Looking it up" />;
  return (
    <div role="status">
      <p class="notice"><Tag tone={e.in ? "good" : "plain"}>{e.kind === "subscription" || e.kind === "plugin" ? (e.in ? "contributed" : "contributed nothing") : e.in ? "in the prompt" : "not in the prompt"}</Tag> <strong><Shown text={e.id} /></strong>: <Shown text={e.why} /></p>
      {e.said.length > 0 && (
        <Table label="Who said it" rows={e.said.map((s, i) => ({ ...s, i }))} rowKey={(s) => String(s.i)} columns={[
          { name: "Section", cell: (s) => <a href={address(["manifests", m.manifest_id], { section: s.section_id })}><Shown text={s.section_id} /></a> },
          { name: "Owner", cell: (s) => <Shown text={ownerName(s.owner)} /> },
          { name: "Hook", cell: (s) => <Shown text={s.subscription_id ?? "–"} /> },
          { name: "Text", wide: true, cell: (s) => <Shown text={s.text} /> },
        ]} />
      )}
      {e.runs.length > 0 && (
        <Table label="Its runs" rows={e.runs.map((r, i) => ({ ...r, i }))} rowKey={(r) => String(r.i)} columns={[
          { name: "Hook", cell: (r) => <Shown text={r.subscription} /> },
          { name: "Phase", wide: true, cell: (r) => <code>{r.phase}</code> },
          { name: "State", cell: (r) => <Tag tone={runTone(r.state)}>{r.state.replaceAll("_", " ")}</Tag> },
          { name: "Code", cell: (r) => (r.code ? <code>{r.code}</code> : "–") },
        ]} />
      )}
      {e.reminders.length > 0 && (
        <Table label="Its reminders" rows={e.reminders.map((r, i) => ({ ...r, i }))} rowKey={(r) => String(r.i)} columns={[
          { name: "Reminder", cell: (r) => <Shown text={r.contribution_id} /> },
          { name: "Hook", cell: (r) => <Shown text={r.owner} /> },
          { name: "Handed over with", cell: (r) => <Shown text={r.with || "the prompt"} /> },
        ]} />
      )}
      {e.omitted.length > 0 && (
        <Table label="What was left out of it" rows={e.omitted.map((o, i) => ({ ...o, i }))} rowKey={(o) => String(o.i)} columns={[
          { name: "What", cell: (o) => <Shown text={o.id} /> },
          { name: "Why", cell: (o) => <>{reasons[o.reason] ?? o.reason}</> },
        ]} />
      )}
    </div>
  );
}
