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
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/phases"
)

type object = map[string]any

// Kinds of values, as expressions for their type of Go and text.
const (
	count  = `json.Number \d+(\.0+)?([eE]\+?\d+)?$`
	anchor = `string [A-Za-z_][-A-Za-z0-9._]*$`
)

// keywords has the kinds that values of keywords must have, by the meta-schema of draft 2020-12, which Anthropic checks.
//
//nolint:gochecknoglobals // immutable table
var keywords = map[string]string{
	"items": "schema", "additionalProperties": "schema", "not": "schema", "contains": "schema", "propertyNames": "schema", "if": "schema",
	"then": "schema", "else": "schema", "unevaluatedItems": "schema", "unevaluatedProperties": "schema", "additionalItems": "schema", "contentSchema": "schema",
	"properties": "schemas", "patternProperties": "schemas", "$defs": "schemas", "definitions": "schemas", "dependentSchemas": "schemas",
	"anyOf": "choices", "oneOf": "choices", "allOf": "choices", "prefixItems": "choices", "enum": "list", "examples": "list",
	"uniqueItems": "bool", "deprecated": "bool", "readOnly": "bool", "writeOnly": "bool", "type": "type", "required": "names", "$ref": "reference",
	"title": "string", "description": "string", "format": "string", "$comment": "string", "contentEncoding": "string", "contentMediaType": "string",
	"pattern": "pattern", "$id": `string [^#\s]*#?$`, "$schema": `string [^#\s]*#?$`, "$anchor": anchor, "$dynamicAnchor": anchor, "$recursiveAnchor": anchor,
	"$dynamicRef": "reference", "$recursiveRef": "reference", "dependentRequired": "dependents", "dependencies": "dependents", "$vocabulary": "none",
	"minimum": "json.Number", "maximum": "json.Number", "exclusiveMinimum": "json.Number", "exclusiveMaximum": "json.Number", "multipleOf": `json.Number [0.]*[1-9]`,
	"minLength": count, "maxLength": count, "minItems": count, "maxItems": count, "minProperties": count, "maxProperties": count, "minContains": count, "maxContains": count,
}

// maxReferences is how many references may lead to one schema.
const maxReferences = 16

// argumentName matches the names of arguments that Anthropic accepts.
var argumentName = lazyregexp.New(`^[a-zA-Z0-9_.-]{1,64}$`)

