// Two manifests beside each other.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { address, navigate, route } from "../router";
import type { Result } from "../rpc";
import { number } from "../ui/format";
import { Busy, Empty, Head, Problem, Shown, Tag, type Tone } from "../ui/parts";
import { Table } from "../ui/table";
import { plain } from "../ui/unseen";
import { useCall, useTitle } from "../ui/use";
import { lineDiff } from "./diff";
import { causes, ownerName, type Manifest, type Section } from "./words";

export function Compare(): JSX.Element {
  useTitle("Compare");
  const { query } = route.value;
  const a = query.get("a") ?? "";
  const b = query.get("b") ?? "";
  return (
    <>
      <Head title="Compare two manifests" />
      <Choose a={a} b={b} />
      {a && b && <Both key={a + b} a={a} b={b} />}
    </>
  );
}

/** Both ids can be typed; the manifests of the thread are offered. */
function Choose({ a, b }: { a: string; b: string }): JSX.Element {
  const workspace = route.value.query.get("workspace") ?? "";
  const thread = route.value.query.get("thread") ?? "";
  const [first, setFirst] = useState(a);
  const [second, setSecond] = useState(b);
  const near = useCall("manifest/overview", { limit: 50, ...(workspace && { workspace_id: workspace }), ...(thread && { thread_id: thread }) });
  const go = (e: Event): void => {
    e.preventDefault();
    navigate(address(["manifests", "compare"], { a: first.trim(), b: second.trim(), workspace, thread }), true);
  };
  return (
    <form class="tools" onSubmit={go}>
      <label>Earlier <input list="ids" value={first} required size={28} onInput={(e) => setFirst(e.currentTarget.value)} /></label>
      <label>Later <input list="ids" value={second} required size={28} onInput={(e) => setSecond(e.currentTarget.value)} /></label>
      <datalist id="ids">{near.data?.rows.map((r) => <option key={r.manifest_id} value={r.manifest_id}>{plain(r.thread_id + " / " + r.turn_id)}</option>)}</datalist>
      <button type="submit" class="primary">Compare</button>
    </form>
  );
}

function Both({ a, b }: { a: string; b: string }): JSX.Element {
  const left = useCall("manifest/get", { manifest_id: a });
  const right = useCall("manifest/get", { manifest_id: b });
  const diff = useCall("manifest/diff", { a, b });
  const error = left.error ?? right.error ?? diff.error;
  if (error) return <Problem error={error} />;
  if (!left.data || !right.data || !diff.data) return <Busy what="Comparing" />;
  const d = diff.data;
  const other = [...d.head, ...d.files, ...d.host_tools].map((c) => ({ ...c, key: c.what + c.name }));
  return (
    <>
      {d.same && <p><Tag tone="good">the same</Tag> Both prompts were made of the same.</p>}
      {d.break?.cause && <p><Tag tone="warn">{causes[d.break.cause] ?? d.break.cause}</Tag> {d.break.broke_at && <>at <Shown text={d.break.broke_at} /></>} of <Shown text={ownerName(d.break.owner)} />: {number(d.break.tokens_lost)} tokens were read again.</p>}
      <SideBySide a={left.data} b={right.data} changes={d.sections} />
      {other.length > 0 && (
        <Table label="Other differences" rows={other} rowKey={(c) => c.key} columns={[
          { name: "What", cell: (c) => <Shown text={c.name} /> },
          { name: "How", cell: (c) => c.what },
          { name: "Earlier", cell: (c) => <Shown text={String(c.from ?? "–")} /> },
          { name: "Later", cell: (c) => <Shown text={String(c.to ?? "–")} /> },
        ]} />
      )}
    </>
  );
}

type Changes = NonNullable<Result<"manifest/diff">>["sections"];

interface Pair {
  id: string;
  a?: Section;
  b?: Section;
}

/** Sections of both, in the order of the later prompt; those that are gone stand where they were. */
export function pairs(a: Section[], b: Section[]): Pair[] {
  const list: Pair[] = b.map((s) => ({ id: s.section_id, b: s, a: a.find((o) => o.section_id === s.section_id) }));
  a.forEach((s, i) => {
    if (list.some((p) => p.id === s.section_id)) return;
    const after = a[i - 1]?.section_id;
    list.splice(after === undefined ? 0 : list.findIndex((p) => p.id === after) + 1, 0, { id: s.section_id, a: s });
  });
  return list;
}

function SideBySide({ a, b, changes }: { a: Manifest; b: Manifest; changes: Changes }): JSX.Element {
  const list = pairs(a.sections, b.sections);
  const [open, setOpen] = useState(list.find((p) => changes.changed.includes(p.id))?.id ?? "");
  if (list.length === 0) return <Empty title="Neither record has a prompt" />;
  const chosen = list.find((p) => p.id === open);
  return (
    <>
      <Table label="Sections of both" rows={list} rowKey={(p) => p.id} rowClass={(p) => (p.id === open ? "chosen" : "")} columns={[
        { name: "Section", cell: (p) => <button type="button" class="link" aria-pressed={p.id === open} onClick={() => setOpen(p.id)}><Shown text={p.id} /></button> },
        { name: "Change", cell: (p) => <How id={p.id} changes={changes} /> },
        { name: "Earlier", right: true, cell: (p) => size(p.a) },
        { name: "Later", right: true, cell: (p) => size(p.b) },
        { name: "Owner", wide: true, cell: (p) => <Shown text={ownerName((p.b ?? p.a)?.owner ?? "")} /> },
      ]} />
      {chosen && <TextDiff a={a.manifest_id} b={b.manifest_id} id={chosen.id} />}
    </>
  );
}

const size = (s?: Section): string => (s ? `${number(s.tokens ?? s.chars)} ${s.tokens == null ? "ch" : "tok"}` : "–");

const tones: Record<keyof Changes, Tone> = { added: "good", removed: "bad", changed: "warn", moved: "info", reowned: "info" };

/** What the gateway says of a section, as "grapnel manifest diff" does. */
function How({ id, changes }: { id: string; changes: Changes }): JSX.Element {
  const words = (Object.keys(tones) as (keyof Changes)[]).filter((word) => changes[word].includes(id));
  return <>{words.length === 0 ? <Tag tone="plain">same</Tag> : words.map((word) => <Tag key={word} tone={tones[word]}>{word}</Tag>)}</>;
}

function TextDiff({ a, b, id }: { a: string; b: string; id: string }): JSX.Element {
  const left = useCall("manifest/text", { manifest_id: a });
  const right = useCall("manifest/text", { manifest_id: b });
  const textOf = (r: typeof left): string | null | undefined => (r.data ? (r.data.sections.find((s) => s.id === id)?.text ?? null) : undefined);
  const [one, two] = [textOf(left), textOf(right)];
  if (left.error || right.error) return <Problem error={left.error ?? right.error} />;
  if (one === undefined || two === undefined) return <Busy what="Reading the texts" />;
  if (one === null && two === null) return <p class="quiet">The texts of <Shown text={id} /> were not kept.</p>;
  const lines = lineDiff(one ?? "", two ?? "");
  return (
    <section class="card">
      <h2><Shown text={id} /></h2>
      <pre class="text diff" tabIndex={0} aria-label={"Differences of " + id}>
        {lines.map((l, i) => (
          <span key={i} class={"line " + l.kind}>
            <span class="sign" aria-hidden="true">{l.kind === "added" ? "+" : l.kind === "removed" ? "−" : " "}</span>
            {l.kind !== "same" && <span class="hidden">{l.kind}: </span>}
            <Shown text={l.text} />{"\n"}
          </span>
        ))}
      </pre>
    </section>
  );
}
