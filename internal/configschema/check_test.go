package configschema

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// TestCheckPlace pins the place that a schema error is about.
func TestCheckPlace(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{
		"type": "object", "additionalProperties": false,
		"properties": {"hooks": {"type": "array", "items": {"$ref": "#/$defs/hook"}}, "n": {"type": "integer"},
			"by": {"type": "object", "additionalProperties": {"$ref": "#/$defs/hook"}}},
		"$defs": {"hook": {"type": "object", "required": ["id"], "additionalProperties": false, "properties": {
			"id": {"type": "string"}, "role": {"enum": ["first", "second"]}, "env": {"additionalProperties": {"type": "string"}},
			"tags": {"type": "array", "items": {"type": "string"}}
		}}}
	}`)
	tests := []struct{ name, config, pointer string }{
		{"unknown key at the top", `{"x": 1}`, "/x"},
		{"unknown key in an item", `{"hooks": [{"id": "a"}, {"id": "b", "typo": 1}]}`, "/hooks/1/typo"},
		{"word that is not in the list", `{"hooks": [{"id": "a"}, {"id": "b", "role": "secnd"}]}`, "/hooks/1/role"},
		{"missing member", `{"hooks": [{"id": "a"}, {}]}`, "/hooks/1"},
		{"member with any name", `{"by": {"a": {"id": "a"}, "b~/": {"id": "b", "typo": 1}}}`, "/by/b~0~1/typo"},
		{"two failing items: the first", `{"hooks": [{}, {"id": 1}]}`, "/hooks/0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := Check(schema, json.RawMessage(tt.config))
			rejected, ok := errors.AsType[*phases.ConfigError](err)
			if !ok {
				t.Fatalf("got %v, want a *phases.ConfigError", err)
			}
			if rejected.Pointer != tt.pointer || rejected.AtKey != strings.HasPrefix(rejected.Message, "unknown key") {
				t.Errorf("pointer %q (%s, at the key: %t), want %q", rejected.Pointer, rejected.Message, rejected.AtKey, tt.pointer)
			}
		})
	}
	err := Check(schema, json.RawMessage(`{"hooks": [{"id": "a", "role": "secnd"}]}`))
	if want := `unknown word "secnd", want one of first, second (did you mean "second"?)`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	secret := strings.Repeat("s'", 100)
	if err := Check(schema, json.RawMessage(`{"hooks": [{"id": "a", "role": "`+secret+`"}]}`)); err == nil || !strings.Contains(err.Error(), secret) {
		t.Errorf("a long word is changed, so that it could not be hidden: %v", err)
	}
	if err := Check(schema, json.RawMessage(`{"hooks": [{"id": "a"}], "n": 1}`)); err != nil {
		t.Errorf("a fitting configuration: %v", err)
	}
	if err := Check(nil, json.RawMessage(`{"a": 1}`)); err == nil {
		t.Error("a configuration for a plugin without a schema was accepted")
	}
}

// TestCheckPlaceBeside: neither what stands beside a mistake nor a name that is a keyword of schemas hides its place.
func TestCheckPlaceBeside(t *testing.T) {
	t.Parallel()
	const integers, lists = `{"additionalProperties": {"type": "integer"}, `, `{"type": "array", "items": {"type": "integer"}}`
	for _, tt := range []struct{ schema, config, want string }{
		{integers + `"required": ["main"]}`, `{"alpha": 1, "main": 2, "z": "bad"}`, `/s/z: want a whole number, got the text "bad"`},
		{integers + `"allOf": [{"required": ["main"]}]}`, `{"main": 2, "z": "bad"}`, `/s/z: want a whole number, got the text "bad"`},
		{integers + `"minProperties": 2}`, `{"a": 1, "b": 2, "z": "bad"}`, `/s/z: want a whole number, got the text "bad"`},
		{integers + `"properties": {"a": {"type": "string"}}, "patternProperties": {"^b c": true}}`, `{"a": "x", "b c": "x", "z": "bad"}`, `/s/z: want a whole number, got the text "bad"`},
		{`{"patternProperties": {"^a .": {"type": "integer"}}}`, `{"0": "x", "a b": "bad"}`, `/s/a b: want a whole number, got the text "bad"`},
		{`{"properties": {"items": ` + integers + `"minProperties": 1}}}`, `{"items": {"x": "bad"}}`, `/s/items/x: want a whole number, got the text "bad"`},
		{`{"properties": {"$defs": {"properties": {"items": ` + lists + `}}}}`, `{"$defs": {"items": [1, "bad"]}}`, `/s/$defs/items/1: want a whole number, got the text "bad"`},
		{`{"properties": {"a": {"$ref": "#/$defs/properties"}}}`, `{"a": [1, "bad"]}`, `/s/a/1: want a whole number, got the text "bad"`},
		{`{"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {"type": "boolean"}, "allOf": [{"minItems": 2}]}`, `["x", 1, true, "bad"]`, `/s/3: want true or false, got the text "bad"`},
		{`{"prefixItems": [{"type": "string"}, {"type": "integer"}]}`, `["x", "bad"]`, `/s/1: want a whole number, got the text "bad"`},
		{`{"allOf": [{"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}}]}`, `{"a": "x", "z": "bad"}`, `/s/z: want a whole number, got the text "bad"`},
		{`{"propertyNames": {"enum": ["a", "b"]}}`, `{"a": 1, "c": 1}`, `/s/c: unknown word "c", want one of a, b (did you mean "a"?)`},
		{`{"properties": {"a": {"type": "string"}}, "unevaluatedProperties": {"type": "integer"}}`, `{"a": "x", "z": "bad"}`, `/s/z: want a whole number, got the text "bad"`},
	} {
		schema := `{"properties": {"s": ` + tt.schema + `}, "$defs": {"properties": ` + lists + `}}`
		if err := Check(json.RawMessage(schema), json.RawMessage(`{"s": `+tt.config+`}`)); err == nil || err.Error() != tt.want {
			t.Errorf("%s, %s:\n%v, want\n%s", tt.schema, tt.config, err, tt.want)
		}
	}
}
