// Tables, and long lists of which only the visible rows exist.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Column<T> {
  name: string;
  /** Numbers stand on the right. */
  right?: boolean;
  /** In a long table, whose columns do not follow from their content: the width, else an equal share. */
  width?: string;
  /** Columns that a narrow screen leaves out. */
  wide?: boolean;
  /** A column that a narrow screen shows on a line of its own, below the others. */
  below?: boolean;
  cell(row: T): ComponentChildren;
}

export interface TableProps<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  rowKey(row: T): string;
  rowClass?(row: T): string;
}

/** A table whose rows all exist. */
export function Table<T>({ label, columns, rows, rowKey, rowClass }: TableProps<T>): JSX.Element {
  return (
    <div class="scroll" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead><tr>{columns.map((c) => <th key={c.name} scope="col" class={cellClass(c)}>{c.name}</th>)}</tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)} class={rowClass?.(row)}>{columns.map((c) => <td key={c.name} class={cellClass(c)}>{c.cell(row)}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const cellClass = (c: { right?: boolean; wide?: boolean; below?: boolean }): string => (c.right ? "right " : "") + (c.wide ? "wide" : c.below ? "below" : "");

const narrow = matchMedia("(max-width: 820px)"); // as in the style sheets

const spare = 8; // rows above and below those that are visible

/** Which of count rows of a height are visible in a scrolling element. */
export function useWindow(count: number, height: number): {
  ref: { current: HTMLDivElement | null };
  first: number;
  last: number;
  reveal(index: number): void;
} {
  const ref = useRef<HTMLDivElement>(null);
  const [range, set] = useState({ first: 0, last: 40 });
  const measure = (): void => {
    const el = ref.current;
    if (!el) return;
    const first = Math.max(0, Math.floor(el.scrollTop / height) - spare);
    const last = Math.ceil((el.scrollTop + el.clientHeight) / height) + spare;
    set((r) => (r.first === first && r.last === last ? r : { first, last }));
  };
  useLayoutEffect(measure, [count, height]);
  useEffect(() => {
    const el = ref.current;
    if (!el) return;
    el.addEventListener("scroll", measure, { passive: true });
    const sizes = new ResizeObserver(measure);
    sizes.observe(el);
    return () => {
      el.removeEventListener("scroll", measure);
      sizes.disconnect();
    };
  }, []);
  const reveal = (index: number): void => {
    const el = ref.current;
    if (!el) return;
    if (index * height < el.scrollTop) el.scrollTop = index * height;
    else if ((index + 1) * height > el.scrollTop + el.clientHeight) el.scrollTop = (index + 1) * height - el.clientHeight;
  };
  return { ref, first: range.first, last: Math.min(range.last, count), reveal };
}

/** A table of any length. near is called when its end comes near. */
export function LongTable<T>({ label, columns, rows, rowKey, rowClass, narrowHeight, near, ...rest }: TableProps<T> & { rowHeight: number; narrowHeight?: number; near?: () => void }): JSX.Element {
  const rowHeight = narrowHeight && narrow.matches ? narrowHeight : rest.rowHeight;
  const w = useWindow(rows.length, rowHeight);
  useEffect(() => {
    if (rows.length > 0 && w.last >= rows.length) near?.();
  }, [w.last, rows.length]);
  const template = (list: Column<T>[]): string => list.map((c) => c.width ?? "minmax(0, 1fr)").join(" ");
  return (
    <div class="long" role="table" aria-label={label} aria-rowcount={rows.length + 1} style={{ "--all": template(columns), "--narrow": template(columns.filter((c) => !c.wide && !c.below)), "--row": rowHeight + "px" }}>
      <div role="rowgroup">
        <div role="row" aria-rowindex={1} class="row names">{columns.map((c) => <span key={c.name} role="columnheader" class={cellClass(c)}>{c.name}</span>)}</div>
      </div>
      <div role="rowgroup" class="body" ref={w.ref} tabIndex={0} aria-label={label}>
        <div class="fill" style={{ height: rows.length * rowHeight + "px" }}>
          <div class="shift" style={{ transform: `translateY(${w.first * rowHeight}px)` }}>
            {rows.slice(w.first, w.last).map((row, i) => (
              <div key={rowKey(row)} role="row" aria-rowindex={w.first + i + 2} class={"row " + (rowClass?.(row) ?? "")}>
                {columns.map((c) => <span key={c.name} role="cell" class={cellClass(c)}>{c.cell(row)}</span>)}
              </div>
            ))}
          </div>
        </div>
      </div>
    </div>
  );
}
