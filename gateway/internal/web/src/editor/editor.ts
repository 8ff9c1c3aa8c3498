// The editor's bundle, loaded when a text is first shown: Markdown with CodeMirror, as plain functions on elements.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { HighlightStyle, Language, defineLanguageFacet, syntaxHighlighting } from "@codemirror/language";
import { MergeView, diff, goToNextChunk, goToPreviousChunk, unifiedMergeView } from "@codemirror/merge";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Annotation, EditorState, type Extension } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { GFM, parser } from "@lezer/markdown";
import { unseen } from "../ui/unseen";

export interface EditorOptions {
  text: string;
  /** The name for assistive technology. */
  label: string;
  readOnly?: boolean;
  /** Called with the whole text after each change by the user. */
  changed?(text: string): void;
  /** Called for Ctrl+S or ⌘S. */
  save?(): void;
}

export interface Editor {
  text(): string;
  /** Sets the text. The cursor and the history of undo stay where the text is the same. */
  replace(text: string): void;
  focus(): void;
  destroy(): void;
}

const ours = Annotation.define<boolean>(); // a change that is not the user's

const markdown = new Language(defineLanguageFacet({ commentTokens: { block: { open: "<!--", close: "-->" } } }), parser.configure(GFM), [], "markdown");

const colours = HighlightStyle.define([
  { tag: tags.heading, fontWeight: "700", color: "var(--accent)" },
  { tag: tags.strong, fontWeight: "700" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: tags.strikethrough, textDecoration: "line-through" },
  { tag: tags.monospace, color: "var(--warn)" },
  { tag: [tags.link, tags.url], color: "var(--accent)", textDecoration: "underline" },
  { tag: tags.quote, color: "var(--quiet)" },
  { tag: [tags.processingInstruction, tags.contentSeparator, tags.comment], color: "var(--quiet)" },
]);

