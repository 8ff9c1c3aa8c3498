package transcript

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// Value is JSON of which only what is asked for is looked at. What is not JSON has some parts, or none.
type Value []byte

// At returns a member of an object, of that another, and so on; nil if there is none.
func (v Value) At(names ...string) Value {
	for _, name := range names {
		found := -1
		for quoted, at := range v.parts() {
			if len(quoted) == len(name)+2 && string(quoted[1:len(quoted)-1]) == name {
				found = at
				break
			}
		}
		if found < 0 {
			return nil
		}
		v = v[found:] // and what is behind it
	}
	return v[:v.end(0)]
}

// List returns the elements of a list.
func (v Value) List() (list []Value) {
	if bytes.HasPrefix(v, []byte("[")) {
		for _, at := range v.parts() {
			list = append(list, v[at:v.end(at)])
		}
	}
	return list
}

// String returns the text of a string; empty for other values.
func (v Value) String() string {
	if len(v) < 2 || v[0] != '"' {
		return ""
	}
	return jsonscan.Unquote(v)
}

// Texts returns the text of a value: itself, or the texts of its parts.
func (v Value) Texts() string {
	var texts []string
	for _, part := range v.List() {
		if text := part.At("text").String(); text != "" {
			texts = append(texts, text)
		}
	}
	return v.String() + strings.Join(texts, "\n")
}

// Int returns a whole number; 0 for other values.
func (v Value) Int() (n int64) {
	_ = json.Unmarshal(v, &n) // anything else is 0
	return n
}

// Is reports whether it is true.
func (v Value) Is() bool { return string(v) == "true" }

// parts returns the places of an object's members with their quoted names, or those of a list's elements.
func (v Value) parts() iter.Seq2[Value, int] {
	return func(yield func(name Value, at int) bool) {
		if len(v) == 0 || v[0] != '{' && v[0] != '[' {
			return
		}
		for i := v.token(1); i < len(v) && v[i] != '}' && v[i] != ']'; i = v.token(v.end(i)) {
			var name Value
			if v[0] == '{' && v[i] == '"' {
				end := v.end(i)
				name, i = v[i:end], v.token(end)
			}
			if !yield(name, i) {
				return
			}
		}
	}
}

// token returns the place of the next token that is not a comma or colon.
func (v Value) token(i int) int {
	for i < len(v) && (v[i] <= ' ' || v[i] == ',' || v[i] == ':') {
		i++
	}
	return i
}

// end returns the place behind the value that begins at a place, which is that place if there is none.
func (v Value) end(at int) int {
	depth := 0
	for i := at; i < len(v); i++ {
		switch v[i] {
		case '"':
			i = v.closing(i)
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return min(i+1, len(v))
		}
	}
	return len(v)
}

// closing returns the place of the quote that ends the string at a place.
func (v Value) closing(at int) int {
	for i := at + 1; ; i++ {
		n := bytes.IndexByte(v[min(i, len(v)):], '"')
		if n < 0 {
			return len(v)
		}
		i += n
		if v[i-1] != '\\' || (i-at-1-len(bytes.TrimRight(v[at+1:i], `\`)))%2 == 0 {
			return i
		}
	}
}
