package chain

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/sdk"
)

// Separators of a list.
const (
	partSeparator    = "\n\n"
	projectSeparator = "\n\n--- project-doc ---\n\n"
)

// style says how a layout of whole files writes one.
type style struct {
	title, end string // PATH is its path, SCOPE says whose it is
	between    string
	trim       func(text string) string
}

func styleOf(l Layout) style {
	switch l {
	case LayoutJoined:
		return style{between: partSeparator}
	case LayoutContents: // sFr and wu in Claude Code 2.1.332
		return style{"Contents of PATHSCOPE:\n\n", "", partSeparator, trimSpace}
	case LayoutContext: // concatenateInstructions in packages/core/src/utils/memoryDiscovery.ts of Gemini CLI
		return style{"--- Context from: PATH ---\n", "\n--- End of Context from: PATH ---", partSeparator, trimSpace}
	case LayoutUntrimmed: // Instruction.system in packages/opencode/src/session/instruction.ts of opencode
		return style{"Instructions from: PATH\n", "", "\n", func(text string) string { return text }}
	default:
		return style{"Instructions from: PATH\n", "", partSeparator, trimEnd}
	}
}

func trimEnd(text string) string   { return strings.TrimRightFunc(text, trailingSpace) }
func trimSpace(text string) string { return strings.TrimLeftFunc(trimEnd(text), trailingSpace) }

// write fills in a title or an end.
func (s *Source) write(line string) string {
	whose := map[Scope]string{
		ScopeManaged: " (organization-managed policy instructions)", ScopeGlobal: " (user's private global instructions for all projects)",
		ScopeLocal: " (user's private project instructions, not checked in)",
	}[s.Scope]
	line = strings.Replace(line, "SCOPE", cmp.Or(whose, " (project instructions, checked into the codebase)"), 1)
	return strings.Replace(line, "PATH", PrintPlainPath(s.Path), 1)
}

// list builds the text of the layouts but LayoutDelimited: parts in sequence, root first. The first that does not fit
// is cut, or is the end.
type list struct {
	joined bool // LayoutJoined, else one of whole files
	// ownBytes says that the limit of bytes is the tool's, which leaves out what does not fit.
	ownBytes bool
	style    style
	files    int // left
	left     int // bytes of files left
	chars    int // characters of the text left

	out     strings.Builder
	parts   int
	wide    bool // the last part is a user-wide file's
	project bool // there is text of a project's file
	ended   Code // why nothing more is taken
	rows    []Diagnostic
}

func renderList(c *Chain, b Budget) Rendering {
	o := &c.Options
	l := &list{
		joined: o.Layout == LayoutJoined, ownBytes: o.Layout == LayoutTitled, style: styleOf(o.Layout), files: cmp.Or(o.Budget.Files, len(c.Sources)),
		left: min(b.Bytes, o.Budget.Total), chars: b.Chars, rows: []Diagnostic{},
	}
	hint := ""
	if o.ChildHint && utf8.RuneCountInString(hintText+partSeparator) <= l.chars {
		hint = hintText
		l.chars -= utf8.RuneCountInString(hintText + partSeparator)
	}
	sources := slices.Clone(c.Sources)
	l.share(sources, o.NearestFirst)
	for i := range sources {
		switch s := &sources[i]; {
		case s.State == StateOmitted:
		case s.named():
			l.name(s)
		case s.usable():
			l.take(s, o.Budget.File)
		}
	}
	if hint != "" {
		l.out.WriteString(l.between(l.wide) + hint)
	}
	text := l.out.String()
	return Rendering{
		Text: text, Content: text, Frame: c.frame(l.project), Placement: o.Placement,
		Chars: utf8.RuneCountInString(text), FullChars: l.fullChars(c, hint),
		Sources: sources, Diagnostics: l.rows,
	}
}

// share gives the budget to the nearest of whole files first: one that does not fit is cut, and those beyond it are omitted.
// Only the limit of bytes of Codelia is its own: there the first file that does not fit ends the list.
func (l *list) share(sources []Source, nearestFirst bool) {
	if l.joined {
		return
	}
	var fits []*Source
	taken, left := 0, Budget{l.left, l.chars + len(l.style.between)}
	for i := range sources {
		s := &sources[i]
		if !s.usable() {
			continue
		}
		if taken += len(s.Text); len(fits) == l.files || l.ownBytes && (taken > l.left || s.origin.long) {
			break
		}
		fits = append(fits, s)
	}
	if !nearestFirst {
		slices.Reverse(fits)
	}
	slices.SortStableFunc(fits, func(a, b *Source) int {
		if a.Scope.userWide() == b.Scope.userWide() {
			return 0
		}
		return cmp.Compare(b.Scope, a.Scope)
	})
	for _, s := range fits {
		size := Budget{len(s.Text), utf8.RuneCountInString(l.style.trim(s.Text))}
		left.Chars -= utf8.RuneCountInString(l.style.between + l.title(s) + l.end(s))
		switch {
		case !s.origin.long && size.fits(left):
			left = left.minus(size)
		case left.Bytes > 0 && left.Chars > l.mark(s).Chars:
			s.origin.share, left = left, Budget{}
		default:
			l.rows = append(l.rows, s.omitted(CodeOmittedBudget))
			left = Budget{}
		}
	}
}

