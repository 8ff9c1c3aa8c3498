package text

import (
	"encoding/binary"
	"html"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// maxHeadingPasses is how often a text is searched, since an escaped heading may have hidden another one, as in
// "<h2><h2>Safety". After that every heading is escaped.
const maxHeadingPasses = 8

// noHeading reports whether s certainly holds none. Searches for single bytes are far faster than one for a set.
func noHeading(s string) bool {
	for _, mark := range [...]byte{'#', '<', '=', '-', '&'} {
		if strings.IndexByte(s, mark) >= 0 {
			return false
		}
	}
	return !strings.Contains(s, "＃") && !strings.Contains(s, "**") && !strings.Contains(s, "__")
}

// Letters returns the letters and digits of a heading in lower case, as ASCII where they look alike. Headings with
// the same letters read the same. It removes accents and compatibility forms by NFKD.
func Letters(s string) string {
	var space [64]byte
	return string(AppendLetters(space[:0], s))
}

// AppendLetters appends the [Letters] of s to dst.
func AppendLetters(dst []byte, s string) []byte {
	if !isASCII(s) {
		return append(dst, foreignLetters(s)...)
	}
	for i := range len(s) {
		if c := lower(s[i]); 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			dst = append(dst, c)
		}
	}
	return dst
}

func foreignLetters(s string) string {
	return strings.Map(func(r rune) rune {
		if (unicode.IsLetter(r) || unicode.IsDigit(r)) && !unseen(r) {
			return unicode.ToLower(lookalike(r))
		}
		return -1
	}, norm.NFKD.String(s))
}

// EscapeHeadings inserts a backslash into each Markdown or HTML heading in s that is reserved, and returns the number
// of backslashes: before the '#' of "## Safety", before the underline of a heading, after the '<' of
// "<h2>Safety</h2>", before a line that is all bold. Headings may stand in quotes and lists, and end at any line
// break of Unicode or Python. reserved gets the [Letters] of a heading, with and without its tags, comments and link
// targets. s should be normalised. Text without headings comes back as it is, without allocation.
func EscapeHeadings(s string, reserved func(letters string) bool) (string, int) {
	_, s, n := EscapeFragmentHeadings(Frame{}, s, reserved)
	return s, n
}

// EscapeFragmentHeadings is [EscapeHeadings] for a body in its frame: a heading may begin in one part and end in the
// next.
func EscapeFragmentHeadings(frame Frame, body string, reserved func(letters string) bool) (Frame, string, int) {
	if noHeading(body) && noHeading(frame.Open) && noHeading(frame.Close) {
		return frame, body, 0
	}
	count := 0
	for pass := 0; ; pass++ {
		if pass == maxHeadingPasses {
			reserved = func(string) bool { return true }
		}
		whole := Render(frame, body, "")
		marks := appendElements(appendLines(nil, whole, reserved), whole, reserved)
		slices.Sort(marks)
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
			for i := range marks[:n] {
				marks[i] -= begin
			}
			*part = Backslashes(*part, marks[:n])
			marks, begin = marks[n:], end+1
		}
	}
}

