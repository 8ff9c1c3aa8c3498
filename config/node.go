package config

import (
	"slices"
	"strconv"
	"strings"
)

// nodeKind is what a value in the file is, by the core schema of YAML 1.2.
type nodeKind int

// The kinds. The zero one is a value that is absent or null.
const (
	nullNode nodeKind = iota
	boolNode
	numberNode
	textNode
	listNode
	mappingNode
)

// String names the kind in messages.
func (k nodeKind) String() string {
	switch k {
	case boolNode:
		return "true or false"
	case numberNode:
		return "a number"
	case textNode:
		return "a text"
	case listNode:
		return "a list"
	case mappingNode:
		return "a mapping"
	default:
		return "nothing"
	}
}

// node is one value of the file. The methods accept nil, an absent value.
type node struct {
	kind nodeKind
	// text is a text, "true" or "false", or a number as JSON writes it.
	text    string
	entries []entry
	items   []*node
	// flow marks a list or mapping in brackets.
	flow bool
	// line and column are where the value begins; keyLine and keyColumn where
	// its key does, 0 without one. All count from 1, columns in characters.
	line, column       int
	keyLine, keyColumn int
}

// entry is one pair of a mapping.
type entry struct {
	key          string
	line, column int
	value        *node
}

// child returns the value of a key, nil if it is absent. Mappings in a file are
// short, so looking through the entries is quicker than an index would be.
func (n *node) child(key string) *node {
	if n == nil {
		return nil
	}
	for _, e := range n.entries {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// item returns an element of a list, nil if it is absent.
func (n *node) item(i int) *node {
	if n == nil || i < 0 || i >= len(n.items) {
		return nil
	}
	return n.items[i]
}

// step goes to the child or element that one word names.
func (n *node) step(word string) *node {
	if n == nil || n.kind != listNode {
		return n.child(word)
	}
	i, err := strconv.Atoi(word)
	if err != nil {
		return nil
	}
	return n.item(i)
}

// walk follows words as far as there are values. It returns the last value
// reached and the words that were left over.
func (n *node) walk(words []string) (*node, []string) {
	for i, word := range words {
		next := n.step(word)
		if next == nil {
			return n, words[i:]
		}
		n = next
	}
	return n, nil
}

// walkDotted is walk for words joined by dots. Keys may contain dots themselves:
// the longest key that fits is taken.
func (n *node) walkDotted(path string) (*node, string) {
	for path != "" && n != nil {
		word, _, _ := strings.Cut(path, ".")
		for _, e := range n.entries {
			if len(e.key) > len(word) && (path == e.key || strings.HasPrefix(path, e.key+".")) {
				word = e.key
			}
		}
		next := n.step(word)
		if next == nil {
			break
		}
		n, path = next, strings.TrimPrefix(path[len(word):], ".")
	}
	return n, path
}

// place is where to point at for the value as a whole: a scalar or a bracket
// itself, for a block the key that it belongs to.
func (n *node) place() (line, column int) {
	block := n.kind == listNode || n.kind == mappingNode
	if block && !n.flow && n.keyLine > 0 {
		return n.keyLine, n.keyColumn
	}
	return n.line, n.column
}

// keyPlace is where the value's key stands, or else the value.
func (n *node) keyPlace() (line, column int) {
	if n.keyLine > 0 {
		return n.keyLine, n.keyColumn
	}
	return n.line, n.column
}

// keys returns the keys of a mapping in the order of the file.
func (n *node) keys() []string {
	var keys []string
	if n != nil {
		for _, e := range n.entries {
			keys = append(keys, e.key)
		}
	}
	return keys
}

// sortedEntries returns the pairs of a mapping by key.
func (n *node) sortedEntries() []entry {
	return slices.SortedFunc(slices.Values(n.entries), func(a, b entry) int { return strings.Compare(a.key, b.key) })
}
