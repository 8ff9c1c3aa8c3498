package text

import (
	"strings"
	"unicode"
)

// Letters is what is left of a heading for a reader who does not look closely: its
// letters and digits, in lower case. Marks, blanks, punctuation and characters that
// are not seen do not tell two headings apart. Letters of another script that look
// alike do.
func Letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// EscapeHeadings inserts a backslash into each Markdown or HTML heading in s that is
// reserved, so that it is no heading any more, and returns how many there were: before
// the '#' of "## Safety", before the line below a heading that is underlined, after the
// '<' of "<h2>Safety</h2>". Reserved gets the [Letters] of a heading. s should be
// normalised. Text without headings comes back as it is, without allocation.
func EscapeHeadings(s string, reserved func(letters string) bool) (string, int) {
	if !strings.Contains(s, "#") && !strings.Contains(s, "\n=") && !strings.Contains(s, "\n-") && !strings.Contains(s, "\n ") && !strings.Contains(s, "<") {
		return s, 0
	}
	var out strings.Builder
	count, written := 0, 0
	above := ""
	for begin := 0; begin < len(s); {
		end := len(s)
		if n := strings.IndexByte(s[begin:], '\n'); n >= 0 {
			end = begin + n
		}
		line := s[begin:end]
		if at := headingMark(line, above, reserved); at >= 0 {
			out.WriteString(s[written : begin+at])
			out.WriteByte('\\')
			written = begin + at
			count++
		}
		above, begin = line, end+1
	}
	if count == 0 {
		return s, 0
	}
	out.WriteString(s[written:])
	return out.String(), count
}

// headingMark returns where a backslash takes a reserved heading away that stands in
// the line, or above it if the line underlines it; -1 where there is none.
func headingMark(line, above string, reserved func(string) bool) int {
	trimmed := strings.TrimLeftFunc(line, unseen)
	at := len(line) - len(trimmed)
	switch {
	case trimmed == "":
		return -1
	case trimmed[0] == '#':
		if reserved(Letters(trimmed)) {
			return at
		}
	case len(trimmed) > 3 && trimmed[0] == '<' && (trimmed[1] == 'h' || trimmed[1] == 'H') && '1' <= trimmed[2] && trimmed[2] <= '6':
		if reserved(Letters(withoutTags(trimmed))) {
			return at + 1
		}
	case strings.Trim(strings.TrimRightFunc(trimmed, unseen), trimmed[:1]) == "" && (trimmed[0] == '=' || trimmed[0] == '-'):
		if reserved(Letters(above)) {
			return at
		}
	}
	return -1
}

// unseen are the blanks and the characters without a shape that may stand before a
// heading: Markdown takes up to three blanks, a model any.
func unseen(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }

// withoutTags removes everything between '<' and '>'.
func withoutTags(s string) string {
	var out strings.Builder
	inside := false
	for _, r := range s {
		switch {
		case r == '<':
			inside = true
		case r == '>':
			inside = false
		case !inside:
			out.WriteRune(r)
		}
	}
	return out.String()
}
