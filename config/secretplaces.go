package config

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Shown returns Config as it may be shown: with "***" for values from the
// environment. It must not be changed.
func (p *Plugin) Shown() json.RawMessage {
	if p.redacted != nil {
		return p.redacted
	}
	return p.Config
}

// Secrets says which values of Config are from the environment: the names of the
// variables by JSON pointers (RFC 6901). Nil when none are. It must not be changed.
func (p *Plugin) Secrets() map[string]string { return p.secrets }

// secretPlaces adds the variables' names to the pointers of n's texts that are
// taken from the environment.
func secretPlaces(places map[string]string, at string, n *node) {
	switch n.kind {
	case textNode:
		if name := fromEnv(n.text); name != "" {
			places[at] = name
		}
	case listNode:
		for i, item := range n.items {
			secretPlaces(places, at+"/"+strconv.Itoa(i), item)
		}
	case mappingNode:
		for _, e := range n.entries {
			secretPlaces(places, at+"/"+pointerToken(e.key), e.value)
		}
	default: // no text is in it
	}
}

// pointerToken is a member's name in a JSON pointer.
func pointerToken(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// hide is what a plugin's own configuration looks like where it is shown, and
// where its secrets are.
func (p *Plugin) hide(own *node) {
	if p.redacted = redactedJSON(own); p.redacted != nil {
		p.secrets = map[string]string{}
		secretPlaces(p.secrets, "", own)
	}
}

// Filled returns a configuration whose secrets are filled in: value gives the text
// for each pointer of places, which must point to a text in config. It is the
// reverse of [Plugin.Shown], for a configuration that was kept without them.
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

// filled is Filled for the value at a pointer.
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