func (l *list) take(s *Source, most int) {
	free := l.joined && s.Scope.userWide()
	if !free && l.ended == "" && l.files <= 0 {
		l.ended = CodeOmittedCount
	}
	if !free && l.ended != "" {
		l.rows = append(l.rows, s.omitted(l.ended))
		return
	}
	text, kept := l.body(s, free, most)
	if text == "" {
		if !free && !l.joined {
			l.ended = CodeOmittedBudget
		}
		l.rows = append(l.rows, s.omitted(CodeOmittedBudget))
		return
	}
	l.add(l.title(s)+text+l.end(s), s.Scope.userWide())
	l.project = l.project || !s.Scope.userWide()
	s.Kept, s.DeliveredBytes = int64(kept), len(text)
	if s.Kept < s.Bytes {
		l.rows = append(l.rows, s.truncated())
	}
	if !free {
		l.files--
	}
}

// body is the text of a source that fits, and how many bytes of the file it stands for. Taking it uses up the budget;
// free text uses only characters.
func (l *list) body(s *Source, free bool, most int) (text string, kept int) {
	limit := l.chars - utf8.RuneCountInString(l.between(s.Scope.userWide())+l.title(s)+l.end(s))
	if !l.joined {
		return l.whole(s, limit)
	}
	raw, lead := cmp.Or(s.origin.raw, s.Text), 0
	if free {
		text = strings.TrimLeftFunc(s.Text, unicode.IsSpace)
		lead = len(s.Text) - len(text)
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	} else {
		raw = raw[:max(0, min(len(raw), l.left, cmp.Or(most, len(raw))))]
		text, _ = s.origin.form.text(raw)
	}
	kept = len(raw)
	if utf8.RuneCountInString(text) > limit {
		text = sdk.LongestPrefix(text, math.MaxInt, limit)
		kept = s.origin.form.sourceBytes(raw, lead+len(text))
	}
	if isBlank(text) {
		return "", 0
	}
	if !free {
		l.left -= len(raw)
	}
	return text, kept
}

func (l *list) whole(s *Source, limit int) (text string, kept int) {
	text = l.style.trim(s.Text)
	lead, left := strings.Index(s.Text, text), Budget{l.left, limit}
	if s.origin.share != (Budget{}) {
		left = Budget{min(left.Bytes, s.origin.share.Bytes), min(left.Chars, s.origin.share.Chars)}
	}
	if !s.origin.long && (Budget{len(s.Text), utf8.RuneCountInString(text)}).fits(left) {
		l.left -= len(s.Text)
		return text, int(s.Bytes)
	}
	text = trimEnd(Escaper().Cut(text, left.Bytes-lead, left.Chars-l.mark(s).Chars))
	if text == "" || l.ownBytes && (s.origin.long || len(s.Text) > l.left) {
		return "", 0
	}
	kept = min(s.sourceBytes(lead+len(text)), int(s.Bytes)-1)
	l.left -= lead + len(text)
	s.Imports = s.imported(lead + len(text))
	return text + "\n" + strings.TrimSuffix(truncatedLine(PrintPlainPath(s.Path), int64(kept), s.Bytes), "\n"), kept
}

// mark is the longest line that says that a file was cut.
func (l *list) mark(s *Source) Budget {
	return extentOf(truncatedLine(PrintPlainPath(s.Path), s.Bytes, s.Bytes))
}

func blank(layout Layout, text string) bool {
	if layout == LayoutDelimited || layout == LayoutJoined {
		return isBlank(text)
	}
	return styleOf(layout).trim(text) == ""
}

// trailingSpace is white space to the tools of the layouts with whole files: a byte order mark counts, the control NEL does
// not.
func trailingSpace(c rune) bool { return c == 0xFEFF || c != 0x85 && unicode.IsSpace(c) }

func (l *list) title(s *Source) string { return s.write(l.style.title) }
func (l *list) end(s *Source) string   { return s.write(l.style.end) }

func (l *list) name(s *Source) {
	path := s.Path
	if l.joined {
		path = s.Display
	}
	line := strings.TrimSuffix(untrustedLine(PrintPlainPath(path), s.Bytes), "\n")
	if utf8.RuneCountInString(l.between(false)+line) <= l.chars {
		l.add(line, false)
	}
}

func (l *list) add(part string, wide bool) {
	l.chars -= utf8.RuneCountInString(l.between(wide) + part)
	l.out.WriteString(l.between(wide) + part)
	l.parts++
	l.wide = wide
}

func (l *list) between(wide bool) string {
	switch {
	case l.parts == 0:
		return ""
	case l.joined && l.wide && !wide:
		return projectSeparator
	default:
		return l.style.between
	}
}

func (l *list) fullChars(c *Chain, hint string) int {
	n := utf8.RuneCountInString(hint)
	for i := range c.Sources {
		if s := &c.Sources[i]; s.usable() {
			n += utf8.RuneCountInString(l.title(s)+l.end(s)) + max(s.origin.chars, utf8.RuneCountInString(s.Text)) + len(partSeparator)
		}
	}
	return max(n, utf8.RuneCountInString(l.out.String()))
}
