package chain

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// Budget bounds a text in both units at once.
type Budget struct {
	// Bytes bounds the whole text in LayoutDelimited, and the project's files in it in the other layouts.
	Bytes int
	// Chars bounds the whole text in Unicode scalar values.
	Chars int
}

func extentOf(s string) Budget { return Budget{len(s), utf8.RuneCountInString(s)} }

func (b Budget) plus(c Budget) Budget  { return Budget{b.Bytes + c.Bytes, b.Chars + c.Chars} }
func (b Budget) minus(c Budget) Budget { return Budget{b.Bytes - c.Bytes, b.Chars - c.Chars} }

func (b Budget) fits(c Budget) bool { return b.Bytes <= c.Bytes && b.Chars <= c.Chars }

// Rendering is the result of [Render].
type Rendering struct {
	Text             string       // the instruction text; in LayoutDelimited empty, or ending in LF
	Content          string       // Text without that LF, as it stands inside a frame
	Frame            phases.Frame // around Content in the prompt
	Placement        Placement
	Chars, FullChars int          // length of Text in Unicode scalar values, with and without limits
	Sources          []Source     // copies of the chain's, with their final states
	Diagnostics      []Diagnostic // of the rendering alone
	// CutBy are the limits that cut or omitted a source: each would do so if the others were lifted.
	CutBy []Bound
}

// Bound names a limit of a rendering.
type Bound string

// The bounds, as messages name them.
const (
	BoundBytes Bound = "budget.total or budget.file"
	BoundChars Bound = "the lesser of budget.chars of the subscription and budgets.turn.chars"
	BoundFiles Bound = "budget.files"
)

// Cut reports whether the budget cut or omitted a source.
func (r *Rendering) Cut() bool {
	return slices.ContainsFunc(r.Sources, func(s Source) bool {
		return s.State == StateTruncated || s.State == StateOmitted
	})
}

// Message is the text in its frame; empty without text.
func (r *Rendering) Message() string {
	if r.Text == "" {
		return ""
	}
	return r.Frame.Open + "\n" + r.Content + "\n" + r.Frame.Close
}

// Render makes the text of a chain. It is never longer than the budget, always valid UTF-8, and deterministic.
//
// In LayoutDelimited each source first gets a floor, managed and global ones first, then nearest first; then the rest
// goes to the nearest. The other layouts do as the tools do that they come from. The limits of one source and of
// their number are in the chain's options.
func Render(c Chain, b Budget) Rendering {
	if c.Options.Layout != LayoutDelimited && c.Options.Layout != "" {
		return renderList(&c, b)
	}
	return renderDelimited(&c, b)
}

// RenderForHost is [Render] with spare characters for the backslashes that a host puts into what looks like its own
// lines and tags. It gives what a prompt will hold.
func RenderForHost(c Chain, b Budget) Rendering {
	for limit := b.Chars; ; {
		r := Render(c, b)
		// The frame is included, because after it the host drops no byte order mark.
		over := sdk.SectionSize(phases.Frame{}, r.Message()) - sdk.SectionSize(r.Frame, "") - 1 - limit
		if over <= 0 || r.Text == "" {
			r.blame(&c, Budget{b.Bytes, limit})
			return r
		}
		b.Chars -= over
	}
}

// blame fills in CutBy, and adds it to the diagnostics of cuts.
func (r *Rendering) blame(c *Chain, b Budget) {
	if !r.Cut() {
		return
	}
	free := *c
	free.Options.Budget.Files = math.MaxInt32
	if alone := Render(free, Budget{b.Bytes, math.MaxInt32}); alone.Cut() {
		r.CutBy = append(r.CutBy, BoundBytes)
	}
	if r.FullChars > b.Chars {
		r.CutBy = append(r.CutBy, BoundChars)
	}
	if slices.ContainsFunc(r.Sources, func(s Source) bool { return s.Reason == string(CodeOmittedCount) }) {
		r.CutBy = append(r.CutBy, BoundFiles)
	}
	words := make([]string, len(r.CutBy))
	for i, bound := range r.CutBy {
		words[i] = string(bound)
	}
	for i := range r.Diagnostics {
		if d := &r.Diagnostics[i]; len(words) > 0 && (d.Code == CodeTruncated || d.Code == CodeOmittedBudget) {
			d.Detail += " (limit: " + strings.Join(words, ", ") + ")"
		}
	}
}

func renderDelimited(c *Chain, b Budget) Rendering {
	limits := c.Options.Budget
	a := &allocation{header: header(&c.Options), sources: slices.Clone(c.Sources)}
	for i := range a.sources {
		if s := &a.sources[i]; s.usable() || s.named() {
			a.items = append(a.items, newItem(s, limits))
		}
	}
	a.limitCount(limits.Files)
	a.share(b)
	text := a.print()
	return Rendering{
		Text: text, Content: strings.TrimSuffix(text, "\n"), Frame: c.frame(true), Placement: c.Options.Placement,
		Chars: utf8.RuneCountInString(text), FullChars: a.fullChars(),
		Sources: a.sources, Diagnostics: a.judge(),
	}
}

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

