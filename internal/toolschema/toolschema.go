// Package toolschema brings the input schemas of tools into a form that OpenAI, Anthropic and Gemini accept: a provider
// refuses every request that has one schema it does not accept. docs/PROVIDERS.md lists the rules with their sources.
//
// Start with [Normal]. Whether arguments fit a schema is for whoever answers the tool.
//
// Stability: internal.
package toolschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/lazyregexp"
)

type object = map[string]any

// keywords says what the values of keywords are, by the meta-schema of draft 2020-12, which Anthropic checks.
//
//nolint:gochecknoglobals // immutable table
var keywords = map[string]string{
	"items": "schema", "additionalProperties": "schema", "not": "schema", "contains": "schema", "propertyNames": "schema", "if": "schema",
	"then": "schema", "else": "schema", "unevaluatedItems": "schema", "unevaluatedProperties": "schema", "additionalItems": "schema",
	"properties": "schemas", "patternProperties": "schemas", "$defs": "schemas", "definitions": "schemas", "dependentSchemas": "schemas",
	"anyOf": "list of schemas", "oneOf": "list of schemas", "allOf": "list of schemas", "prefixItems": "list of schemas",
	"enum": "list", "examples": "list", "uniqueItems": "flag", "deprecated": "flag", "readOnly": "flag", "writeOnly": "flag",
	"title": "text", "description": "text", "pattern": "text", "format": "text", "$comment": "text", "$id": "text", "$anchor": "text",
	"minimum": "number", "maximum": "number", "exclusiveMinimum": "number", "exclusiveMaximum": "number", "multipleOf": "number",
	"minLength": "number", "maxLength": "number", "minItems": "number", "maxItems": "number", "minProperties": "number", "maxProperties": "number",
	"minContains": "number", "maxContains": "number", "type": "type", "required": "names", "$ref": "reference",
}

// maxReferences is how many references may lead to one schema.
const maxReferences = 16

// argumentName matches the names of arguments that Anthropic accepts.
var argumentName = lazyregexp.New(`^[a-zA-Z0-9_.-]{1,64}$`)

// Normal returns raw as a schema of the type object with properties, and the places of what it had to remove. No schema
// takes no arguments. An error says why the tool cannot be offered.
func Normal(raw json.RawMessage) (schema json.RawMessage, removed []string, err error) {
	root := object{}
	if len(raw) > 0 {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber() // large numbers keep their digits
		if d.Decode(&root) != nil {
			return nil, nil, errors.New("it is not a JSON object")
		}
	}
	if root == nil { // null
		root = object{}
	}
	n := &normaliser{root: root}
	if err := n.top(); err != nil {
		return nil, nil, err
	}
	schema, err = json.Marshal(root)
	slices.Sort(n.removed)
	return schema, slices.Compact(n.removed), err
}

type normaliser struct {
	root    object
	removed []string
}

func (n *normaliser) remove(s object, at, key string) {
	if s[key] != nil {
		n.removed = append(n.removed, strings.TrimPrefix(at+"/"+key, "/"))
	}
	delete(s, key)
}

// top mends the root and all schemas in it.
func (n *normaliser) top() error {
	if n.root["$ref"] != nil {
		target, ok := n.resolve(n.root).(object)
		if !ok {
			return errors.New("its $ref leads nowhere")
		}
		delete(n.root, "$ref")
		own := maps.Clone(n.root)
		maps.Copy(n.root, target)
		maps.Copy(n.root, own)
	}
	if !takesObjects(n.root) {
		return fmt.Errorf("its type is %.40v, and providers accept only object", n.root["type"])
	}
	if !n.flatten("", n.root) {
		return errors.New("none of the schemas that it chooses between is of the type object")
	}
	for _, key := range []string{"enum", "const", "not"} {
		n.remove(n.root, "", key)
	}
	delete(n.root, "$schema")
	delete(n.root, "$id")
	n.schema("", n.root)
	n.root["type"] = "object"
	all, _ := n.root["properties"].(object)
	if all == nil {
		n.root["properties"] = object{}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch required := texts(n.root["required"]); {
		case argumentName().MatchString(name):
		case slices.Contains(required, any(name)):
			return fmt.Errorf("it requires the argument %.80q, and Anthropic accepts names of 1 to 64 letters, digits and _ . -", name)
		default:
			n.remove(all, "properties", name)
		}
	}
	return nil
}

func takesObjects(s object) bool {
	kinds, _ := s["type"].([]any)
	return s["type"] == nil || s["type"] == "object" || slices.Contains(kinds, any("object"))
}

