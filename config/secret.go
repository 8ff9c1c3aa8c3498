package config

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/phases"
)

const redacted = "***"

// Secret is a string that may have come from the environment; it prints as "***" then.
type Secret struct {
	// Value is the string itself.
	Value string
	// FromEnv names the variable it was taken from; empty for plain text.
	FromEnv string
}

// String implements fmt.Stringer: the value, or "***" if it came from the environment.
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

var variable = lazyregexp.New(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// fromEnv returns the variable that a text stands for, "" for plain text. A secret within a longer text could not be
// redacted, and other programs expand ${NAME} there.
func fromEnv(text string) string {
	if m := variable().FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

func (d *decoder) secret(n *node, p *Secret) {
	if d.want(n, textNode) {
		*p = Secret{Value: d.expand(n), FromEnv: fromEnv(n.text)}
	}
}

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

func (d *decoder) rawJSON(n *node, r rule) json.RawMessage {
	text := plainText
	if r.object {
		if !d.filled(n, mappingNode) {
			return nil
		}
		text = func(_ string, n *node) string { return d.expand(n) }
	}
	raw := encode(n, text)
	if err := jsonscan.Check(raw, phases.MaxJSONDepth); err != nil {
		d.badf(n, "%v", err)
		return nil
	}
	return raw
}

// encode encodes a node as JSON with sorted keys, so that reordering a file does
// not change a plugin's configuration. text gives the text of the node at a pointer.
func encode(n *node, text func(pointer string, n *node) string) json.RawMessage {
	raw, err := json.Marshal(value(n, "", text))
	if err != nil {
		panic(err) // a node always encodes
	}
	return raw
}

func value(n *node, at string, text func(pointer string, n *node) string) any {
	switch n.kind {
	case boolNode, numberNode:
		return json.RawMessage(n.text)
	case textNode:
		return text(at, n)
	case listNode:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = value(item, at+"/"+strconv.Itoa(i), text)
		}
		return list
	case mappingNode:
		object := make(map[string]any, len(n.entries))
		for _, e := range n.entries {
			object[e.key] = value(e.value, at+"/"+pointerToken(e.key), text)
		}
		return object
	default:
		return nil
	}
}

func plainText(_ string, n *node) string { return n.text }

func pointerToken(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// Shown returns Config with "***" for values from the environment. It must not be changed.
func (p *Plugin) Shown() json.RawMessage {
	if p.redacted != nil {
		return p.redacted
	}
	return p.Config
}

// Secrets returns the names of the variables that values of Config were taken from, by
// JSON pointers (RFC 6901); nil if there are none. It must not be changed.
func (p *Plugin) Secrets() map[string]string { return p.secrets }

func (p *Plugin) redact(own *node) {
	places := map[string]string{}
	raw := encode(own, func(at string, n *node) string {
		name := fromEnv(n.text)
		if name == "" {
			return n.text
		}
		places[at] = name
		return redacted
	})
	if len(places) > 0 {
		p.redacted, p.secrets = raw, places
	}
}

// Filled is the reverse of [Plugin.Shown]: value gives the text for each pointer of
// places, which must point to a text in config.
func Filled(config json.RawMessage, places map[string]string, value func(pointer, name string) (string, error)) (json.RawMessage, error) {
	if len(places) == 0 {
		return config, nil
	}
	dec := json.NewDecoder(bytes.NewReader(config))
	dec.UseNumber() // numbers keep their digits
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	tree, err := filled(tree, "", places, value)
	if err != nil {
		return nil, err
	}
	return json.Marshal(tree)
}

func filled(v any, at string, places map[string]string, value func(pointer, name string) (string, error)) (_ any, err error) {
	switch v := v.(type) {
	case string:
		if name, ok := places[at]; ok {
			return value(at, name)
		}
	case []any:
		for i := range v {
			if v[i], err = filled(v[i], at+"/"+strconv.Itoa(i), places, value); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range v {
			if v[key], err = filled(v[key], at+"/"+pointerToken(key), places, value); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