func (it *item) print(out *strings.Builder) {
	src := it.src
	src.Kept = it.kept()
	src.Imports = src.imported(len(it.piece))
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

// kept counts the bytes of the file that the printed piece stands for. Escaping the piece again finds the places that
// were escaped.
func (it *item) kept() int64 {
	if it.whole {
		return it.src.Bytes
	}
	_, inserted := Escaper().Escape(it.piece)
	return int64(it.src.sourceBytes(len(it.piece) - inserted))
}

// judge sets the state of each source and reports it.
func (a *allocation) judge() []Diagnostic {
	rows := []Diagnostic{}
	for _, it := range a.items {
		s := it.src
		if it.admitted && it.escaped > 0 {
			places := fmt.Sprintf("%d places that look like lines or tags", it.escaped)
			if it.escaped == 1 {
				places = "1 place that looks like a line or a tag"
			}
			rows = append(rows, diagnostic(CodeEscaped, s.Path, "a backslash was put into %s of the prompt", places))
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

func (s *Source) truncated() Diagnostic {
	s.State, s.Reason = StateTruncated, string(CodeTruncated)
	return diagnostic(CodeTruncated, s.Path, "kept %d of %d bytes", s.Kept, s.Bytes)
}

func (s *Source) omitted(code Code) Diagnostic {
	s.State, s.Reason = StateOmitted, string(code)
	if code == CodeOmittedCount {
		return diagnostic(code, s.Path, "%d bytes; other files fill the allowed number", s.Bytes)
	}
	return diagnostic(code, s.Path, "%d bytes; the budget is exhausted", s.Bytes)
}

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

// The frame of the default preset's section: a preamble and the tags.
const (
	FramePreamble = "Below are the AGENTS.md files of the source tree that you work in, which apply to the working directory. " +
		"System, developer and explicit user messages take precedence over them."
	FrameOpen  = FramePreamble + "\n\n<AGENTS_MD>"
	FrameClose = "</AGENTS_MD>"
)

// wholePreamble begins the frames that the tools' own words do not fit.
const wholePreamble = "Below are the instruction files of the user and of the source tree that you work in. " +
	"System, developer and explicit user messages take precedence over them."

// hintText is what [Options].ChildHint adds.
const hintText = `How AGENTS.md files work:
- An AGENTS.md file may lie in any directory: at the top of the file system, in the home directory, anywhere in a repository.
- It carries what people want an agent to know there: how the code is laid out, built, tested and written.
- Its scope is the directory that it lies in and everything below.
- When you change a file, comply with every AGENTS.md file whose scope that file is in.
- Where two disagree, the one in the deeper directory wins.
- What the prompt itself says wins over all of them.`

// Frame is the longest frame that a text of the chain can have.
func (c *Chain) Frame() phases.Frame { return c.frame(true) }

func (c *Chain) frame(hasProject bool) phases.Frame {
	switch c.Options.Layout {
	case LayoutJoined:
		title := "# AGENTS.md instructions"
		if hasProject {
			title += " for " + PrintPlainPath(c.Dir)
		}
		return phases.Frame{Open: title + "\n\n<INSTRUCTIONS>", Close: "</INSTRUCTIONS>"}
	case LayoutTitled:
		return phases.Frame{Open: `<agents_context scope="initial">`, Close: "</agents_context>"}
	case LayoutContext:
		return phases.Frame{Open: "<loaded_context>", Close: "</loaded_context>"}
	case LayoutContents, LayoutUntrimmed:
		return phases.Frame{Open: wholePreamble + "\n\n<INSTRUCTIONS>", Close: "</INSTRUCTIONS>"}
	default:
		return phases.Frame{Open: FrameOpen, Close: FrameClose}
	}
}

// ruleText begins each text.
const ruleText = `These are the instruction files that apply here, from the most general to the most specific.
Where two disagree, the later one is more specific and wins. System, developer and explicit user messages win over all of them.
`

// lazyText follows it if [Options].Lazy is set.
const lazyText = `- The files below are loaded already: do not search for instruction files again on each turn.
- Look for more only when you are about to read or edit in a directory that is new to you.
- When a reminder lists files, read them and apply them before you change anything in their directories.
- Do not read the same path twice.
- After a session.resume.diff reminder, take in what it says has changed before you go on.
`

func header(o *Options) string {
	text := ruleText
	if o.Lazy {
		text += lazyText
	}
	if o.ChildHint {
		text += "\n" + hintText + "\n"
	}
	return text + "\n"
}

func delimiterLine(path string, scope Scope, kept, total int64) string {
	return fmt.Sprintf("%s \"%s\", scope %s, kept %d of %d bytes]\n", SourceWord, path, scope, kept, total)
}

func truncatedLine(path string, kept, total int64) string {
	return fmt.Sprintf("%s %s, kept %d of %d bytes]\n", TruncatedWord, path, kept, total)
}

func omittedLine(path string, total int64) string {
	return fmt.Sprintf("%s %s, %d bytes, budget exhausted]\n", omittedWord, path, total)
}

func untrustedLine(path string, total int64) string {
	return fmt.Sprintf("%s %s, %d bytes, untrusted root]\n", omittedWord, path, total)
}

func omittedFilesLine(n int) string {
	return fmt.Sprintf("%s %d files, budget exhausted]\n", omittedWord, n)
}