// flatten replaces choices between schemas by the properties of all of them, of which only allOf may require some; false if
// no choice takes objects.
func (n *normaliser) flatten(at string, s object) bool {
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		choices, _ := s[key].([]any)
		n.remove(s, at, key) // before a choice that refers to s
		taken := len(choices) == 0
		for _, choice := range choices {
			c, _ := n.resolve(choice).(object)
			if c == nil || !takesObjects(c) || !n.flatten(at+"/"+key, c) {
				continue
			}
			taken = true
			n.widen(s, c["properties"])
			if names := texts(c["required"]); key == "allOf" && len(names) > 0 {
				s["required"] = append(texts(s["required"]), names...)
			}
		}
		if !taken {
			return false
		}
	}
	return true
}

// widen adds properties to a schema. One that is there already takes the values of both.
func (n *normaliser) widen(s object, more any) {
	all, _ := s["properties"].(object)
	if all = maps.Clone(all); all == nil {
		all = object{}
	}
	added, _ := more.(object)
	for name, p := range added {
		had, _ := all[name].(object)
		either, _ := had["anyOf"].([]any)
		switch {
		case had == nil:
			all[name] = p
		case reflect.DeepEqual(any(had), p), slices.ContainsFunc(either, func(v any) bool { return reflect.DeepEqual(v, p) }):
		case either != nil && len(had) == 1:
			all[name] = object{"anyOf": append(slices.Clip(either), p)}
		default:
			all[name] = object{"anyOf": []any{had, p}}
		}
	}
	s["properties"] = all
}

// resolve follows references within the root; nil if they lead elsewhere, nowhere or in a cycle.
func (n *normaliser) resolve(v any) any {
	for range maxReferences {
		s, ok := v.(object)
		if !ok || s["$ref"] == nil {
			return v
		}
		ref, _ := s["$ref"].(string)
		ref, _ = url.PathUnescape(ref)
		parts := strings.Split(ref, "/")
		if v = n.root; parts[0] != "#" {
			return nil
		}
		for _, part := range parts[1:] {
			at, _ := v.(object)
			v = at[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		}
	}
	return nil
}

// schema mends a schema, and those in it. A keyword goes if its value is not of the kind that it should be.
func (n *normaliser) schema(at string, s object) {
	for most, flag := range map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"} {
		if exclusive, ok := s[flag].(bool); ok { // draft 4
			if delete(s, flag); exclusive {
				s[flag] = s[most]
				delete(s, most)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if kind := keywords[key]; kind != "" && !n.keyword(at+"/"+key, s, key, kind) {
			n.remove(s, at, key)
		}
	}
	if s["type"] == "array" && s["items"] == nil && s["prefixItems"] == nil {
		s["items"] = object{} // OpenAI wants one
	}
}

// keyword mends a value, and reports whether it is of its kind.
func (n *normaliser) keyword(at string, s object, key, kind string) (ok bool) {
	list, _ := s[key].([]any)
	all, isObject := s[key].(object)
	switch kind {
	case "schema":
		if _, ok = s[key].(bool); ok && key != "items" {
			return true
		}
		if ok = ok || isObject || key == "items" && list != nil; ok {
			s[key] = n.sub(at, s[key])
		}
	case "schemas":
		for name := range all {
			all[name] = n.sub(at+"/"+name, all[name])
		}
		return isObject
	case "list of schemas":
		for i := range list {
			list[i] = n.sub(at, list[i])
		}
		return len(list) > 0
	case "list":
		return len(list) > 0
	case "flag":
		_, ok = s[key].(bool)
	case "text":
		_, ok = s[key].(string)
	case "number":
		_, ok = s[key].(json.Number)
	case "type":
		if list == nil {
			list = []any{s[key]}
		}
		known := []any{"object", "array", "string", "number", "integer", "boolean", "null"}
		return len(list) > 0 && !slices.ContainsFunc(list, func(kind any) bool { return !slices.Contains(known, kind) })
	case "names":
		return n.required(s)
	case "reference":
		return n.resolve(s) != nil
	}
	return ok
}

// sub returns a schema that is an object: one without conditions for true and for what is not a schema.
func (n *normaliser) sub(at string, v any) any {
	if tuple, ok := v.([]any); ok { // items, by earlier drafts
		v = object{"anyOf": tuple}
	}
	s, ok := v.(object)
	if !ok {
		if v != true && v != nil {
			n.removed = append(n.removed, strings.TrimPrefix(at, "/"))
		}
		return object{}
	}
	n.schema(at, s)
	return s
}

// required gives each required name a property, which Gemini wants; false if there is no list of names.
func (n *normaliser) required(s object) bool {
	list, ok := s["required"].([]any)
	names := texts(list)
	if len(names) == 0 {
		return ok && len(list) == 0
	}
	all, _ := s["properties"].(object)
	if all == nil {
		all = object{}
		s["properties"] = all
	}
	for _, name := range names {
		if text, _ := name.(string); all[text] == nil {
			all[text] = object{}
		}
	}
	s["required"] = names
	return true
}

// texts returns the texts of a list, each once.
func texts(v any) (out []any) {
	list, _ := v.([]any)
	for _, v := range list {
		if _, ok := v.(string); ok && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}
