package chain

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/sdk/prompttext"
)

// Separators of a list.
const (
	partSeparator    = "\n\n"
	projectSeparator = "\n\n--- project-doc ---\n\n"
	fileTitle        = "Instructions from: "
)

// list builds the text of LayoutJoined and LayoutTitled: parts in sequence, root first. The first that does not fit
// is cut, or is the end.
type list struct {
	joined bool // LayoutJoined, else LayoutTitled
	files  int  // left
	left   int  // bytes of files left
	chars  int  // characters of the text left

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
		joined: o.Layout == LayoutJoined, files: cmp.Or(o.Budget.Files, len(c.Sources)),
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
		l.out.WriteString(l.between(l.wide) + hint)
	}
	text := l.out.String()
	return Rendering{
		Text: text, Content: text, Frame: c.frame(l.project), Placement: o.Placement,
		Chars: utf8.RuneCountInString(text), FullChars: l.fullChars(c, hint),
		Sources: sources, Diagnostics: l.rows,
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

// body is the text of a source that fits, and how many bytes of the file it stands for. Taking it uses up the budget;
// free text uses only characters.
func (l *list) body(s *Source, free bool, most int) (text string, kept int) {
	limit := l.chars - utf8.RuneCountInString(l.between(s.Scope.userWide())+l.title(s))
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
		text = prompttext.Prefix(text, math.MaxInt, limit)
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
	size := len(s.Text)
	text = strings.TrimRightFunc(s.Text, trailingSpace)
	if s.origin.long || size > l.left || utf8.RuneCountInString(text) > limit {
		return "", 0
	}
	l.left -= size
	return text, int(s.Bytes)
}

func blank(layout Layout, text string) bool {
	if layout == LayoutTitled {
		return strings.TrimRightFunc(text, trailingSpace) == ""
	}
	return isBlank(text)
}

// trailingSpace is white space at the end of a file of LayoutTitled: a byte order mark counts, the control NEL does
// not.
func trailingSpace(c rune) bool { return c == 0xFEFF || c != 0x85 && unicode.IsSpace(c) }

func (l *list) title(s *Source) string {
	if l.joined {
		return ""
	}
	return fileTitle + PrintPlainPath(s.Path) + "\n"
}

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
		return partSeparator
	}
}

func (l *list) fullChars(c *Chain, hint string) int {
	n := utf8.RuneCountInString(hint)
	for i := range c.Sources {
		if s := &c.Sources[i]; s.usable() {
			n += utf8.RuneCountInString(l.title(s)) + max(s.origin.chars, utf8.RuneCountInString(s.Text)) + len(partSeparator)
		}
	}
	return max(n, utf8.RuneCountInString(l.out.String()))
}
