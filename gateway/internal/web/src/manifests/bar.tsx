// The sections of a prompt as a bar, in prompt order: as wide as they are long, in the colour and pattern of their owner.
// SVG elements take the focus only with tabindex in small letters.
import type { JSX } from "preact";
import { number, percent } from "../ui/format";
import { Shown } from "../ui/parts";
import { plain } from "../ui/unseen";
import { ownerName, ownersOf, sum, weightOf, type Section } from "./words";

const width = 1000;
const height = 56;
const least = 5; // what can still be hit

interface Piece {
  section: Section;
  x: number;
  width: number;
}

/** Lays sections out. Those that are too short to be seen are made wider, at the expense of the others. */
export function layOut(sections: Section[]): { pieces: Piece[]; boundary: number } {
  const all = sum(sections.map(weightOf)) || 1;
  const wide = sections.map((s) => Math.max(least, (width * weightOf(s)) / all));
  const scale = width / (sum(wide) || 1);
  let x = 0;
  let boundary = 0;
  const pieces = sections.map((section, i) => {
    const piece = { section, x, width: (wide[i] ?? 0) * scale };
    x += piece.width;
    if (section.stability === "stable") boundary = x;
    return piece;
  });
  return { pieces, boundary };
}

export function Bar({ sections, selected, choose }: { sections: Section[]; selected: string; choose: (id: string) => void }): JSX.Element {
  const { pieces, boundary } = layOut(sections);
  const owners = ownersOf(sections);
  const move = (event: KeyboardEvent, at: number): void => {
    const to = event.key === "ArrowRight" ? at + 1 : event.key === "ArrowLeft" ? at - 1 : event.key === "Home" ? 0 : event.key === "End" ? pieces.length - 1 : -1;
    const next = pieces[to];
    if (!next) return;
    event.preventDefault();
    choose(next.section.section_id);
    const bar = (event.currentTarget as Element).parentElement;
    requestAnimationFrame(() => bar?.querySelectorAll<SVGGElement>("[role=option]")[to]?.focus());
  };
  const current = Math.max(0, pieces.findIndex((p) => p.section.section_id === selected));
  return (
    <figure class="prompt">
      <svg viewBox={`0 0 ${width} ${height + 18}`} preserveAspectRatio="none" role="listbox" aria-label="Sections in prompt order" aria-orientation="horizontal">
        <Patterns />
        {pieces.map(({ section: s, x, width: w }, i) => (
          <g key={s.section_id} role="option" tabindex={i === current ? 0 : -1} aria-selected={s.section_id === selected}
            aria-label={`${plain(s.section_id)}, of ${plain(ownerName(s.owner))}, ${s.stability}, ${number(weightOf(s))} ${s.tokens == null ? "characters" : "tokens"}`}
            onClick={() => choose(s.section_id)} onKeyDown={(e) => move(e, i)}>
            <title>{plain(s.section_id)}</title>
            <rect class={"piece owner" + ((owners.get(s.owner) ?? 0) % 8)} x={x} y={0} width={Math.max(1, w - 1.5)} height={height} />
            <rect class="pattern" x={x} y={0} width={Math.max(1, w - 1.5)} height={height} fill={`url(#owner${(owners.get(s.owner) ?? 0) % 8})`} />
            {s.truncation && <path class="cutmark" d={`M${x + w - 10} 0 h8.5 v8.5 z`} />}
          </g>
        ))}
        <line class="boundary" x1={boundary - 0.75} x2={boundary - 0.75} y1={0} y2={height + 18} />
      </svg>
      <figcaption>
        <span><strong>stable</strong> {share(sections, "stable")}</span>
        <span class="quiet">the line is the boundary that a cached prefix can end at</span>
        <span><strong>dynamic</strong> {share(sections, "dynamic")}</span>
      </figcaption>
      <ul class="legend" aria-label="Owners">
        {[...owners].map(([owner, i]) => (
          <li key={owner}>
            <svg viewBox="0 0 16 16" aria-hidden="true"><rect class={"piece owner" + (i % 8)} width="16" height="16" /><rect width="16" height="16" class="pattern" fill={`url(#owner${i % 8})`} /></svg>
            <Shown text={ownerName(owner)} />
          </li>
        ))}
      </ul>
    </figure>
  );
}

function share(sections: Section[], stability: Section["stability"]): string {
  const part = sum(sections.filter((s) => s.stability === stability).map(weightOf));
  return number(part) + " · " + percent(part, sum(sections.map(weightOf)));
}

/** A pattern for each owner, so that colour is not the only sign. */
function Patterns(): JSX.Element {
  const lines = ["", "M0 8 L8 0", "M0 4 H8", "M4 0 V8", "M0 0 L8 8", "M0 8 L8 0 M0 0 L8 8", "M0 4 H8 M4 0 V8", "M3.5 4 h1"];
  return (
    <defs>
      {lines.map((d, i) => (
        <pattern key={i} id={"owner" + i} width="8" height="8" patternUnits="userSpaceOnUse"><path class="stroke" d={d || "M0 0"} /></pattern>
      ))}
    </defs>
  );
}
