package config

import (
	"strconv"
	"strings"
)

// nodeKind is what a value in the file is, by the core schema of YAML 1.2.
type nodeKind int

const (
	nullNode nodeKind = iota // absent or null
	boolNode
	numberNode
	textNode
	listNode
	mappingNode
)

// String names the kind in messages.
func (k nodeKind) String() string {
	return [...]string{"nothing", "true or false", "a number", "a text", "a list", "a mapping"}[k]
}

// node is one value of the file. The methods accept nil, an absent value.
type node struct {
	kind    nodeKind
	text    string // a text, "true" or "false", or a number as JSON writes it
	entries []entry
	items   []*node
	flow    bool // flow marks a list or mapping in brackets
	// line and column are where the value begins; keyLine and keyColumn where
	// its key does, 0 without one. All count from 1, columns in characters.
	line, column       int
	keyLine, keyColumn int
}

type entry struct {
	key          string
	line, column int
	value        *node
}

func (n *node) child(key string) *node {
	for _, e := range n.pairs() {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

func (n *node) item(i int) *node {
	if n == nil || i < 0 || i >= len(n.items) {
		return nil
	}
	return n.items[i]
}

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

// walk follows a JSON pointer (RFC 6901) as far as there are values. It returns the
// last value and the rest of the pointer.
func (n *node) walk(pointer string) (*node, string) {
	pointer = strings.TrimPrefix(pointer, "/")
	for pointer != "" {
		word, rest, _ := strings.Cut(pointer, "/")
		next := n.step(strings.NewReplacer("~1", "/", "~0", "~").Replace(word))
		if next == nil {
			break
		}
		n, pointer = next, rest
	}
	return n, pointer
}

// walkDotted is walk for words joined by dots. Keys may contain dots: the longest key that fits is taken.
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

func findPlugin(root *node, name string) *node {
	list := root.child("plugins")
	for i := 0; list.item(i) != nil; i++ {
		if at := list.item(i).child("name"); at != nil && at.text == name {
			return list.item(i)
		}
	}
	return nil
}

// scripted finds a field of a subscription in the configuration of a scripted plugin: the field or the nearest value above
// it, and the rest of the path. It is nil for a hook that is not there, and for other plugins.
func (n *node) scripted(field string) (at *node, rest string) {
	if builtin := n.child("builtin"); builtin == nil || builtin.text != "scripted" {
		return nil, ""
	}
	hooks := n.child("config").child("hooks")
	for i := 0; hooks.item(i) != nil; i++ {
		if id := hooks.item(i).child("id"); id != nil {
			if below, ok := strings.CutPrefix(field, "subscriptions."+n.child("name").text+"."+id.text+"."); ok {
				return hooks.item(i).walkDotted(below)
			}
		}
	}
	return nil, ""
}

// place is where to point at for the value as a whole: for a block, its key.
func (n *node) place() (line, column int) {
	block := n.kind == listNode || n.kind == mappingNode
	if block && !n.flow && n.keyLine > 0 {
		return n.keyLine, n.keyColumn
	}
	return n.line, n.column
}

func (n *node) keyPlace() (line, column int) {
	if n.keyLine > 0 {
		return n.keyLine, n.keyColumn
	}
	return n.line, n.column
}

func (n *node) pairs() []entry {
	if n == nil {
		return nil
	}
	return n.entries
}
