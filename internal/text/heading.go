package text

import (
	"html"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/grapnelhq/grapnel/lenient"
)

// maxHeadingPasses is how often a text is searched: what was escaped may have hidden
// another heading, as in "<h2><h2>Safety". Only who means to hide one needs more, and
// then every heading of the text goes.
const maxHeadingPasses = 8

// noHeading reports whether a text has none of the characters without which there is no
// heading.
func noHeading(s string) bool {
	return !strings.ContainsAny(s, "#<=-&＃") && !strings.Contains(s, "**") && !strings.Contains(s, "__")
}

// Letters is what is left of a heading for a reader who does not look closely: its
// letters and digits, in lower case. Marks, accents, blanks, punctuation and characters
// that are not seen do not tell two headings apart, and neither do compatibility forms
// such as fullwidth or mathematical letters (it folds by NFKD, which is NFKC with the
// accents taken off), nor letters of another script that look alike.
func Letters(s string) string {
	return strings.Map(func(r rune) rune {
		if (unicode.IsLetter(r) || unicode.IsDigit(r)) && !unseen(r) {
			return unicode.ToLower(lenient.Lookalike(r))
		}
		return -1
	}, norm.NFKD.String(s))
}

// EscapeHeadings inserts a backslash into each Markdown or HTML heading in s that is
// reserved, so that it is no heading any more, and returns how many backslashes: before
// the '#' of "## Safety", before the line below a heading that is underlined, after the
// '<' of "<h2>Safety</h2>", before a line that is all bold. Headings in quotes and lists count, and characters that some
// reader takes for a line break end a line. Reserved gets the [Letters] of a heading,
// with and without its tags, comments and link targets. s should be normalised. Text
// without headings comes back as it is, without allocation.
func EscapeHeadings(s string, reserved func(letters string) bool) (string, int) {
	_, s, n := EscapeFragmentHeadings(Frame{}, s, reserved)
	return s, n
}

// EscapeFragmentHeadings is [EscapeHeadings] for a body in its frame, as [Render] sets
// them: a heading may begin in one part and end in the next.
func EscapeFragmentHeadings(frame Frame, body string, reserved func(letters string) bool) (Frame, string, int) {
	if noHeading(body) && noHeading(frame.Open) && noHeading(frame.Close) {
		return frame, body, 0
	}
	count := 0
	for pass := 0; ; pass++ {
		if pass == maxHeadingPasses {
			reserved = func(string) bool { return true }
		}
		marks := headings(Render(frame, body, ""), reserved)
		if len(marks) == 0 || pass > maxHeadingPasses {
			return frame, body, count
		}
		count += len(marks)
		begin := 0
		for _, part := range [...]*string{&frame.Open, &body, &frame.Close} {
			if *part == "" {
				continue
			}
			end := begin + len(*part)
			n, _ := slices.BinarySearch(marks, end)
			*part = withBackslashes(*part, begin, marks[:n])
			marks, begin = marks[n:], end+1
		}
	}
}

// withBackslashes inserts a backslash at each of the marks, counted from -begin.
func withBackslashes(s string, begin int, marks []int) string {
	if len(marks) == 0 {
		return s
	}
	var out strings.Builder
	out.Grow(len(s) + len(marks))
	written := 0
	for _, at := range marks {
		out.WriteString(s[written : at-begin])
		out.WriteByte('\\')
		written = at - begin
	}
	out.WriteString(s[written:])
	return out.String()
}

// headings returns where backslashes take the reserved headings away, in order.
func headings(s string, reserved func(string) bool) []int {
	marks := appendElements(appendLines(nil, s, reserved), s, reserved)
	slices.Sort(marks)
	return marks
}

// appendLines appends the marks of the headings that Markdown knows: lines that begin
// with '#', and lines that underline what is above them.
func appendLines(marks []int, s string, reserved func(string) bool) []int {
	paragraph := 0 // where the paragraph above begins
	above := ""    // the last line of it in which there is something to see
	hard := 0      // where the line ends for Markdown
	for begin := 0; begin < len(s); {
		end, next := lineEnd(s, begin)
		line, whole := s[begin:end], s[begin:end]
		if begin == 0 || s[begin-1] == '\n' {
			hard = len(s)
			if n := strings.IndexByte(s[begin:], '\n'); n >= 0 {
				hard = begin + n
			}
			whole = s[begin:hard]
		}
		inner, inList := content(line)
		switch at := underline(line); {
		case showsHash(line[inner:]) || isBold(line[inner:]):
			if reads(line[inner:], reserved) || len(whole) > len(line) && reads(whole[inner:], reserved) {
				marks = append(marks, begin+inner)
			}
			paragraph, above = next, ""
		case at >= 0:
			if reads(above, reserved) || reads(s[paragraph:begin], reserved) {
				marks = append(marks, begin+at)
			}
			paragraph, above = next, ""
		case strings.Trim(whole, " \t") == "" && end == hard:
			paragraph, above = next, ""
		default:
			if inList {
				paragraph = begin + inner
			}
			if inner < len(line) {
				above = line[inner:]
			}
		}
		begin = next
	}
	return marks
}

// showsHash reports whether a line begins with '#', in whatever form.
func showsHash(line string) bool {
	c, _ := lenient.Shown(line, 0)
	return c == '#'
}

// isBold reports whether all of a line is bold, which passes for a heading.
func isBold(line string) bool {
	line = strings.TrimRightFunc(line, func(r rune) bool { return unseen(r) || r == ':' })
	for _, mark := range [...]string{"**", "__"} {
		if len(line) > 2*len(mark) && strings.HasPrefix(line, mark) && strings.HasSuffix(line, mark) {
			return true
		}
	}
	return false
}