// Normal returns raw as a schema of the type object with properties, and the places of what it had to remove. No schema
// takes no arguments. An error says why the tool cannot be offered.
func Normal(raw json.RawMessage) (schema json.RawMessage, removed []string, err error) {
	n := &normaliser{left: 1<<16 + 8*len(raw)}
	if len(raw) > 0 {
		if err := jsonscan.Check(raw, phases.MaxJSONDepth); err != nil {
			return nil, nil, err
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber() // large numbers keep their digits
		if d.Decode(&n.root) != nil {
			return nil, nil, errors.New("it is not a JSON object")
		}
	}
	if n.root == nil {
		n.root = object{}
	}
	if err := n.top(); err != nil {
		return nil, nil, err
	}
	schema, err = json.Marshal(n.root)
	slices.Sort(n.removed)
	return schema, slices.Compact(n.removed), err
}

type normaliser struct {
	root    object
	removed []string
	left    int // how many more bytes the schema may grow by
}

// fits reports whether a value is small and flat enough. Merged schemas share their parts, and may contain themselves.
func (n *normaliser) fits(v any, depth int) bool {
	n.left--
	switch v := v.(type) {
	case object:
		for key, part := range v {
			if n.left -= len(key); depth == 0 || !n.fits(part, depth-1) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(v, func(part any) bool { return depth == 0 || !n.fits(part, depth-1) })
	case string:
		n.left -= len(v)
	}
	return n.left >= 0
}

func (n *normaliser) remove(s object, at, key string) {
	if s[key] != nil {
		n.removed = append(n.removed, strings.TrimPrefix(at+"/"+key, "/"))
	}
	delete(s, key)
}

// top mends the root and all schemas in it.
func (n *normaliser) top() error {
	switch {
	case !takesObjects(n.root):
		return fmt.Errorf("its type is %.40v, and providers accept only object", n.root["type"])
	case !n.flatten("", n.root):
		return errors.New("its $ref leads nowhere, or none of the schemas that it chooses between is of the type object")
	case !n.fits(n.root, phases.MaxJSONDepth):
		return errors.New("the schemas that it refers to are too large or too deep together")
	}
	for _, key := range []string{"enum", "const", "not"} {
		n.remove(n.root, "", key)
	}
	delete(n.root, "$schema")
	delete(n.root, "$id")
	n.schema("", n.root)
	n.root["type"] = "object"
	all := properties(n.root)
	n.root["properties"] = all
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch {
		case argumentName().MatchString(name):
		case slices.Contains(texts(n.root["required"]), any(name)):
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

// properties returns the properties of a schema, which may be none.
func properties(s object) object {
	if all, _ := s["properties"].(object); all != nil {
		return all
	}
	return object{}
}

// flatten replaces a reference and choices between schemas by the properties of all of them. Choices of anyOf and oneOf no
// longer require any. It returns false if none of the choices takes objects.
func (n *normaliser) flatten(at string, s object) bool {
	values := map[string][]any{} // of properties
	widen := func(from object) {
		for name, p := range properties(from) {
			if n.left--; n.left >= 0 && !slices.ContainsFunc(values[name], func(had any) bool { return reflect.DeepEqual(had, p) }) {
				values[name] = append(values[name], p)
			}
		}
	}
	widen(s)
	for _, key := range []string{"$ref", "allOf", "anyOf", "oneOf"} {
		choices, _ := s[key].([]any)
		if key == "$ref" && s[key] != nil {
			choices = []any{object{key: s[key]}}
		}
		n.remove(s, at, key) // before a choice that refers to s
		taken := len(choices) == 0
		for _, choice := range choices {
			c, _ := n.resolve(choice).(object)
			if c == nil || !takesObjects(c) || !n.flatten(at+"/"+key, c) {
				continue
			}
			taken = true
			widen(c)
			if names := texts(c["required"]); len(names) > 0 && (key == "$ref" || key == "allOf") {
				s["required"] = append(texts(s["required"]), names...)
			}
		}
		if !taken {
			return false
		}
	}
	all := maps.Clone(properties(s))
	for name, list := range values {
		if all[name] = list[0]; len(list) > 1 {
			all[name] = object{"anyOf": list}
		}
	}
	if len(values) > 0 {
		s["properties"] = all
	}
	return true
}

// resolve follows references within the root; nil if they lead elsewhere, nowhere or in a cycle.
func (n *normaliser) resolve(v any) any {
	for range maxReferences {
		s, ok := v.(object)
		if !ok || s["$ref"] == nil {
			return v
		}
		ref, _ := s["$ref"].(string)
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
		_, ok = s[key].(bool)
		if isObject || key == "items" && (ok || list != nil) {
			s[key], ok = n.sub(at, s[key]), true
		}
	case "schemas":
		for name := range all {
			if all[name] = n.sub(at+"/"+name, all[name]); key == "patternProperties" && !isPattern(name) {
				n.remove(all, at, name)
			}
		}
		return isObject
	case "choices":
		for i := range list {
			list[i] = n.sub(at, list[i])
		}
		return len(list) > 0
	case "list":
		return len(list) > 0
	case "type":
		return areTypes(s[key])
	case "names":
		return list != nil && required(s, key) >= min(1, len(list))
	case "reference":
		return s[key] != nil && n.resolve(object{"$ref": s[key]}) != nil
	case "dependents":
		n.dependents(at, all, key == "dependencies")
		return isObject
	default:
		return plain(s[key], kind)
	}
	return ok
}

// areTypes reports whether a value is a type, or a list of them, each once.
func areTypes(v any) bool {
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	known := []any{"object", "array", "string", "number", "integer", "boolean", "null"}
	return len(list) > 0 && len(texts(list)) == len(list) && !slices.ContainsFunc(list, func(kind any) bool { return !slices.Contains(known, kind) })
}

// required keeps each name once, and returns how many there are. Gemini wants a property for each.
func required(s object, key string) int {
	names := texts(s[key])
	for _, name := range names {
		all := properties(s)
		if text, _ := name.(string); all[text] == nil {
			all[text], s["properties"] = object{}, all
		}
	}
	if len(names) > 0 {
		s[key] = names
	}
	return len(names)
}

// dependents removes what is no list of names, each once, and mends schemas where they may be.
func (n *normaliser) dependents(at string, all object, schemas bool) {
	for name, v := range all {
		if names, isList := v.([]any); schemas && !isList {
			all[name] = n.sub(at+"/"+name, v)
		} else if !isList || len(texts(names)) != len(names) {
			n.remove(all, at, name)
		}
	}
}

// plain reports whether a value is a pattern, or its type of Go and its text match the kind.
func plain(v any, kind string) bool {
	if text, isText := v.(string); kind == "pattern" {
		return isText && isPattern(text)
	}
	matches, err := regexp.MatchString("^"+kind, fmt.Sprintf("%T %v", v, v))
	return err == nil && matches
}

// isPattern reports whether a text may be a regular expression of ECMA 262. Go's have less: what only Go refuses is one.
func isPattern(text string) bool {
	_, err := syntax.Parse(strings.NewReplacer("(?=", "(?:", "(?!", "(?:", "(?<=", "(?:", "(?<!", "(?:", `\\`, `\\`, `\(`, `\(`).Replace(text), syntax.Perl)
	flaw, _ := errors.AsType[*syntax.Error](err)
	return flaw == nil || !slices.Contains([]syntax.ErrorCode{
		syntax.ErrMissingBracket, syntax.ErrMissingParen, syntax.ErrUnexpectedParen, syntax.ErrTrailingBackslash,
		syntax.ErrMissingRepeatArgument, syntax.ErrInvalidRepeatOp, syntax.ErrInvalidCharRange,
	}, flaw.Code)
}

// sub returns v as a schema that is an object. True, and what is not a schema, become one that allows everything.
func (n *normaliser) sub(at string, v any) any {
	if tuple, ok := v.([]any); ok { // items, by earlier drafts
		v = object{"anyOf": tuple}
	}
	if s, ok := v.(object); ok {
		n.schema(at, s)
		return s
	}
	if yes, _ := v.(bool); !yes && v != nil {
		n.removed = append(n.removed, strings.TrimPrefix(at, "/"))
	}
	return object{}
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
