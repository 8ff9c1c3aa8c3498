package skillset

import (
	"fmt"
	"strings"

	"github.com/grapnelhq/grapnel/internal/lazyregexp"
)

// keyed matches a key, and what stands behind its colon.
var keyed = lazyregexp.New(`^("[^"]*"|'[^']*'|[^\s:#"'][^:]*?) *:(?:[ \t]+(.*))?$`)

// level is a mapping: the column in which its keys begin, and the line of each.
type level struct {
	indent int
	keys   map[string]int
}

// flaw returns the first line of front matter that is no YAML, and what is wrong with it and what to do, without text of the
// file; 0 if that is not seen.
func flaw(yaml string) (number int, what string) {
	var open []level
	last, text, value := 1, -1, -1 // the last key's line, and its indent if it has a text below it, or a value beside it
	number = 1
	for line := range strings.Lines(yaml) {
		number++
		bare := strings.TrimLeft(line, " ")
		indent := len(line) - len(bare)
		if bare = strings.TrimRight(bare, " \t\r\n"); bare == "" || bare[0] == '#' || text >= 0 && indent > text {
			continue
		}
		if strings.HasPrefix(line[indent:], "\t") {
			return number, "a tab stands before it; indent it with blanks"
		}
		item := 0 // the hyphens of elements
		for rest, is := strings.CutPrefix(bare, "- "); is; rest, is = strings.CutPrefix(bare, "- ") {
			item, bare = item+len(bare)-len(strings.TrimLeft(rest, " ")), strings.TrimLeft(rest, " ")
		}
		m := keyed().FindStringSubmatch(bare)
		switch {
		case m != nil:
		case item > 0 || bare == "-" || value >= 0 && indent > value || strings.ContainsAny(bare[:1], `[]{}"'`):
			continue
		default:
			return number, noKey(bare, text >= 0)
		}
		popped := false
		for n := len(open); n > 0 && (open[n-1].indent > indent+item || item > 0 && open[n-1].indent == indent+item); n = len(open) {
			open, popped = open[:n-1], true
		}
		n := len(open)
		switch below := n > 0 && open[n-1].indent < indent+item; {
		case n == 0 && popped && item == 0, below && popped && item == 0:
			return number, "its indent is that of no line above; begin all keys of one mapping in the same column"
		case below && value >= 0 && item == 0:
			return number, fmt.Sprintf("it is indented below line %d, which has a value already; begin both in the same column", last)
		case n == 0 || below:
			open = append(open, level{indent + item, map[string]int{}})
		}
		keys, key := open[len(open)-1].keys, strings.Trim(m[1], `"'`)
		if first := keys[key]; first > 0 {
			return number, fmt.Sprintf("its key is there twice, first in line %d; remove one of them", first)
		}
		keys[key], last, text, value = number, number, -1, -1
		switch v := m[2]; {
		case v == "" || v[0] == '#':
		case v[0] == '|' || v[0] == '>':
			text = indent
		default:
			value = indent + item
		}
	}
	return 0, ""
}

// noKey is what is wrong with a line without a key.
func noKey(line string, belowText bool) string {
	switch colon := strings.IndexByte(line, ':'); {
	case belowText:
		return "the text below | or > is not indented; put blanks before it"
	case colon == 0:
		return "there is no key before the colon; write KEY: VALUE"
	case colon > 0:
		return "a blank is missing behind the colon; write KEY: VALUE"
	case strings.ContainsRune(line, '='):
		return "a key is followed by a colon and a blank, not by =; write KEY: VALUE"
	default:
		return "there is no colon behind a key; write KEY: VALUE, and indent a value that goes on"
	}
}

// whyQuotes is why a value, with deeper lines below it, is not the text that its author meant.
func whyQuotes(value, more string) string {
	switch {
	case strings.ContainsAny(value[:1], `"'`):
		return "its quotation marks do not match"
	case strings.ContainsAny(value[:1], "[{"):
		return "it begins with a bracket, and is not a list or mapping"
	case strings.ContainsAny(value[:1], "&*!%@`?#"):
		return "it begins with a sign that YAML uses itself"
	case strings.ContainsAny(value[:1], "|>"):
		return "the lines of its text are not indented alike"
	case strings.Contains(value, " #"):
		return "YAML cuts it at the #"
	case more != "" && !strings.Contains(value, ": "):
		return "the lines below it are indented, and so a part of it"
	}
	return "a colon with a blank behind it stands in it"
}
