// One section of a prompt: its text with the owner of each piece, and where it came from.
import type { JSX } from "preact";
import { address } from "../router";
import { number, short } from "../ui/format";
import { Busy, Facts, Problem, Shown, Tag } from "../ui/parts";
import { plain } from "../ui/unseen";
import { useCall } from "../ui/use";
import { ownerName, ownersOf, type Manifest, type Section } from "./words";

export function SectionDetail({ m, section: s }: { m: Manifest; section: Section }): JSX.Element {
  const texts = useCall("manifest/text", { manifest_id: m.manifest_id });
  const text = texts.data?.sections.find((t) => t.id === s.section_id)?.text;
  const brought = m.hook_sources.filter((h) => h.section_id === s.section_id);
  return (
    <section class="card" aria-labelledby="section">
      <h2 id="section"><Shown text={s.title || s.section_id} /></h2>
      <Facts rows={[
        ["Id", <code><Shown text={s.section_id} /></code>],
        ["Owner", <Shown text={ownerName(s.owner)} />],
        ["Where", s.stability + ", " + (m.cache.of_agent ? "where the agent puts it" : s.placement.replaceAll("_", " "))],
        ["Length", `${number(s.chars)} characters` + (s.tokens == null ? "" : `, ${number(s.tokens)} tokens`)],
        ["Fingerprint", <code title={s.fingerprint}>{short(s.fingerprint, 20)}</code>],
        ["Hash", <code title={s.hash}>{short(s.hash, 24)}</code>],
        ["Sources", s.source_refs.length === 0 ? "–" : <ul>{s.source_refs.map((r, i) => <li key={i}>{r.kind} <Shown text={r.label || r.id || ""} /></li>)}</ul>],
      ]} />
      {s.truncation && (
        <p><Tag tone="warn">cut</Tag> {number(s.truncation.kept)} of {number(s.truncation.original)} characters are here; the limit of the {s.truncation.limit} cut it.</p>
      )}
      {brought.length > 0 && (
        <p>Brought by {brought.map((h, i) => (
          <span key={h.subscription_id + i}>{i > 0 && ", "}<a href={address(["manifests", m.manifest_id], { tab: "ledger", run: h.subscription_id })}><Shown text={h.subscription_id} /></a>
            <span class="quiet"> <Shown text={h.plugin_version} />{h.cached_from && ", from the cache"}</span></span>
        ))}</p>
      )}
      <Problem error={texts.error} />
      {texts.loading && !texts.data && <Busy what="Reading the text" />}
      {texts.data && !texts.data.checked && texts.data.why && <p class="quiet">{texts.data.why}</p>}
      {text != null && <Text text={text} section={s} m={m} />}
    </section>
  );
}

/** The text, coloured by who wrote which piece. Places are in Unicode scalar values. */
function Text({ text, section, m }: { text: string; section: Section; m: Manifest }): JSX.Element {
  const owners = ownersOf(m.sections);
  const chars = Array.from(text);
  const spans = [...section.content_map].sort((a, b) => a.offset - b.offset);
  const pieces: JSX.Element[] = [];
  let at = 0;
  const add = (to: number, owner?: string): void => {
    const piece = chars.slice(at, to).join("");
    at = to;
    if (!piece) return;
    pieces.push(<span key={pieces.length} class={owner === undefined ? "" : "by owner" + ((owners.get(owner) ?? 0) % 8)} title={owner && plain(ownerName(owner))}><Shown text={piece} /></span>);
  };
  for (const span of spans) {
    if (span.offset > at) add(span.offset);
    add(Math.max(at, span.offset + span.length), span.owner);
  }
  add(chars.length);
  return <pre class="text" tabIndex={0} aria-label={"Text of " + plain(section.section_id)}>{pieces}</pre>;
}
