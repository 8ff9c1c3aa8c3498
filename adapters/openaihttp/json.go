package openaihttp

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// object is a JSON object whose members keep their order and, until they are set, their bytes.
type object struct {
	names  []string
	values map[string]json.RawMessage
}

// parse refuses a name that is there twice: who reads the object next might believe the other value.
func parse(raw []byte) (object, error) {
	o := object{values: map[string]json.RawMessage{}}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return o, errors.Join(errors.New("want a JSON object"), err)
	}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return o, err
		}
		name := fmt.Sprint(token)
		if o.has(name) {
			return o, fmt.Errorf("the member %.80q is there twice", name)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return o, err
		}
		o.names, o.values[name] = append(o.names, name), value
	}
	if _, err := dec.Token(); err != nil {
		return o, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return o, errors.New("there is more than one JSON value")
	}
	return o, nil
}

// newObject makes an object of names and values.
func newObject(members ...any) object {
	o := object{values: map[string]json.RawMessage{}}
	for i := 0; i+1 < len(members); i += 2 {
		o.set(fmt.Sprint(members[i]), members[i+1])
	}
	return o
}

func (o object) clone() object { return object{slices.Clone(o.names), maps.Clone(o.values)} }

// has reports whether a member is there and not null.
func (o object) has(name string) bool {
	v, ok := o.values[name]
	return ok && string(v) != "null"
}

func (o object) text(name string) string {
	var s string
	_ = json.Unmarshal(o.values[name], &s) // anything else counts as empty
	return s
}

func (o object) list(name string) []json.RawMessage { return listOf(o.values[name]) }

func listOf(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	_ = json.Unmarshal(raw, &list) // anything else counts as empty
	return list
}

func (o object) object(name string) object {
	inner, err := parse(o.values[name])
	if err != nil {
		return newObject()
	}
	return inner
}

func (o *object) set(name string, v any) {
	if _, ok := o.values[name]; !ok {
		o.names = append(o.names, name)
	}
	o.values[name] = encode(v)
}

func (o *object) remove(name string) {
	delete(o.values, name)
	o.names = slices.DeleteFunc(o.names, func(n string) bool { return n == name })
}

// encode leaves what is JSON already as it is.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	switch v := v.(type) {
	case json.RawMessage:
		return v
	case object:
		b.WriteByte('{')
		for i, name := range v.names {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(encode(name))
			b.WriteByte(':')
			b.Write(v.values[name])
		}
		b.WriteByte('}')
	case []json.RawMessage:
		b.WriteByte('[')
		for i, raw := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(raw)
		}
		b.WriteByte(']')
	default:
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(v) //nolint:errchkjson // strings, numbers and booleans
	}
	return bytes.TrimSpace(b.Bytes())
}

// textOf is a string, or the texts of a list of parts, as plugins may see it: without NULs.
func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	var texts []string
	for _, part := range listOf(raw) {
		o, err := parse(part)
		if err != nil {
			texts = append(texts, string(part)) // whatever the provider reads of it
		} else if o.text("text") != "" {
			texts = append(texts, o.text("text"))
		}
	}
	return strings.ReplaceAll(strings.Join(texts, "\n\n"), "\x00", "\uFFFD")
}

// join makes one object of the deltas of a stream: strings and lists grow, objects are joined, and of everything else
// the last value counts.
func join(deltas []object) object {
	values := map[string][]json.RawMessage{}
	out := newObject()
	for _, d := range deltas {
		for _, name := range d.names {
			if _, ok := out.values[name]; !ok {
				out.set(name, d.values[name])
			}
			if d.has(name) && (!fixed(name) || string(d.values[name]) != `""`) {
				values[name] = append(values[name], d.values[name])
			}
		}
	}
	for name, all := range values {
		kind := all[0][0]
		if slices.ContainsFunc(all, func(v json.RawMessage) bool { return v[0] != kind }) || fixed(name) {
			kind = 0
		}
		switch kind {
		case '"':
			var b strings.Builder
			for _, v := range all {
				var s string
				_ = json.Unmarshal(v, &s) // it is a string
				b.WriteString(s)
			}
			out.set(name, b.String())
		case '[':
			var list []json.RawMessage
			for _, v := range all {
				list = append(list, listOf(v)...)
			}
			out.set(name, list)
		case '{':
			objects := make([]object, len(all))
			for i, v := range all {
				objects[i], _ = parse(v) // what is not valid is empty
			}
			out.set(name, join(objects))
		default:
			out.set(name, all[len(all)-1])
		}
	}
	return out
}

// fixed reports whether a member does not grow: some servers send it once, some with each delta.
func fixed(name string) bool { return slices.Contains([]string{"id", "type", "role", "name"}, name) }

// place is a place in a conversation: a hash of everything before it.
type place [sha256.Size]byte

// then is the place behind one more thing.
func (p place) then(what string) place { return sha256.Sum256(append(p[:], what...)) }

// digest hashes what a message says. Clients move cache_control from message to message and write a text as a string
// or as a part, so that neither counts.
func digest(message json.RawMessage) string {
	var v any
	dec := json.NewDecoder(bytes.NewReader(message))
	dec.UseNumber()
	_ = dec.Decode(&v) // it is valid
	h := sha256.New()
	say(h, v)
	return string(h.Sum(nil))
}

func say(h io.Writer, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name != "type" && name != "cache_control" {
				say(h, v[name])
			}
		}
	case []any:
		for _, e := range v {
			say(h, e)
		}
	default:
		_, _ = fmt.Fprintf(h, "%q", fmt.Sprint(v)) // hashes do not fail
	}
}