// appendLines appends the marks of Markdown headings: lines that begin with '#' or are bold, and lines that underline
// what is above them.
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
		first, _ := Shown(line, inner)
		switch at := underline(line); {
		case first == '#' || isBold(line[inner:]):
			if reads(line[inner:], reserved) || len(whole) > len(line) && reads(whole[inner:], reserved) {
				marks = append(marks, begin+inner)
			}
			paragraph, above = next, ""
		case at >= 0:
			if reads(above, reserved) || reads(s[paragraph:begin], reserved) {
				marks = append(marks, begin+at)
			}
			paragraph, above = next, ""
		case inner == len(line) && end == hard && strings.Trim(whole, " \t") == "":
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

func isBold(line string) bool {
	if !strings.HasPrefix(line, "**") && !strings.HasPrefix(line, "__") {
		return false
	}
	line = strings.TrimRightFunc(line, func(r rune) bool { return unseen(r) || r == ':' })
	return len(line) > 4 && line[len(line)-2:] == line[:2]
}

// lineEnd returns where the line ends that begins there, and where the next one begins.
func lineEnd(s string, begin int) (end, next int) {
	for i := begin; i < len(s); {
		i = visible(s, i)
		for stop := min(i+8, len(s)); i < stop; i++ {
			if c := s[i]; c >= ' ' && c != 0xc2 && c != 0xe2 { // no break begins with it
				continue
			}
			if r, size := utf8.DecodeRuneInString(s[i:]); isBreak(r) {
				return i, i + size
			}
		}
	}
	return len(s), len(s)
}

// visible skips bytes of s from i on that are ASCII and not controls, eight at a time.
func visible(s string, i int) int {
	rest := []byte(s)[i:] // the bytes are not copied
	for len(rest) > 8 {
		if w := binary.LittleEndian.Uint64(rest); (w|(w-each*' '))&high != 0 {
			break
		}
		rest = rest[8:]
	}
	return len(s) - len(rest)
}

func isBreak(r rune) bool {
	return r == '\n' || r == '\v' || r == '\f' || 0x1c <= r && r <= 0x1e || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// content returns where the content of a line begins, after blanks, quote marks and list marks, and whether there was
// a list mark.
func content(line string) (at int, inList bool) {
	for {
		rest := strings.TrimLeftFunc(line[at:], unseen)
		at = len(line) - len(rest)
		if strings.HasPrefix(rest, ">") {
			at++
			continue
		}
		mark := 0
		for mark < len(rest) && '0' <= rest[mark] && rest[mark] <= '9' {
			mark++
		}
		if mark == len(rest) || mark == 0 && !strings.ContainsRune("-*+", rune(rest[0])) || mark > 0 && rest[mark] != '.' && rest[mark] != ')' {
			return at, inList
		}
		if r, _ := utf8.DecodeRuneInString(rest[mark+1:]); !unseen(r) {
			return at, inList
		}
		at, inList = at+mark+1, true
	}
}

// underline returns where the '=' or '-' of an underline begin; -1 for another line.
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

// appendElements appends the marks of HTML headings. One ends where the next begins or ends; if it is not closed, its
// first line is compared too.
func appendElements(marks []int, s string, reserved func(string) bool) []int {
	for at := element(s, 0, false); at < len(s); {
		next := element(s, at+1, false)
		inner := s[at:element(s[:next], at+1, true)]
		if reads(inner, reserved) || reads(firstLine(tags().ReplaceAllString(inner, "")), reserved) ||
			reads(firstLine(quotedTags().ReplaceAllString(inner, "")), reserved) {
			marks = append(marks, at+1)
		}
		at = next
	}
	return marks
}

// element returns where the next "<h2" of any level begins, or the next "</h2" if ending; len(s) without one.
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

func firstLine(s string) string {
	s = strings.TrimLeftFunc(s, unseen)
	end, _ := lineEnd(s, 0)
	return s[:end]
}

// reads reports whether a heading reads like a reserved one, with or without its markup.
func reads(s string, reserved func(string) bool) bool {
	if reserved(Letters(s)) {
		return true
	}
	if !strings.ContainsAny(s, "<[{&") {
		return false
	}
	s = comments().ReplaceAllString(withoutTargets(s), "")
	for _, shown := range [...]string{s, tags().ReplaceAllString(s, ""), quotedTags().ReplaceAllString(s, "")} {
		if reserved(Letters(html.UnescapeString(shown))) {
			return true
		}
	}
	return false
}

// unseen reports whether r is a blank or has no shape, and may stand in front of a heading or in it.
func unseen(r rune) bool {
	if r < utf8.RuneSelf {
		return r <= ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Z, unicode.Cc, unicode.Cf, unicode.M, unicode.Other_Default_Ignorable_Code_Point) || r == '\u2800'
}

// withoutTargets removes targets of links, notes and attributes: "(x)" or "[x]" after a ']', "[^x]", and "{x}".
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

// What Markdown and HTML do not show: comments, and tags, with or without heed to quotes.
var (
	comments   = lazyregexp.New(`(?s)<!--.*?(-->|$)`)
	tags       = lazyregexp.New(`<[^>]*(>|$)`)
	quotedTags = lazyregexp.New(`<("[^"]*"|'[^']*'|[^>])*(>|$)`)
)
