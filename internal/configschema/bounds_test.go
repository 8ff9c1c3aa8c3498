package configschema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/phases"
)

// doubling is a schema of n steps, each of which applies the next one twice.
func doubling(n int) string {
	var defs []string
	for i := range n {
		defs = append(defs, fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	return fmt.Sprintf(`{"$ref":"#/$defs/d0","$defs":{%s,"d%d":{"type":"object"}}}`, strings.Join(defs, ","), n)
}

// TestCheckSchemaWork: what the validator would not come back from is refused, with
// its place; what applies to parts of a value may refer to itself.
func TestCheckSchemaWork(t *testing.T) {
	t.Parallel()

	const tree = `{"type":"object","properties":{"next":{"$ref":"#"},"list":{"items":{"$ref":"#/$defs/a"}}},"$defs":{"a":{"anyOf":[{"$ref":"#"},true]}}}`
	tests := []struct{ name, schema, want string }{
		{"a tree", tree, ""},
		{"an anchor", `{"$ref":"#a","$defs":{"x":{"$anchor":"a","type":"object"}}}`, ""},
		{"a pointer with escapes", `{"$ref":"#/$defs/a~1b%20c","$defs":{"a/b c":{"type":"object"}}}`, ""},
		{"a few steps", doubling(10), ""},
		{"names that are no keywords", `{"properties":{"$dynamicRef":{"type":"string"},"$id":{"type":"string"}}}`, ""},
		{"itself", `{"$ref":"#"}`, "never end"},
		{"itself, by an anchor", `{"$anchor":"a","$ref":"#a"}`, "never end"},
		{"itself, among alternatives", `{"anyOf":[{"type":"object"},{"not":{"$ref":"#"}}]}`, "never end"},
		{"each other", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"oneOf":[{"$ref":"#/$defs/a"}]}}}`, "never end"},
		{"below a member", `{"properties":{"a":{"$ref":"#/properties/a"}}}`, "/properties/a/: this schema refers to itself"},
		{"many steps", doubling(40), "more than 4096 schemas"},
		{"a dynamic reference", `{"$dynamicRef":"#a"}`, "do without"},
		{"another name for a part", `{"$defs":{"a":{"$id":"https://example.org/a","$ref":"a"}}}`, "do without"},
		{"a file", `{"$ref":"other.json"}`, "parts of itself"},
		{"long", `{"title":"` + strings.Repeat("x", maxSchemaBytes) + `"}`, "at most 262144"},
		{"many empty ones", `{"anyOf":[` + strings.Repeat("{},", 20_000) + `{}]}`, "more than 16384 values"},
		{"a pattern", `{"properties":{"a":{"pattern":"^[a-z]{1,63}(\\.[a-z]{1,63}){0,10}$"}}}`, ""},
		{"a long pattern", `{"pattern":"(` + strings.Repeat("[a-z0-9]", 2000) + `){1000}"}`, "steps"},
		{"patterns of names", `{"patternProperties":{"\\pL{1000}":{},"\\pN{1000}":{}}}`, "steps"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			err := Check(json.RawMessage(tt.schema), json.RawMessage(`{}`))
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(phases.Whole(err), tt.want)):
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

// FuzzCheckSchemaWork: the validator comes back from every schema that is let
// through, for a value that uses what schemas talk about.
func FuzzCheckSchemaWork(f *testing.F) {
	for _, seed := range []string{
		`{"$ref":"#"}`, doubling(3), `{"properties":{"a":{"$ref":"#"}},"$defs":{"b":{"$anchor":"c","allOf":[{"$ref":"#c"}]}}}`,
		`{"anyOf":[{"$ref":"#/$defs/x"}],"$defs":{"x":{"items":{"$ref":"#"}}}}`, `{"$schema":"http://json-schema.org/draft-07/schema#","$id":"#a","$ref":"#a"}`,
		`{"dependencies":{"a":{"$ref":"#"}}}`, `{"definitions":{"a":{"$ref":"#/definitions/a"}}}`,
	} {
		f.Add(seed)
	}
	value := map[string]any{"a": []any{map[string]any{"a": "b"}, 1.0, nil}, "b": "c"}
	f.Fuzz(func(t *testing.T, text string) {
		var s jsonschema.Schema
		if len(text) > 1<<12 || json.Unmarshal([]byte(text), &s) != nil || checkSchemaWork(&s) != nil {
			return
		}
		resolved, err := s.Resolve(nil)
		if err != nil {
			return
		}
		_ = resolved.Validate(value)
	})
}
