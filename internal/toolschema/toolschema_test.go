package toolschema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/toolschema"
)

// TestNormal: a schema becomes one that all providers accept, the same again, and says what was removed; or an error says why not.
func TestNormal(t *testing.T) {
	t.Parallel()

	const a, ab = `{"type":"object","properties":{"a":{"type":"string"}}}`, `"properties":{"a":{"type":"string"},"b":{"type":"string"}}`
	const tooLarge = `the schemas that it refers to are too large or too deep together`
	for in, want := range map[string]string{
		``:     `{"properties":{},"type":"object"}`,
		`null`: `{"properties":{},"type":"object"}`,
		`{}`:   `{"properties":{},"type":"object"}`,
		`{"properties":{"a":{"items":{"type":"integer"},"maxItems":3,"type":"array"},"b":{"type":["number","null"]},"c":{"minimum":1.5,"type":"number"},"d":{"type":"boolean"}},"type":"object"}`: `{"properties":{"a":{"items":{"type":"integer"},"maxItems":3,"type":"array"},"b":{"type":["number","null"]},"c":{"minimum":1.5,"type":"number"},"d":{"type":"boolean"}},"type":"object"}`,
		`[]`:                            `it is not a JSON object`,
		`{"type":"string"}`:             `its type is string, and providers accept only object`,
		`{"type":["object","null"]}`:    `{"properties":{},"type":"object"}`,
		`{"type":null,"properties":[]}`: `{"properties":{},"type":"object"} - properties`,
		`{"type":"object","properties":true,"required":"a"}`:                                                                   `{"properties":{},"type":"object"} - properties, required`,
		`{"properties":{"a":true,"b":null,"c":false,"d":7},"additionalProperties":"no"}`:                                       `{"properties":{"a":{},"b":{},"c":{},"d":{}},"type":"object"} - additionalProperties, properties/c, properties/d`,
		`{"properties":{"a":{"type":"any","description":null,"enum":[]}}}`:                                                     `{"properties":{"a":{}},"type":"object"} - properties/a/enum, properties/a/type`,
		`{"properties":{"a":{}},"required":["a","a","b",7],"additionalProperties":false}`:                                      `{"additionalProperties":false,"properties":{"a":{},"b":{}},"required":["a","b"],"type":"object"}`,
		`{"properties":{"a":{"type":"array"},"b":{"type":"array","items":[{"type":"null"}]}}}`:                                 `{"properties":{"a":{"items":{},"type":"array"},"b":{"items":{"anyOf":[{"type":"null"}]},"type":"array"}},"type":"object"}`,
		`{"properties":{"a":{"minimum":0,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false}}}`:                      `{"properties":{"a":{"exclusiveMinimum":0,"maximum":9}},"type":"object"}`,
		`{"properties":{"a":{"enum":[1,null,12345678901234567890]}}}`:                                                          `{"properties":{"a":{"enum":[1,null,12345678901234567890]}},"type":"object"}`,
		`{"anyOf":[` + a + `,{"properties":{"b":{"type":"string"}},"required":["b"]}]}`:                                        `{` + ab + `,"type":"object"} - anyOf`,
		`{"type":"object","properties":{"a":{}},"oneOf":[{"required":["a"]}]}`:                                                 `{"properties":{"a":{}},"type":"object"} - oneOf`,
		`{"allOf":[` + a + `,{"properties":{"b":{"type":"string"}},"required":["b"]}]}`:                                        `{` + ab + `,"required":["b"],"type":"object"} - allOf`,
		`{"oneOf":[{"properties":{"k":{"const":1}}},{"properties":{"k":{"const":2}}},{"properties":{"k":{"const":3}}}]}`:       `{"properties":{"k":{"anyOf":[{"const":1},{"const":2},{"const":3}]}},"type":"object"} - oneOf`,
		`{"anyOf":[{"type":"string"}]}`:                                                                                        `its $ref leads nowhere, or none of the schemas that it chooses between is of the type object`,
		`{"anyOf":[{"$ref":"#"}]}`:                                                                                             `{"properties":{},"type":"object"} - anyOf`,
		`{"properties":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/x~1y"}]}},"$defs":{"x/y":{"items":{"$ref":"#"}}}}`:      `{"$defs":{"x/y":{"items":{"$ref":"#"}}},"properties":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/x~1y"}]}},"type":"object"}`,
		`{"$ref":"#/$defs/x","$defs":{"x":` + a + `}}`:                                                                         `{"$defs":{"x":` + `{"properties":{"a":{"type":"string"}},"type":"object"}` + `},"properties":{"a":{"type":"string"}},"type":"object"} - $ref`,
		`{"$ref":"#/$defs/x","$defs":{"x":{"$ref":"#/$defs/x"}}}`:                                                              `its $ref leads nowhere, or none of the schemas that it chooses between is of the type object`,
		`{"properties":{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"https://example.com"},"c":{"$ref":7}}}`:                          `{"properties":{"a":{},"b":{},"c":{}},"type":"object"} - properties/a/$ref, properties/b/$ref, properties/c/$ref`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"$schema":{"default":null}},"not":{},"enum":[{}]}`: `{"properties":{},"type":"object"} - enum, not, properties/$schema`,
		`{"properties":{"$top":{}},"required":["$top"]}`:                                                                       `it requires the argument "$top", and Anthropic accepts names of 1 to 64 letters, digits and _ . -`,
		`{"properties":{"a":{"allOf":[{"$ref":"#"}]}},"allOf":[{"$ref":"#/properties/a"}]}`:                                    tooLarge, // contains itself
		doubling(20): tooLarge,
		`{"properties":{"a":{"minLength":-1,"maxItems":-2,"minItems":1.5,"multipleOf":0,"type":["string","string"],"contentSchema":5,"$anchor":"1 a","$id":"x#y","pattern":"(?!a)(","$dynamicRef":"#no"}}}`:                      `{"properties":{"a":{}},"type":"object"} - properties/a/$anchor, properties/a/$dynamicRef, properties/a/$id, properties/a/contentSchema, properties/a/maxItems, properties/a/minItems, properties/a/minLength, properties/a/multipleOf, properties/a/pattern, properties/a/type`,
		`{"dependentRequired":{"a":["b","b"],"c":["d"]},"dependencies":{"a":["b","b"],"c":7},"patternProperties":{"*":{},"^x":{}}}`:                                                                                              `{"dependencies":{"c":{}},"dependentRequired":{"c":["d"]},"patternProperties":{"^x":{}},"properties":{},"type":"object"} - dependencies/a, dependencies/c, dependentRequired/a, patternProperties/*`,
		`{"properties":{"a":{"minLength":0,"maxItems":2.0,"multipleOf":0.5,"pattern":"^(?<!\\\\)(?=x)\\1\\/(?<n>y)[^\\]]{2000}$","$dynamicAnchor":"n","contentSchema":{}},"b":{"$dynamicRef":"#/properties/a","$id":"b.json"}}}`: `{"properties":{"a":{"$dynamicAnchor":"n","contentSchema":{},"maxItems":2.0,"minLength":0,"multipleOf":0.5,"pattern":"^(?\u003c!\\\\)(?=x)\\1\\/(?\u003cn\u003ey)[^\\]]{2000}$"},"b":{"$dynamicRef":"#/properties/a","$id":"b.json"}},"type":"object"}`,
	} {
		schema, removed, err := toolschema.Normal([]byte(in))
		got := string(schema)
		if len(removed) > 0 {
			got += " - " + strings.Join(removed, ", ")
		}
		if err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
		if again, removed, err2 := toolschema.Normal(schema); err == nil && (string(again) != string(schema) || len(removed) > 0 || err2 != nil) {
			t.Errorf("%s: the second time %s, %q, %v", in, again, removed, err2)
		}
	}
}

// doubling returns a schema whose argument x is one of four, each of four, and so on.
func doubling(depth int) string {
	parts := []string{`"a0":{},"b0":{}`}
	for n := range depth {
		for _, name := range []string{"a", "b"} {
			parts = append(parts, fmt.Sprintf(`"%[1]s%[2]d":{"properties":{"x":{"title":"%[1]s%[2]d"}},"allOf":[{"$ref":"#/$defs/a%[3]d"},{"$ref":"#/$defs/b%[3]d"}]}`, name, n+1, n))
		}
	}
	return fmt.Sprintf(`{"$ref":"#/$defs/a%d","$defs":{%s}}`, depth, strings.Join(parts, ","))
}

// FuzzNormal: whatever comes, what goes has the form that providers want.
func FuzzNormal(f *testing.F) {
	f.Add([]byte(`{"anyOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"},{"required":["b"]}]}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		schema, _, err := toolschema.Normal(raw)
		if err != nil {
			return
		}
		var s map[string]any
		err = json.Unmarshal(schema, &s)
		if _, ok := s["properties"].(map[string]any); err != nil || !ok || s["type"] != "object" || s["anyOf"] != nil || s["oneOf"] != nil || s["allOf"] != nil {
			t.Errorf("%s: %s, %v", raw, schema, err)
		}
		if again, _, err := toolschema.Normal(schema); err != nil || string(again) != string(schema) {
			t.Errorf("%s: %s, the second time %s, %v", raw, schema, again, err)
		}
	})
}