const look = EditorView.theme({
  "&": { backgroundColor: "var(--card)", color: "var(--text)", height: "100%", fontSize: "0.92rem" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-content": { caretColor: "var(--accent)", padding: "0.6rem 0" },
  ".cm-cursor": { borderLeftColor: "var(--accent)", borderLeftWidth: "2px" },
  ".cm-gutters": { backgroundColor: "var(--card)", color: "var(--quiet)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--raised), transparent 35%)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "color-mix(in srgb, var(--accent), transparent 70%) !important" },
  ".cm-selectionMatch": { backgroundColor: "color-mix(in srgb, var(--accent), transparent 82%)" },
  ".cm-searchMatch": { backgroundColor: "color-mix(in srgb, var(--warn), transparent 65%)" },
  ".cm-specialChar": { color: "var(--bad)", border: "1px solid currentColor", borderRadius: "3px", padding: "0 1px" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)" },
  ".cm-panels-bottom": { borderTop: "1px solid var(--line)" },
  ".cm-textfield, .cm-button": { backgroundImage: "none", backgroundColor: "var(--card)", border: "1px solid var(--line)", borderRadius: "4px" },
  ".cm-changedLine, .cm-insertedLine": { backgroundColor: "var(--good-back) !important" },
  "&.cm-merge-a .cm-changedLine, .cm-deletedChunk": { backgroundColor: "var(--bad-back) !important" },
  "&.cm-merge-b .cm-changedText, .cm-insertedLine .cm-changedText": { background: "color-mix(in srgb, var(--good), transparent 72%) !important" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": { background: "color-mix(in srgb, var(--bad), transparent 72%) !important" },
  ".cm-deletedChunk": { paddingLeft: "6px" },
  ".cm-deletedChunk .cm-chunkButtons button": { background: "var(--card)", color: "var(--text)", border: "1px solid var(--line)", font: "inherit", fontSize: "0.85em", padding: "0 0.5em", margin: "0 0.2em" },
  ".cm-collapsedLines": { backgroundColor: "var(--raised)", backgroundImage: "none", color: "var(--quiet)" },
  ".cm-collapsedLines::before, .cm-collapsedLines::after": { content: '"⋯"' },
});

function common(label: string, readOnly: boolean): Extension[] {
  const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
  return [
    EditorView.cspNonce.of(nonce),
    lineNumbers(),
    highlightSpecialChars({ addSpecialChars: unseen }),
    drawSelection(),
    EditorView.lineWrapping,
    search(),
    highlightSelectionMatches(),
    markdown,
    syntaxHighlighting(colours),
    look,
    keymap.of([...searchKeymap, ...defaultKeymap]),
    EditorView.contentAttributes.of({ "aria-label": label, ...(readOnly ? { "aria-readonly": "true", tabindex: "0" } : {}) }),
    readOnly ? [EditorState.readOnly.of(true), EditorView.editable.of(false)] : writable,
  ];
}

// Escape, then Tab, leaves the editor: CodeMirror lets the Tab after an Escape pass.
const writable: Extension[] = [history(), keymap.of([...historyKeymap, indentWithTab]), highlightActiveLine(), highlightActiveLineGutter(), EditorView.contentAttributes.of({ spellcheck: "true" })];

function listening(options: Pick<EditorOptions, "changed" | "save">): Extension[] {
  return [
    EditorView.updateListener.of((u) => {
      if (u.docChanged && !u.transactions.some((t) => t.annotation(ours))) options.changed?.(u.state.doc.toString());
    }),
    keymap.of([{ key: "Mod-s", preventDefault: true, run: () => (options.save?.(), true) }]),
  ];
}

function handle(view: EditorView, destroy: () => void): Editor {
  return {
    text: () => view.state.doc.toString(),
    replace(text) {
      const before = view.state.doc.toString();
      if (before === text) return;
      const changes = diff(before, text, { scanLimit: 500, timeout: 200 }).map((c) => ({ from: c.fromA, to: c.toA, insert: text.slice(c.fromB, c.toB) }));
      view.dispatch({ changes, annotations: ours.of(true) });
    },
    focus: () => view.focus(),
    destroy,
  };
}

/** Makes an editor in parent. */
export function createEditor(parent: HTMLElement, options: EditorOptions): Editor {
  const view = new EditorView({ parent, doc: options.text, extensions: [...common(options.label, options.readOnly ?? false), ...listening(options)] });
  return handle(view, () => view.destroy());
}

export interface MergeOptions {
  /** The other text: on the left, never changed. */
  theirs: string;
  theirLabel: string;
  /** The text that is edited. */
  text: string;
  label: string;
  /** One column, for a narrow screen. */
  narrow: boolean;
  changed?(text: string): void;
}

const chunkKeys = keymap.of([{ key: "Alt-ArrowDown", run: goToNextChunk }, { key: "Alt-ArrowUp", run: goToPreviousChunk }]);

/** Makes a view of two texts in parent, where changes of the other one can be taken over. */
export function createMerge(parent: HTMLElement, o: MergeOptions): Editor {
  if (o.narrow) {
    const view = new EditorView({
      parent, doc: o.text,
      extensions: [...common(o.label, false), ...listening(o), chunkKeys, unifiedMergeView({ original: o.theirs, mergeControls: (type, action) => button(type === "accept" ? "Keep mine" : "Take theirs", action) })],
    });
    return handle(view, () => view.destroy());
  }
  const merge = new MergeView({
    parent, revertControls: "a-to-b", collapseUnchanged: { margin: 4, minSize: 8 },
    renderRevertControl: () => {
      const b = button("→");
      b.title = "Take theirs here";
      b.setAttribute("aria-label", b.title);
      return b;
    },
    a: { doc: o.theirs, extensions: [...common(o.theirLabel, true), chunkKeys] },
    b: { doc: o.text, extensions: [...common(o.label, false), ...listening(o), chunkKeys] },
  });
  return handle(merge.b, () => merge.destroy());
}

function button(text: string, action?: (e: MouseEvent) => void): HTMLButtonElement {
  const b = document.createElement("button");
  b.type = "button";
  b.textContent = text;
  if (action) b.onmousedown = action;
  return b;
}

/** Shows how one text became another, in one column. */
export function createDiff(parent: HTMLElement, o: { before: string; after: string; label: string }): Editor {
  const view = new EditorView({
    parent, doc: o.after,
    extensions: [...common(o.label, true), chunkKeys, unifiedMergeView({ original: o.before, mergeControls: false, collapseUnchanged: { margin: 3, minSize: 6 } })],
  });
  return handle(view, () => view.destroy());
}
