// The tree's view: a WAI-ARIA tree of which only the visible rows exist, and the one that has the focus.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Shown } from "../ui/parts";
import { useWindow } from "../ui/table";
import { type Row } from "./tree";
import { plain } from "../ui/unseen";

export type Action = "folder" | "thread" | "rename" | "move" | "delete";

const rowHeight = 30;
const signs = { active: "●", draft: "○", archived: "▪", inherited: "↑" } as const;
const icons = { root: "M3 9l7-6 7 6v8H3z", folder: "M2 5h6l2 2h8v9H2z", thread: "M3 4h14v9H9l-4 4v-4H3z" };

interface Props {
  rows: Row[];
  /** The key of the row whose address is shown. */
  current: string;
  write: boolean;
  toggle(row: Row, open: boolean): void;
  show(row: Row): void;
  act(what: Action, row: Row): void;
  /** Whether one row may move into another, and the move. */
  mayDrop(moved: Row, into: Row): boolean;
  drop(moved: Row, into: Row): void;
}

export function TreeView({ rows, current, write, toggle, show, act, mayDrop, drop }: Props): JSX.Element {
  const w = useWindow(rows.length, rowHeight);
  const [focused, setFocused] = useState(current);
  const [menu, setMenu] = useState<{ row: Row; x: number; y: number } | null>(null);
  const [target, setTarget] = useState("");
  const places = useMemo(() => new Map(rows.map((r, i) => [r.key, i])), [rows]);
  const inside = useRef(false); // the tree has the focus
  const moving = useRef(false); // the focus goes to another row, and this one may vanish
  const place = useRef(0);
  const dragged = useRef<Row | null>(null);
  const typed = useRef({ text: "", at: 0 });

  // A row that is gone hands the focus to the one in its place.
  const at = places.get(focused) ?? Math.min(place.current, rows.length - 1);
  const focus = rows[at]?.key ?? "";
  place.current = at;
  const latest = useRef(places);
  latest.current = places;

  useEffect(() => {
    const i = places.get(current);
    if (i === undefined) return;
    setFocused(current);
    w.reveal(i);
  }, [current, places.has(current)]);
  useLayoutEffect(() => {
    moving.current = false;
    if (!inside.current || menu) return;
    const row = w.ref.current?.querySelector<HTMLElement>('[tabindex="0"]');
    if (row && row !== document.activeElement && !row.contains(document.activeElement)) row.focus({ preventScroll: true });
  });

  const go = (i: number): void => {
    const to = Math.max(0, Math.min(rows.length - 1, i));
    moving.current = rows[to]!.key !== focus;
    setFocused(rows[to]!.key);
    w.reveal(to);
  };
  const openMenu = (row: Row, x: number, y: number): void => {
    if (!write) return;
    setFocused(row.key);
    setMenu({ row, x, y });
  };
  const find = (letter: string): void => {
    const now = Date.now();
    typed.current = { text: (now - typed.current.at < 700 ? typed.current.text : "") + letter.toLowerCase(), at: now };
    const { text } = typed.current;
    for (let i = text.length > 1 ? 0 : 1; i <= rows.length; i++) {
      const to = (at + i) % rows.length;
      if (rows[to]!.name.toLowerCase().startsWith(text)) return go(to);
    }
  };
  const keys = (e: KeyboardEvent): void => {
    const row = rows[at];
    if (!row || (e.target as HTMLElement).getAttribute("role") !== "treeitem") return;
    const page = Math.max(1, Math.floor((w.ref.current?.clientHeight ?? 0) / rowHeight) - 1);
    const moves: Record<string, () => void> = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at - 1),
      PageDown: () => go(at + page),
      PageUp: () => go(at - page),
      Home: () => go(0),
      End: () => go(rows.length - 1),
      ArrowRight: () => (row.expandable && !row.expanded ? toggle(row, true) : row.expanded && rows[at + 1]?.parent === row.key && go(at + 1)),
      ArrowLeft: () => (row.expanded && row.kind !== "root" ? toggle(row, false) : row.parent && go(places.get(row.parent) ?? at)),
      Enter: () => show(row),
      " ": () => show(row),
    };
    const below = (): void => {
      const box = (e.target as HTMLElement).getBoundingClientRect();
      openMenu(row, box.left + 24, box.bottom);
    };
    if (write) Object.assign(moves, { F2: () => act("rename", row), Delete: () => act("delete", row), ContextMenu: below });
    const move = e.key === "F10" && e.shiftKey ? below : e.ctrlKey || e.metaKey || e.altKey ? undefined : moves[e.key];
    if (move) {
      e.preventDefault();
      move();
    } else if (e.key.length === 1 && e.key !== " " && !e.ctrlKey && !e.metaKey && !e.altKey) find(e.key);
  };

  /** The row of what an event happened in. */
  const rowOf = (e: Event): Row | undefined => rows[places.get((e.target as Element).closest<HTMLElement>("[data-key]")?.dataset.key ?? "") ?? -1];
  const click = (e: MouseEvent): void => {
    const row = rowOf(e);
    if (!row) return;
    const hit = (e.target as Element).closest(".twist, .more");
    if (hit?.matches(".more")) {
      const box = hit.getBoundingClientRect();
      openMenu(row, box.left, box.bottom);
    } else if (hit && row.expandable && row.kind !== "root") toggle(row, !row.expanded);
    else {
      setFocused(row.key);
      show(row);
    }
  };
  const contextMenu = (e: MouseEvent): void => {
    const row = rowOf(e);
    if (!row || !write) return;
    e.preventDefault();
    openMenu(row, e.clientX, e.clientY);
  };
  const drags = {
    onDragStart: (e: DragEvent): void => {
      dragged.current = rowOf(e) ?? null;
      if (dragged.current) e.dataTransfer?.setData("text/plain", dragged.current.name);
    },
    onDragEnd: (): void => {
      dragged.current = null;
      setTarget("");
    },
    onDragOver: (e: DragEvent): void => {
      const row = rowOf(e);
      const fits = !!row && !!dragged.current && mayDrop(dragged.current, row);
      if (fits) e.preventDefault();
      setTarget(fits ? row.key : "");
    },
    onDrop: (e: DragEvent): void => {
      e.preventDefault();
      setTarget("");
      const row = rowOf(e);
      if (row && dragged.current) drop(dragged.current, row);
    },
  };

  const seen = rows.slice(w.first, w.last).map((row, i) => ({ row, i: w.first + i }));
  if (rows[at] && (at < w.first || at >= w.last)) seen.push({ row: rows[at], i: at });
  return (
    <>
      <div
        class="tree" role="tree" aria-label="Folders and threads" ref={w.ref} onKeyDown={keys} onClick={click} onContextMenu={contextMenu} {...drags}
        onFocusIn={() => (inside.current = true)}
        onFocusOut={(e) => {
          if (moving.current) return;
          const key = (e.target as HTMLElement).dataset.key;
          inside.current = !!w.ref.current?.contains(e.relatedTarget as Node | null) || (!e.relatedTarget && key !== undefined && !latest.current.has(key));
        }}
      >
        <div class="fill" role="none" style={{ height: rows.length * rowHeight + "px" }}>
          {seen.map(({ row, i }) => (
            <div
              key={row.key} data-key={row.key} role="treeitem" tabIndex={row.key === focus ? 0 : -1} class={"node " + (target === row.key ? "target" : "")} draggable={write && row.kind !== "root"}
              aria-level={row.level} aria-setsize={row.size} aria-posinset={row.position} aria-selected={row.key === current} aria-expanded={row.expandable ? row.expanded : undefined}
              style={{ top: i * rowHeight + "px", paddingLeft: 4 + 14 * Math.min(row.level - 1, 12) + "px" }}
            >
              <span class={"twist" + (row.expanded ? " open" : "")} aria-hidden="true">{row.expandable ? "›" : ""}</span>
              <svg viewBox="0 0 20 20" aria-hidden="true"><path d={icons[row.kind]} /></svg>
              <span class="name"><Shown text={row.name} /></span>
              {row.badge && <span class={"badge " + row.badge}><span aria-hidden="true">{signs[row.badge]} </span>{row.badge}</span>}
              {write && <button type="button" class="plain more" tabIndex={-1} aria-label={"Actions for " + plain(row.name)}>⋯</button>}
            </div>
          ))}
        </div>
      </div>
      {menu && <Menu {...menu} act={(what) => { setMenu(null); act(what, menu.row); }} close={() => { setMenu(null); inside.current = true; }} />}
    </>
  );
}