// lineEnd returns where the line that begins at begin ends, and where the next begins.
func lineEnd(s string, begin int) (end, next int) {
	n := strings.IndexFunc(s[begin:], isBreak)
	if n < 0 {
		return len(s), len(s)
	}
	_, size := utf8.DecodeRuneInString(s[begin+n:])
	return begin + n, begin + n + size
}

// isBreak reports whether some reader begins a line after r: Markdown, Unicode or
// Python.
func isBreak(r rune) bool {
	switch r {
	case '\n', '\v', '\f', '\x1c', '\x1d', '\x1e', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

// content returns where the content of a line begins, behind what is not seen, the
// marks of quotes and those of lists, and whether there was one of a list.
func content(line string) (at int, inList bool) {
	for {
		rest := strings.TrimLeftFunc(line[at:], unseen)
		at = len(line) - len(rest)
		if strings.HasPrefix(rest, ">") {
			at++
			continue
		}
		mark := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		if mark == len(rest) || mark == 0 && !strings.ContainsRune("-*+", rune(rest[0])) || mark > 0 && rest[mark] != '.' && rest[mark] != ')' {
			return at, inList
		}
		if r, _ := utf8.DecodeRuneInString(rest[mark+1:]); !unseen(r) {
			return at, inList
		}
		at, inList = at+mark+1, true
	}
}

// underline returns where the '=' or '-' begin of which alone a line consists, quoted
// or not; -1 if there is something else.
func underline(line string) int {
	rest := strings.TrimLeftFunc(line, func(r rune) bool { return r == '>' || unseen(r) })
	if rest == "" || rest[0] != '=' && rest[0] != '-' {
		return -1
	}
	mark := rune(rest[0])
	for _, r := range strings.TrimRightFunc(rest, unseen) {
		if r != mark && (!unseen(r) || unicode.IsSpace(r)) {
			return -1
		}
	}
	return len(line) - len(rest)
}

// appendElements appends the marks of the HTML headings, wherever they begin. One ends
// where the next begins or ends; where it is not closed, its first line is compared too.
func appendElements(marks []int, s string, reserved func(string) bool) []int {
	for at := element(s, 0, false); at < len(s); {
		next := element(s, at+1, false)
		inner := s[at:element(s[:next], at+1, true)]
		if reads(inner, reserved) || reads(firstLine(withoutTags(inner, true)), reserved) || reads(firstLine(withoutTags(inner, false)), reserved) {
			marks = append(marks, at+1)
		}
		at = next
	}
	return marks
}

// element returns where the next "<h2" begins, of any level, or the next "</h2" if it
// is to be an end; the length of s if there is none.
func element(s string, from int, ending bool) int {
	for i := from; i < len(s); i++ {
		n := strings.IndexByte(s[i:], '<')
		if n < 0 {
			break
		}
		i += n
		rest, slash := strings.CutPrefix(s[i+1:], "/")
		if slash == ending && len(rest) > 1 && lower(rest[0]) == 'h' && '1' <= rest[1] && rest[1] <= '6' {
			return i
		}
	}
	return len(s)
}

// firstLine returns the first line in which there is something to see.
func firstLine(s string) string {
	s = strings.TrimLeftFunc(s, unseen)
	end, _ := lineEnd(s, 0)
	return s[:end]
}

// reads reports whether a heading passes for a reserved one: as it is written, or with
// the markup gone that Markdown and HTML do not show.
func reads(s string, reserved func(string) bool) bool {
	if reserved(Letters(s)) {
		return true
	}
	if !strings.ContainsAny(s, "<[{&") {
		return false
	}
	s = withoutComments(withoutTargets(s))
	for _, shown := range [...]string{s, withoutTags(s, false), withoutTags(s, true)} {
		if reserved(Letters(html.UnescapeString(shown))) {
			return true
		}
	}
	return false
}

// unseen are the blanks and the characters without a shape, which may stand before a
// heading or in it: Markdown takes up to three blanks, a model any.
func unseen(r rune) bool {
	return unicode.In(r, unicode.Z, unicode.Cc, unicode.Cf, unicode.M, unicode.Other_Default_Ignorable_Code_Point) || r == '\u2800'
}

// withoutTargets removes what follows the text of a link, notes and attributes: "(x)"
// or "[x]" behind a ']', "[^x]", and "{x}".
func withoutTargets(s string) string {
	var out strings.Builder
	written := 0
	for i := 0; i < len(s); i++ {
		behind := i > 0 && s[i-1] == ']'
		var closing byte
		switch {
		case s[i] == '(' && behind:
			closing = ')'
		case s[i] == '[' && (behind || strings.HasPrefix(s[i:], "[^")):
			closing = ']'
		case s[i] == '{':
			closing = '}'
		default:
			continue
		}
		out.WriteString(s[written:i])
		opening := s[i]
		for depth := 0; i < len(s); i++ {
			switch s[i] {
			case opening:
				depth++
			case closing:
				depth--
			}
			if depth == 0 {
				break
			}
		}
		written = min(i+1, len(s))
	}
	out.WriteString(s[written:])
	return out.String()
}

// withoutComments removes "<!-- x -->".
func withoutComments(s string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(s, "<!--")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		_, s, _ = strings.Cut(after, "-->")
	}
}

// withoutTags removes everything between '<' and '>'. A '>' in quotes ends no tag if
// quotes are heeded.
func withoutTags(s string, quotes bool) string {
	var out strings.Builder
	inside := false
	written := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case !inside && c == '<':
			out.WriteString(s[written:i])
			inside = true
		case inside && c == '>':
			inside = false
			written = i + 1
		case inside && quotes && (c == '"' || c == '\''):
			i += max(0, strings.IndexByte(s[i+1:], c)+1)
		}
	}
	if !inside {
		out.WriteString(s[written:])
	}
	return out.String()
}
