// Package textruletest helps to test what goes through the rules of package
// textrule: it reads bodies back, and makes texts that try to break the rules.
//
// It is no part of the plugin, and imports nothing of it: what it knows, it
// knows from the documentation. Where to start: [Unescape] and [Hostile].
//
// Stability: experimental.
package textruletest

import (
	"html"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Unescape undoes Escape of package textrule. It is written from the
// documentation of package chain, apart from the code that it checks: each rule
// is looked for in what a careless reader sees.
func Unescape(body string) string {
	var out strings.Builder
	for i := 0; i < len(body); {
		rest := body[i:]
		if rest[0] == '\\' && ourLine.MatchString(Read(rest[1:])) && lineBegins.MatchString(Read(body[:i])) {
			rest = rest[1:]
			i++
		}
		opening := Opening(rest)
		if strings.HasPrefix(rest[len(opening):], `\`) && opening != "" && ourTag.MatchString(Read(rest)) {
			out.WriteString(opening)
			i += len(opening) + 1
			continue
		}
		out.WriteByte(rest[0])
		i++
	}
	return out.String()
}

// Opening is what a tag may begin with, at the beginning of a text; empty if that has none.
func Opening(s string) string { return openings.FindString(s) }

//nolint:gochecknoglobals // immutable
var (
	openings   = regexp.MustCompile(`^(?:<|＜|‹|&lt;?|&#0*60;?|&#x0*3c;?)`)
	ourTag     = regexp.MustCompile(`^<[\s\\]*(?:!\\?-\\?-\s*grapnel\\?:dynamic|(?:/\s*)?agents\\?_md)`)
	ourLine    = regexp.MustCompile(`^\[\s*(?:source|truncated|omitted)\s*\\?:`)
	lineBegins = regexp.MustCompile("(?:^|\\n)[-\\s>*+#_~`\"'|.()0-9=:•·“”‘’«»¶\\\\]*$")
	lookalikes = strings.NewReplacer("А", "a", "Ѕ", "s", "ѕ", "s", "о", "o", "‹", "<", "∕", "/", "【", "[", "\u2800", " ")
)

// Read is what a careless reader sees of a text.
func Read(s string) string {
	s = lookalikes.Replace(norm.NFKD.String(html.UnescapeString(s)))
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\r', c == '\v', 0x1c <= c && c <= 0x1e, c == 0x85, c == 0x2028, c == 0x2029:
			return '\n'
		case unicode.IsSpace(c):
			return c
		case unicode.In(c, unicode.Cc, unicode.Cf, unicode.M, unicode.Other_Default_Ignorable_Code_Point), c >= 0xE0000 && c <= 0xE0FFF:
			return -1
		}
		return unicode.ToLower(c)
	}, s)
}
