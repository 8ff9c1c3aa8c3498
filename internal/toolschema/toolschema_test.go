package toolschema_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/toolschema"
)

// TestNormal: a schema becomes one that all providers accept, the same again, and says what was removed; or an error says why not.
func TestNormal(t *testing.T) {
	t.Parallel()

	data, err := os.ReadFile("testdata/normal.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{``: `{"properties":{},"type":"object"}`, doubling(20): `the schemas that it refers to are too large or too deep together`}
	for _, text := range strings.Split(strings.TrimSpace(string(data)), "\n\n")[1:] {
		in, want, _ := strings.Cut(text, "\n")
		cases[in] = want
	}
	for in, want := range cases {
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
