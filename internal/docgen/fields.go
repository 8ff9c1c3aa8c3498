package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/manifest"
)

// field is a field of a manifest: its path in JSON without the marks of lists, and how to
// change its value; nil for a field that has fields of its own.
type field struct {
	path   string
	change func()
}

// fieldsOf fills v and all that it holds, each list with one element, and lists the
// fields in the order of their declaration. Changing one gives it another value.
func fieldsOf(v reflect.Value, path string) ([]field, error) {
	leaf := func(first, second any) ([]field, error) {
		set := func(value any) { v.Set(reflect.ValueOf(value).Convert(v.Type())) }
		set(first)
		return []field{{path, func() { set(second) }}}, nil
	}
	switch v.Kind() { //nolint:exhaustive // others are an error
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return fieldsOf(v.Elem(), path)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			return leaf(json.RawMessage("1"), json.RawMessage("2"))
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return fieldsOf(v.Index(0), path)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return leaf(time.Unix(1, 0).UTC(), time.Unix(2, 0).UTC())
		}
		return membersOf(v, path)
	case reflect.String:
		return leaf("a", "b")
	case reflect.Bool:
		return leaf(true, false)
	case reflect.Int, reflect.Uint64, reflect.Float64:
		return leaf(1, 2)
	}
	return nil, fmt.Errorf("%s is of the kind %s", path, v.Kind())
}

func membersOf(v reflect.Value, path string) ([]field, error) {
	var all []field
	if strings.Contains(path, ".") {
		all = append(all, field{path: path})
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if !f.Anonymous || name != "" {
			name = strings.Trim(path+"."+name, ".")
		} else {
			name = path
		}
		below, err := fieldsOf(v.Field(i), name)
		if err != nil {
			return nil, err
		}
		if f.Anonymous && name == path && strings.Contains(path, ".") {
			below = below[1:] // the struct itself is listed already
		}
		all = append(all, below...)
	}
	return all, nil
}

func descriptions(schema map[string]any, path string, into map[string]string) {
	if items, ok := schema["items"].(map[string]any); ok {
		descriptions(items, path, into)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		if property, ok := property.(map[string]any); ok {
			at := strings.Trim(path+"."+name, ".")
			doc, _ := property["description"].(string)
			into[at] = lower(cell(name, doc)) + words(property)
			descriptions(property, at, into)
		}
	}
}

func lower(s string) string {
	if len(s) < 2 || s[1] != ' ' && (s[1] < 'a' || s[1] > 'z') {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

func words(schema map[string]any) string {
	var list []string
	enum, _ := schema["enum"].([]any)
	for _, word := range enum {
		if word, _ := word.(string); word != "" {
			list = append(list, word)
		}
	}
	if list == nil {
		return ""
	}
	return ": " + codes(list)
}

// fieldTable lists the fields of one group of a manifest. A field counts if changing it changes the content hash.
func fieldTable(group string) (string, error) {
	var m manifest.Manifest
	fields, err := fieldsOf(reflect.ValueOf(&m).Elem(), "")
	if err != nil {
		return "", err
	}
	var schema map[string]any
	if err := json.Unmarshal(manifest.Schema(), &schema); err != nil {
		return "", err
	}
	docs := map[string]string{}
	descriptions(schema, "", docs)
	var rows [][]string
	for _, f := range fields {
		counts := ""
		if f.change != nil {
			before, err := manifest.ContentHash(&m)
			if err != nil {
				return "", err
			}
			f.change()
			after, err := manifest.ContentHash(&m)
			if err != nil {
				return "", err
			}
			counts = map[bool]string{true: "no", false: "yes"}[before == after]
		}
		if groupOf(f.path) == group {
			name := strings.TrimPrefix(f.path, group+".")
			rows = append(rows, []string{code(name), counts, docs[f.path]})
		}
	}
	return grid([]string{"field", "counts", "meaning"}, rows), nil
}

func groupOf(path string) string {
	group, _, nested := strings.Cut(path, ".")
	switch {
	case nested:
		return group
	case strings.HasPrefix(path, "fingerprint_"), strings.HasPrefix(path, "hash_"):
		return "fingerprints"
	case path == "content_hash", path == "prev", path == "hash":
		return "integrity"
	case path == "section_ids":
		return path
	}
	return "head"
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
