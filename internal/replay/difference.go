package replay

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// maxDifferences bounds what is told of one run.
const maxDifferences = 20

// Difference is one place where two answers differ.
type Difference struct {
	Pointer string `json:"pointer" jsonschema:"JSON pointer into the answer; empty is the whole"`
	// Recorded and Now are absent where there is no such value.
	Recorded json.RawMessage `json:"recorded,omitempty"`
	Now      json.RawMessage `json:"now,omitempty"`
}

// tree decodes JSON that is known to be valid.
func tree(data []byte) any {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return string(data)
	}
	return v
}

// differences are the places where two trees differ, in their order; never nil.
func differences(a, b any) []Difference {
	found := []Difference{}
	walk(&found, "", a, b, true, true)
	return found
}

// walk compares two values, either of which may be absent.
func walk(found *[]Difference, at string, a, b any, hasA, hasB bool) {
	if len(*found) == maxDifferences {
		return
	}
	if hasA && hasB {
		switch x := a.(type) {
		case map[string]any:
			if y, ok := b.(map[string]any); ok {
				members(found, at, x, y)
				return
			}
		case []any:
			if y, ok := b.([]any); ok {
				items(found, at, x, y)
				return
			}
		default:
			if a == b {
				return
			}
		}
	}
	d := Difference{Pointer: at}
	if hasA {
		d.Recorded = encoded(a)
	}
	if hasB {
		d.Now = encoded(b)
	}
	*found = append(*found, d)
}

// members compares objects.
func members(found *[]Difference, at string, a, b map[string]any) {
	var names []string
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		names = append(names, name)
	}
	slices.Sort(names)
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, name := range slices.Compact(names) {
		x, hasA := a[name]
		y, hasB := b[name]
		walk(found, at+"/"+escape.Replace(name), x, y, hasA, hasB)
	}
}

// items compares lists place by place.
func items(found *[]Difference, at string, a, b []any) {
	for i := range max(len(a), len(b)) {
		var x, y any
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		walk(found, at+"/"+strconv.Itoa(i), x, y, i < len(a), i < len(b))
	}
}

// encoded is a value as JSON.
func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return json.RawMessage("null") // a tree out of JSON always encodes
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}
