package chain

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/textrule"
)

// What stands between the parts of a list.
const (
	partSeparator    = "\n\n"
	projectSeparator = "\n\n--- project-doc ---\n\n"
	fileTitle        = "Instructions from: "
)

// list is the text of LayoutJoined and LayoutTitled: parts, one after the other,
// root first. The first that does not fit is cut, or is the end.
type list struct {
	joined bool // or titled
	files  int  // that are still allowed
	left   int  // bytes of files that are
	chars  int  // characters of the text that are

	out     strings.Builder
	parts   int
	wide    bool // the last part is a user-wide file's
	project bool // there is text of a project's file
	ended   Code // why nothing more is taken
	rows    []Diagnostic
}

// renderList is Render for these layouts.
func renderList(c *Chain, b Budget) Rendering {
	o := &c.Options
	l := &list{
		joined: o.Layout == option.LayoutJoined, files: cmp.Or(o.Budget.Files, len(c.Sources)),
		left: min(b.Bytes, o.Budget.Total), chars: b.Chars, rows: []Diagnostic{},
	}
	hint := ""
	if o.ChildHint && utf8.RuneCountInString(hintText+partSeparator) <= l.chars {
		hint = hintText
		l.chars -= utf8.RuneCountInString(hintText + partSeparator)
	}
	sources := slices.Clone(c.Sources)
	for i := range sources {
		switch s := &sources[i]; {
		case s.named():
			l.name(s)
		case s.usable():
			l.take(s, o.Budget.File)
		}
	}
	if hint != "" {
		l.separate(l.wide)
		l.out.WriteString(hint)
	}
	text := l.out.String()
	return Rendering{
		Text: text, content: text, Frame: c.frame(l.project), Placement: o.Placement,
		Chars: utf8.RuneCountInString(text), FullChars: l.fullChars(c, hint),
		Sources: sources, Diagnostics: l.rows,
	}
}

// take adds a source, or as much of it as fits.
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
	l.add(l.title(s)+text, s.Scope.userWide())
	l.project = l.project || !s.Scope.userWide()
	s.Kept, s.DeliveredBytes = int64(kept), len(text)
	if s.Kept < s.Bytes {
		l.rows = append(l.rows, s.truncated())
	}
	if !free {
		l.files--
	}
}

// body is the text of a source that there is room for, and how many bytes of
// the file it stands for. Taking it uses up the budget; free text uses none but
// characters.
func (l *list) body(s *Source, free bool, most int) (text string, kept int) {
	room := l.chars - utf8.RuneCountInString(l.between(s.Scope.userWide())+l.title(s))
	if !l.joined {
		return l.whole(s, room)
	}
	raw, lead := s.raw(), 0
	if free {
		text = strings.TrimLeftFunc(s.Text, unicode.IsSpace)
		lead = len(s.Text) - len(text)
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	} else {
		raw = raw[:max(0, min(len(raw), l.left, cmp.Or(most, len(raw))))]
		text, _ = s.origin.form.Text(raw)
	}
	kept = len(raw)
	if utf8.RuneCountInString(text) > room {
		text = text[:textrule.PrefixIn(text, textrule.Extent{Bytes: len(text), Chars: room})]
		kept = s.origin.form.SourceBytes(raw, lead+len(text))
	}
	if textrule.IsBlank(text) {
		return "", 0
	}
	if !free {
		l.left -= len(raw)
	}
	return text, kept
}

// whole is the text of a source if all of it fits.
func (l *list) whole(s *Source, room int) (text string, kept int) {
	size := len(s.Text)
	text = strings.TrimRightFunc(s.Text, trailingSpace)
	if s.origin.long || size > l.left || utf8.RuneCountInString(text) > room {
		return "", 0
	}
	l.left -= size
	return text, int(s.Bytes)
}

// blank reports whether a file of the text takes no part.
func blank(layout option.Layout, text string) bool {
	if layout == option.LayoutTitled {
		return strings.TrimRightFunc(text, trailingSpace) == ""
	}
	return textrule.IsBlank(text)
}

// trailingSpace reports whether a character counts as white space at the end of
// a file of LayoutTitled. A byte order mark does, the control NEL does not.
func trailingSpace(c rune) bool { return c == 0xFEFF || c != 0x85 && unicode.IsSpace(c) }

// raw are the bytes that Text came from.
func (s *Source) raw() string {
	if s.origin.raw != "" {
		return s.origin.raw
	}
	return s.Text
}

// title is the line above a source.
func (l *list) title(s *Source) string {
	if l.joined {
		return ""
	}
	return fileTitle + textrule.PrintPlainPath(s.Path) + "\n"
}

// name adds a line for a source of which only the name may be said.
func (l *list) name(s *Source) {
	path := s.Path
	if l.joined {
		path = s.Display
	}
	line := strings.TrimSuffix(untrustedLine(textrule.PrintPlainPath(path), s.Bytes), "\n")
	if utf8.RuneCountInString(l.between(false)+line) <= l.chars {
		l.add(line, false)
	}
}

// add adds a part.
func (l *list) add(part string, wide bool) {
	l.chars -= utf8.RuneCountInString(l.between(wide) + part)
	l.separate(wide)
	l.out.WriteString(part)
	l.parts++
	l.wide = wide
}

// separate writes what stands between the last part and the next.
func (l *list) separate(wide bool) { l.out.WriteString(l.between(wide)) }

// between is what stands before a part.
func (l *list) between(wide bool) string {
	switch {
	case l.parts == 0:
		return ""
	case l.joined && l.wide && !wide:
		return projectSeparator
	default:
		return partSeparator
	}
}

// fullChars measures the text without any limit.
func (l *list) fullChars(c *Chain, hint string) int {
	n := utf8.RuneCountInString(hint)
	for i := range c.Sources {
		if s := &c.Sources[i]; s.usable() {
			n += utf8.RuneCountInString(l.title(s)) + max(s.origin.chars, utf8.RuneCountInString(s.Text)) + len(partSeparator)
		}
	}
	return max(n, utf8.RuneCountInString(l.out.String()))
}
