package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/grapnelhq/grapnel/config"
)

func lower(s string) string {
	if len(s) < 2 || s[1] != ' ' && (s[1] < 'a' || s[1] > 'z') {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// configSection is a table of keys of grapnel.yaml: a definition of its schema (empty for
// the file itself) and what stands before its keys.
type configSection struct{ def, prefix string }

func configSections() map[string]configSection {
	return map[string]configSection{
		"file": {}, "budgets": {"budgets", "budgets."}, "plugins": {def: "plugin"}, "grants": {def: "grants"},
		"subscriptions": {def: "subscription"}, "manifest": {"manifest", "manifest."}, "serve": {"serve", "serve."},
	}
}

type schemaNode struct {
	Description          string                 `json:"description"`
	Ref                  string                 `json:"$ref"`
	Items                *schemaNode            `json:"items"`
	AnyOf                []*schemaNode          `json:"anyOf"`
	AdditionalProperties *schemaNode            `json:"additionalProperties"`
	Properties           json.RawMessage        `json:"properties"`
	Defs                 map[string]*schemaNode `json:"$defs"`
}

// UnmarshalJSON implements json.Unmarshaler: true and false are schemas too.
func (n *schemaNode) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return nil
	}
	type plain schemaNode
	return json.Unmarshal(data, (*plain)(n))
}

// refers is the definition that a node, or the element of its list or mapping, refers to,
// and whether it is that of a mapping.
func (n *schemaNode) refers() (def string, mapping bool) {
	if n == nil {
		return "", false
	}
	if n.Ref != "" {
		return strings.TrimPrefix(n.Ref, "#/$defs/"), false
	}
	for _, below := range append([]*schemaNode{n.Items}, n.AnyOf...) {
		if def, mapping := below.refers(); def != "" {
			return def, mapping
		}
	}
	def, _ = n.AdditionalProperties.refers()
	return def, def != ""
}

func keyTable(section configSection) (string, error) {
	root := &schemaNode{}
	if err := json.Unmarshal(config.Schema(), root); err != nil {
		return "", err
	}
	node := root
	if section.def != "" {
		node = root.Defs[section.def]
	}
	rows, err := keyRows(root, node, section.prefix)
	return grid([]string{"key", "default", "meaning"}, rows), err
}

// keyRows lists the keys of an object in the schema's order. Those of objects that have no
// table of their own follow with the path to them.
func keyRows(root, node *schemaNode, prefix string) ([][]string, error) {
	if node == nil {
		return nil, fmt.Errorf("the schema has no %s", prefix)
	}
	separate := map[string]bool{"contribution": true, "on_failure": true, "phase": true}
	for _, s := range configSections() {
		separate[s.def] = true
	}
	dec := json.NewDecoder(bytes.NewReader(node.Properties))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	var rows [][]string
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		property, key := &schemaNode{}, fmt.Sprint(prefix, name)
		if err := dec.Decode(property); err != nil {
			return nil, err
		}
		if def, mapping := property.refers(); def != "" && !separate[def] {
			if mapping {
				key += ".PHASE"
			}
			below, err := keyRows(root, root.Defs[def], key+".")
			if err != nil {
				return nil, err
			}
			rows = append(rows, below...)
			continue
		}
		doc, value, found := strings.Cut(property.Description, " Default: ")
		if !found {
			value = "–"
		}
		rows = append(rows, []string{code(key), strings.TrimSuffix(value, "."), linked(lower(cell("", doc)))})
	}
	return rows, nil
}

var document = regexp.MustCompile(`\b([A-Z]+\.md)\b`)

func linked(text string) string {
	return document.ReplaceAllString(text, "[$1]($1)")
}
