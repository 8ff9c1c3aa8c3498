package chain

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/lenient"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/textrule"
)

// Budget bounds a text in both units at once.
type Budget struct {
	// Bytes bounds the length in bytes; in LayoutJoined and LayoutTitled that of
	// the project's files in it. Nothing of LayoutDelimited, not even the header,
	// is free.
	Bytes int
	// Chars bounds the length of the whole text in Unicode scalar values.
	Chars int
}

// Rendering is the answer of [Render].
type Rendering struct {
	// Text is the instruction text. In LayoutDelimited it is empty or ended by
	// LF.
	Text string
	// Frame is what stands around it before the model.
	Frame Frame
	// Placement is where that belongs.
	Placement option.Placement
	// Chars is the length of Text in Unicode scalar values, and FullChars what
	// it would be if nothing had been cut or omitted.
	Chars, FullChars int
	// Sources are the chain's, with what became of each. They are copies.
	Sources []Source
	// Diagnostics are those of the rendering alone.
	Diagnostics []Diagnostic

	content string
}

// Cut reports whether any source is not whole for want of room.
func (r *Rendering) Cut() bool {
	return slices.ContainsFunc(r.Sources, func(s Source) bool {
		return s.State == StateTruncated || s.State == StateOmitted
	})
}

// Content is the text as it stands between two lines of a frame: without the LF
// that ends the last line of ours.
func (r *Rendering) Content() string { return r.content }

// Message is the whole as it is put before the model. Without text there is
// none.
func (r *Rendering) Message() string {
	if r.Text == "" {
		return ""
	}
	return r.Frame.Open + "\n" + r.content + "\n" + r.Frame.Close
}

// Render makes the text of a chain. It is never longer than the budget, always
// valid UTF-8, and the same for the same arguments.
//
// In LayoutDelimited sources share what there is so that the nearest is the last
// one to lose: each first gets a floor, nearest first, behind those of the
// managed and global ones; then the rest goes to the nearest. The other layouts
// do as the tools do that they come from. The limits of one source and of their
// number are those in the chain's options.
func Render(c Chain, b Budget) Rendering {
	if c.Options.Layout == option.LayoutJoined || c.Options.Layout == option.LayoutTitled {
		return renderList(&c, b)
	}
	return renderDelimited(&c, b)
}

// What a host puts a backslash into, wherever it stands in a text: the beginning
// of the line with which it ends what it cut, and the boundary between the parts
// of a compiled prompt.
const (
	hostMarker   = "[ truncated : kept"
	hostBoundary = "<!-- grapnel:dynamic -->"
)

// RenderForHost is [Render] with room in the budget's characters for the
// backslashes that a host puts into what looks like its own. Escaping leaves
// little of that: a line of the host's form with blanks before it, and in the
// other layouts all of it. All who say what a prompt will have ask this, so that
// they say the same.
func RenderForHost(c Chain, b Budget) Rendering {
	for room := b.Chars; ; {
		r := Render(c, b)
		over := r.Chars + hostAdditions(r.Text) - room
		if over <= 0 || r.Text == "" {
			return r
		}
		b.Chars -= over
	}
}

// hostAdditions counts what the host might take for its own. Counting too many
// costs a character each, and no more.
func hostAdditions(text string) int {
	return lenient.Lines(text, hostMarker) + strings.Count(text, hostBoundary)
}

// renderDelimited is Render for LayoutDelimited.
func renderDelimited(c *Chain, b Budget) Rendering {
	limits := c.Options.Budget.Filled()
	a := &allocation{header: header(&c.Options), sources: slices.Clone(c.Sources)}
	for i := range a.sources {
		if s := &a.sources[i]; s.usable() || s.named() {
			a.items = append(a.items, newItem(s, limits))
		}
	}
	a.limitCount(limits.Files)
	a.share(textrule.Extent(b))
	text := a.print()
	return Rendering{
		Text: text, content: strings.TrimSuffix(text, "\n"), Frame: c.frame(true), Placement: c.Options.Placement,
		Chars: utf8.RuneCountInString(text), FullChars: a.fullChars(),
		Sources: a.sources, Diagnostics: a.judge(),
	}
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
			out.WriteString(it.omission())
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
	_, inserted := textrule.Escape(it.piece)
	return int64(it.src.sourceBytes(len(it.piece) - inserted))
}

// judge fills in the state of each source and reports it.
func (a *allocation) judge() []Diagnostic {
	rows := []Diagnostic{}
	for _, it := range a.items {
		s := it.src
		if it.admitted && it.escaped > 0 {
			rows = append(rows, s.escaped(it.escaped))
		}
		switch {
		case it.named || it.admitted && it.whole:
		case it.admitted:
			rows = append(rows, s.truncated())
		case it.surplus:
			rows = append(rows, s.omitted(CodeOmittedCount))
		default:
			rows = append(rows, s.omitted(CodeOmittedBudget))
		}
	}
	return rows
}

// escaped reports a source whose text had to be changed.
func (s *Source) escaped(places int) Diagnostic {
	if places == 1 {
		return diagnostic(CodeEscaped, s.Path, "a backslash was put into 1 place that looks like a line or a tag of the prompt")
	}
	return diagnostic(CodeEscaped, s.Path, "a backslash was put into %d places that look like lines or tags of the prompt", places)
}

// truncated marks a source of which not all is in the text.
func (s *Source) truncated() Diagnostic {
	s.State, s.Reason = StateTruncated, string(CodeTruncated)
	return diagnostic(CodeTruncated, s.Path, "kept %d of %d bytes", s.Kept, s.Bytes)
}

// omitted marks a source of which nothing is in the text.
func (s *Source) omitted(code Code) Diagnostic {
	s.State, s.Reason = StateOmitted, string(code)
	if code == CodeOmittedCount {
		return diagnostic(code, s.Path, "%d bytes; other files fill the allowed number", s.Bytes)
	}
	return diagnostic(code, s.Path, "%d bytes; the budget is exhausted", s.Bytes)
}

// fullChars measures the text without any limit.
func (a *allocation) fullChars() int {
	if len(a.items) == 0 {
		return 0
	}
	n := utf8.RuneCountInString(a.header)
	for _, it := range a.items {
		if it.named {
			n += utf8.RuneCountInString(it.omission())
			continue
		}
		n += it.delimiter.Chars + max(utf8.RuneCountInString(it.body), it.src.origin.chars) + 1
	}
	return n
}
