package facts

import (
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

var (
	awkStarts = lazyregexp.New(`\bsystem\b|getline|@|ARGV|SYMTAB|(?:^|[^|])\|(?:[^|]|$)|\bprintf?\b[^;}]*>`)
	// awkClasses matches a regular expression that ends where one without brackets would.
	awkClasses = lazyregexp.New(`^(?:[^\[\\]|\\.|\[\^?[^\]\[\\^](?:[^\]\[\\]|\[:\w+:\])*\])*$`)
	awkMight   = lazyregexp.New(`system|getline|@|ARGV|SYMTAB|[|>]`)
)

// awkPlain reports whether the words of awk neither start a command nor name a file in its code.
func awkPlain(args []string) bool {
	return !slices.ContainsFunc(args, func(arg string) bool {
		code, sure := awkCode(arg)
		return awkStarts().MatchString(code) || !sure && awkMight().MatchString(arg)
	})
}

// awkCode is code of awk without what is in its texts and regular expressions, and without > between brackets, where it
// compares. It is not sure if what a slash or a quote begins depends on more than what stands around it.
func awkCode(text string) (code string, sure bool) {
	var b strings.Builder
	open, before := 0, byte('\n')
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '#' {
			i += strings.IndexByte(text[i:]+"\n", '\n')
			c = '\n'
		}
		if c == '"' || c == '/' {
			end := awkEnd(text[i:])
			inner := text[i+1 : max(i+end, i+1)]
			switch divides := c == '/' && strings.IndexByte("(,~!{};&|\n=<>?:*%^$", before) < 0; {
			case divides && strings.IndexByte("0123456789]", before) < 0 && strings.ContainsAny(inner, "\"()[#;{}"), !divides && end < 0, c == '/' && !divides && strings.Contains(inner, "[") && !awkClasses().MatchString(inner):
				return b.String(), false
			case !divides:
				b.WriteByte(c)
				i += end
			}
		}
		open = awkOpen(open, c)
		if c != '>' || open == 0 {
			b.WriteByte(c)
		}
		if c != ' ' && c != '\t' {
			before = c
		}
	}
	return b.String(), true
}

// awkOpen is how many brackets are open behind a letter.
func awkOpen(open int, c byte) int {
	switch c {
	case '(':
		return open + 1
	case ')':
		return max(open-1, 0)
	case ';', '}':
		return 0
	}
	return open
}

// awkEnd is where what a quote or a slash begins ends in its line; negative if it does not.
func awkEnd(text string) int {
	for i := 1; i < len(text) && text[i] != '\n'; i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i
		}
	}
	return -1
}
