// Small pieces that all views share.
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { RpcError } from "../rpc";
import { ago, moment } from "./format";
import { unseen } from "./unseen";

// The same character several times is one mark.
const marked = new RegExp("(" + unseen.source + ")\\1*", "gu");

/** Text of plugins, users and documents: never HTML, and unseen characters are shown as marks. */
export function Shown({ text }: { text: string }): JSX.Element {
  const parts: ComponentChildren[] = [];
  let from = 0;
  for (const m of text.matchAll(marked)) {
    const one = m[1]!;
    const times = m[0].length / one.length;
    const code = "U+" + one.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0") + (times > 1 ? " × " + times : "");
    parts.push(text.slice(from, m.index), <span class="unseen" title={code}>{code}</span>);
    from = m.index + m[0].length;
  }
  parts.push(text.slice(from));
  return <bdi>{parts}</bdi>;
}

/** An error, with the gateway's own sentence. */
export function Problem({ error, retry }: { error: unknown; retry?: () => void }): JSX.Element | null {
  if (!error) return null;
  const text = error instanceof Error ? error.message : String(error);
  return (
    <div class="problem" role="alert">
      <span aria-hidden="true">✕</span>
      <p><Shown text={text} />{error instanceof RpcError && <code class="quiet"> {error.code}</code>}</p>
      {retry && <button type="button" onClick={retry}>Try again</button>}
    </div>
  );
}

export type Tone = "good" | "warn" | "bad" | "info" | "plain";
const toneMarks: Record<Tone, string> = { good: "✓", warn: "!", bad: "✕", info: "i", plain: "•" };

/** A word with a sign and a colour. */
export function Tag({ tone, children, title }: { tone: Tone; children: ComponentChildren; title?: string }): JSX.Element {
  return <span class={"tag " + tone} title={title}><span aria-hidden="true">{toneMarks[tone]}</span> {children}</span>;
}

export function Time({ at, relative }: { at: string | null | undefined; relative?: boolean }): JSX.Element {
  if (!at) return <span class="quiet">–</span>;
  return <time dateTime={at} title={new Date(at).toISOString()}>{relative ? ago(at) : moment(at)}</time>;
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return <div class="empty"><h2>{title}</h2>{children}</div>;
}

export function Busy({ what }: { what: string }): JSX.Element {
  return <p class="busy" role="status">{what}…</p>;
}

/** A heading with what can be done on its right. */
export function Head({ title, children, sub }: { title: ComponentChildren; children?: ComponentChildren; sub?: ComponentChildren }): JSX.Element {
  return (
    <header class="head">
      <div><h1 tabIndex={-1}>{title}</h1>{sub && <p class="quiet">{sub}</p>}</div>
      {children && <div class="tools">{children}</div>}
    </header>
  );
}

/** A name and its value, in a list of them. */
export function Facts({ rows }: { rows: [string, ComponentChildren][] }): JSX.Element {
  return <dl class="facts">{rows.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

/** A modal dialog. It is closed by its buttons, Escape, or a click beside it. */
export function Dialog({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null);
  // Not an effect, whose cleanup waits for a frame: by then something else may have the focus.
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    ref.current?.showModal();
    return () => before?.focus?.();
  }, []);
  return (
    <dialog ref={ref} aria-label={title} onClose={close} onClick={(e) => e.target === ref.current && close()}>
      <div class="dialog"><h2>{title}</h2>{children}</div>
    </dialog>
  );
}

/** Tabs that are links, for views with addresses. */
export function Tabs({ label, tabs, current }: { label: string; tabs: { id: string; label: ComponentChildren; to: string }[]; current: string }): JSX.Element {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((t) => <a key={t.id} href={t.to} aria-current={t.id === current ? "page" : undefined}>{t.label}</a>)}
    </nav>
  );
}
