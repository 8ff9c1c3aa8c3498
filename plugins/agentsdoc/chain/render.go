package chain

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Budget bounds a text in both units at once. Nothing, not even the header, is
// free.
type Budget struct {
	// Bytes bounds the length in bytes.
	Bytes int
	// Chars bounds the length in Unicode scalar values.
	Chars int
}

// Rendering is the answer of [Render].
type Rendering struct {
	// Text is the instruction text; empty, or ended by LF.
	Text string
	// Chars is the length of Text in Unicode scalar values, and FullChars what
	// it would be if nothing had been cut or omitted.
	Chars, FullChars int
	// Sources are the chain's, with what became of each. They are copies.
	Sources []Source
	// Diagnostics are those of the rendering alone.
	Diagnostics []Diagnostic
}

// Cut reports whether any source is not whole for want of room.
func (r Rendering) Cut() bool {
	return slices.ContainsFunc(r.Sources, func(s Source) bool {
		return s.State == StateTruncated || s.State == StateOmitted
	})
}

// ruleText heads each text.
const ruleText = `These are the instruction files that apply here, from the most general to the most specific.
Where two disagree, the later one is more specific and wins. System, developer and explicit user messages win over all of them.
`

// lazyText follows it while files of other folders are delivered on touch.
const lazyText = `- The files below are loaded already: do not search for instruction files again on each turn.
- Look for more only when you are about to read or edit in a folder that is new to you.
- When a reminder lists files, read them and apply them before you change anything in their folders.
- Do not read the same path twice.
- After a session.resume.diff reminder, take in what it says has changed before you go on.
`

// Render makes the text of a chain. It is never longer than the budget in
// either unit, always valid UTF-8, and the same for the same arguments.
//
// Sources share what there is so that the nearest is the last one to lose: each
// first gets a floor, nearest first, behind those of the managed and global
// ones; then the rest goes to the nearest. The limits of one source and of
// their number are those in the chain's options.
func Render(c Chain, b Budget) Rendering {
	limits := c.Options.Budget.filled()
	a := &allocation{header: header(c.Options.Lazy), sources: slices.Clone(c.Sources)}
	for i := range a.sources {
		if a.sources[i].usable() {
			a.items = append(a.items, newItem(&a.sources[i], limits))
		}
	}
	a.limitCount(limits.Files)
	a.share(extent{b.Bytes, b.Chars})
	text := a.print()
	return Rendering{
		Text: text, Chars: utf8.RuneCountInString(text), FullChars: a.fullChars(),
		Sources: a.sources, Diagnostics: a.judge(),
	}
}

// header is the text before the first source.
func header(lazy bool) string {
	if lazy {
		return ruleText + lazyText + "\n"
	}
	return ruleText + "\n"
}

// delimiterLine begins a source.
func delimiterLine(path string, scope Scope, kept, total int64) string {
	return fmt.Sprintf("%s \"%s\", scope %s, kept %d of %d bytes]\n", sourceWord, path, scope, kept, total)
}

// truncatedLine ends a source that was cut.
func truncatedLine(path string, kept, total int64) string {
	return fmt.Sprintf("%s %s, kept %d of %d bytes]\n", truncatedWord, path, kept, total)
}

// omittedLine stands for a source without room.
func omittedLine(path string, total int64) string {
	return fmt.Sprintf("%s %s, %d bytes, budget exhausted]\n", omittedWord, path, total)
}

// omittedFilesLine stands for all sources without room.
func omittedFilesLine(n int) string {
	return fmt.Sprintf("%s %d files, budget exhausted]\n", omittedWord, n)
}

// print writes the text, in chain order, and fills in what each source got.
func (a *allocation) print() string {
	if a.empty {
		return ""
	}
	var out strings.Builder
	out.WriteString(a.header)
	if a.summary {
		out.WriteString(omittedFilesLine(a.omitted()))
	}
	for _, it := range a.items {
		switch {
		case it.admitted:
			it.print(&out)
		case it.line:
			out.WriteString(omittedLine(it.path, it.src.Bytes))
		}
	}
	return out.String()
}

// print writes one source.
func (it *item) print(out *strings.Builder) {
	src := it.src
	src.Kept = it.kept()
	out.WriteString(delimiterLine(it.path, src.Scope, src.Kept, src.Bytes))
	if it.piece != "" {
		out.WriteString(it.piece)
		out.WriteByte('\n')
		src.DeliveredBytes = len(it.piece) + 1
	}
	if !it.whole {
		out.WriteString(truncatedLine(it.path, src.Kept, src.Bytes))
	}
}

// kept counts the bytes of the file that the printed piece stands for. In a
// piece, the places that need escaping are those that were escaped.
func (it *item) kept() int64 {
	if it.whole {
		return it.src.Bytes
	}
	_, inserted := escape(it.piece)
	n := len(it.piece) - inserted
	if raw := it.src.origin.raw; raw != "" {
		n = sourceBytes(raw, n)
	}
	return int64(n)
}

// judge fills in the state of each source and reports it.
func (a *allocation) judge() []Diagnostic {
	rows := []Diagnostic{}
	for _, it := range a.items {
		s := it.src
		if it.admitted && it.escaped > 0 {
			rows = append(rows, diagnostic(CodeEscaped, s.Path, "a backslash was put into %d places that look like lines or tags of the prompt", it.escaped))
		}
		switch {
		case it.admitted && it.whole:
		case it.admitted:
			s.State, s.Reason = StateTruncated, string(CodeTruncated)
			rows = append(rows, diagnostic(CodeTruncated, s.Path, "kept %d of %d bytes", s.Kept, s.Bytes))
		case it.surplus:
			s.State, s.Reason = StateOmitted, string(CodeOmittedCount)
			rows = append(rows, diagnostic(CodeOmittedCount, s.Path, "%d bytes; nearer files fill the allowed number", s.Bytes))
		default:
			s.State, s.Reason = StateOmitted, string(CodeOmittedBudget)
			rows = append(rows, diagnostic(CodeOmittedBudget, s.Path, "%d bytes; the budget is exhausted", s.Bytes))
		}
	}
	return rows
}

// fullChars measures the text without any limit.
func (a *allocation) fullChars() int {
	if len(a.items) == 0 {
		return 0
	}
	n := utf8.RuneCountInString(a.header)
	for _, it := range a.items {
		n += it.delimiter.chars + max(utf8.RuneCountInString(it.body), it.src.origin.chars) + 1
	}
	return n
}
