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

// outline is what was read of front matter: the open mappings, the last key's line, and its indent if it has a text below
// it, or a value beside it, else -1.
type outline struct {
	open              []level
	last, text, value int
}

// flaw returns the first line of front matter that is no YAML, and what is wrong with it and what to do, without text of the
// file; 0 if that is not seen.
func flaw(yaml string) (number int, what string) {
	o, number := &outline{last: 1, text: -1, value: -1}, 1
	for line := range strings.Lines(yaml) {
		number++
		if what := o.line(number, line); what != "" {
			return number, what
		}
	}
	return 0, ""
}

// line reads a line, and returns what is wrong with it.
func (o *outline) line(number int, line string) string {
	bare := strings.TrimLeft(line, " ")
	indent := len(line) - len(bare)
	if bare = strings.TrimRight(bare, " \t\r\n"); bare == "" || bare[0] == '#' || o.text >= 0 && indent > o.text {
		return ""
	}
	if strings.HasPrefix(line[indent:], "\t") {
		return "a tab stands before it; indent it with blanks"
	}
	item := 0 // the hyphens of elements
	for rest, is := strings.CutPrefix(bare, "- "); is; rest, is = strings.CutPrefix(bare, "- ") {
		rest = strings.TrimLeft(rest, " ")
		item, bare = item+len(bare)-len(rest), rest
	}
	m := keyed().FindStringSubmatch(bare)
	switch {
	case m != nil:
	case item > 0 || bare == "-" || o.value >= 0 && indent > o.value || strings.ContainsAny(bare[:1], `[]{}"'`):
		return ""
	default:
		return noKey(bare, o.text >= 0)
	}
	if what := o.enter(indent+item, item > 0); what != "" {
		return what
	}
	keys, key := o.open[len(o.open)-1].keys, strings.Trim(m[1], `"'`)
	if first := keys[key]; first > 0 {
		return fmt.Sprintf("its key is there twice, first in line %d; remove one of them", first)
	}
	keys[key], o.last, o.text, o.value = number, number, -1, -1
	switch v := m[2]; {
	case v == "" || v[0] == '#':
	case v[0] == '|' || v[0] == '>':
		o.text = indent
	default:
		o.value = indent + item
	}
	return ""
}

// enter finds or begins the mapping of a key in a column, and returns what is wrong with that. An element begins its own.
func (o *outline) enter(column int, element bool) string {
	popped := false
	for n := len(o.open); n > 0 && (o.open[n-1].indent > column || element && o.open[n-1].indent == column); n = len(o.open) {
		o.open, popped = o.open[:n-1], true
	}
	n := len(o.open)
	below := n > 0 && o.open[n-1].indent < column
	switch {
	case !element && popped && (n == 0 || below):
		return "its indentation matches no line above; begin all keys of one mapping in the same column"
	case !element && below && o.value >= 0:
		return fmt.Sprintf("it is indented below line %d, which has a value already; begin both in the same column", o.last)
	case n == 0 || below:
		o.open = append(o.open, level{column, map[string]int{}})
	}
	return ""
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
