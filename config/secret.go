package config

import (
	"encoding/json"
	"reflect"

	"github.com/grapnelhq/grapnel/phases"
)

// redacted stands for a value that was taken from the environment.
const redacted = "***"

// Secret is a string that may have come from the environment; it prints as
// "***" then.
type Secret struct {
	// Value is the string itself.
	Value string
	// FromEnv names the variable it was taken from; empty for plain text.
	FromEnv string
}

// String implements fmt.Stringer: the value, or "***" if it came from the
// environment.
func (s Secret) String() string {
	if s.FromEnv != "" {
		return redacted
	}
	return s.Value
}

// GoString implements fmt.GoStringer, so that %#v does not show it either.
func (s Secret) GoString() string { return s.String() }

// MarshalText implements encoding.TextMarshaler; see String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// fromEnv returns the variable that a text stands for, "" for plain text. Only a
// whole text does: a secret in the middle of another text could not be told apart
// when it is printed, and ${NAME} inside texts is what other programs expand.
func fromEnv(text string) string {
	if len(text) < len("${N}") || text[:2] != "${" || text[len(text)-1] != '}' {
		return ""
	}
	name := text[2 : len(text)-1]
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return ""
		}
	}
	return name
}

// secret decodes a text that may be taken from the environment.
func (d *decoder) secret(n *node, p *Secret) {
	if d.want(n, textNode) {
		*p = Secret{Value: d.expand(n), FromEnv: fromEnv(n.text)}
	}
}

// expand returns a text, or the value of the variable that it names.
func (d *decoder) expand(n *node) string {
	name := fromEnv(n.text)
	if name == "" {
		return n.text
	}
	value, ok := d.lookup(name)
	switch {
	case !ok:
		d.badf(n, "the environment variable %.80s is not set", name)
	case badText(value) != "":
		d.badf(n, "the value of the environment variable %.80s %s", name, badText(value))
	default:
		return value
	}
	return ""
}

// rawJSON encodes a value of any kind as JSON, with secrets if the rule says so.
func (d *decoder) rawJSON(n *node, r rule) json.RawMessage {
	text := plainText
	if r.object {
		if d.nothing(n, reflect.Map) || !d.want(n, mappingNode) {
			return nil
		}
		text = d.expand
	}
	if !d.checkDepth(n, 0) {
		return nil
	}
	return appendJSON(nil, n, text)
}

// checkDepth reports a value that is nested deeper than plugins take JSON.
func (d *decoder) checkDepth(n *node, depth int) bool {
	if n.kind != listNode && n.kind != mappingNode {
		return true
	}
	if depth++; depth > phases.MaxJSONDepth {
		d.badf(n, "nested deeper than %d", phases.MaxJSONDepth)
		return false
	}
	for _, item := range n.items {
		if !d.checkDepth(item, depth) {
			return false
		}
	}
	for _, e := range n.entries {
		if !d.checkDepth(e.value, depth) {
			return false
		}
	}
	return true
}

// redactedJSON encodes n like rawJSON, with "***" in place of what comes from the
// environment. It is nil when nothing does.
func redactedJSON(n *node) json.RawMessage {
	found := false
	raw := appendJSON(nil, n, func(n *node) string {
		if fromEnv(n.text) == "" {
			return n.text
		}
		found = true
		return redacted
	})
	if !found {
		return nil
	}
	return raw
}

// plainText is for JSON without secrets.
func plainText(n *node) string { return n.text }

// appendJSON appends n as JSON. Keys are sorted, so that reordering a file does
// not change what a plugin is configured with. Numbers keep their digits.
func appendJSON(b []byte, n *node, text func(*node) string) []byte {
	switch n.kind {
	case boolNode, numberNode:
		return append(b, n.text...)
	case textNode:
		return appendJSONString(b, text(n))
	case listNode:
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item, text)
		}
		return append(b, ']')
	case mappingNode:
		b = append(b, '{')
		for i, e := range n.sortedEntries() {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendJSONString(b, e.key), ':')
			b = appendJSON(b, e.value, text)
		}
		return append(b, '}')
	default:
		return append(b, "null"...)
	}
}

// appendJSONString appends a text in quotes.
func appendJSONString(b []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil {
		return append(b, `""`...) // a string always encodes
	}
	return append(b, quoted...)
}