const labels: Record<Row["kind"], [Action, string, string?][]> = {
  root: [["folder", "New folder…"], ["thread", "New thread…"], ["rename", "Rename workspace…", "F2"], ["delete", "Delete workspace…", "Del"]],
  folder: [["folder", "New folder inside…"], ["thread", "New thread inside…"], ["rename", "Rename…", "F2"], ["move", "Move to…"], ["delete", "Delete…", "Del"]],
  thread: [["rename", "Rename…", "F2"], ["move", "Move to…"], ["delete", "Delete…", "Del"]],
};

function Menu({ row, x, y, act, close }: { row: Row; x: number; y: number; act(what: Action): void; close(): void }): JSX.Element {
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const el = ref.current!;
    el.style.left = Math.max(4, Math.min(x, innerWidth - el.offsetWidth - 4)) + "px";
    el.style.top = Math.max(4, Math.min(y, innerHeight - el.offsetHeight - 4)) + "px";
    el.querySelector("button")?.focus();
  }, []);
  const keys = (e: KeyboardEvent): void => {
    const items = [...ref.current!.querySelectorAll("button")];
    const i = items.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: -1 }[e.key];
    if (to !== undefined) items.at(to % items.length)?.focus();
    else if (e.key === "Escape" || e.key === "Tab") close();
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  return (
    <div class="menu" role="menu" aria-label={"Actions for " + plain(row.name)} ref={ref} onKeyDown={keys} onFocusOut={(e) => !ref.current?.contains(e.relatedTarget as Node | null) && close()}>
      {labels[row.kind].map(([what, label, key]) => (
        <button key={what} type="button" role="menuitem" tabIndex={-1} class={"plain" + (what === "delete" ? " bad" : "")} onClick={() => act(what)}>{label}{key && <kbd>{key}</kbd>}</button>
      ))}
    </div>
  );
}
