package lazy

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
)

// TestSchemas validates what the functions return against the schemas of it.
func TestSchemas(t *testing.T) {
	t.Parallel()
	tree, path := deep(12)
	base := build(t, tree)
	s := begin(base, "d00", chain.Default())
	touched := s.Touch(chain.OS{}, chain.Default(), []string{filepath.Join(base, path), "/outside"})
	data, err := Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	state := json.RawMessage(data)
	put(t, base, "AGENTS.md", "new\n")
	put(t, base, "d00/AGENTS.md", "other\n")
	resumed := s.Clone()
	now := chain.Resolve(chain.OS{}, filepath.Join(base, "d00"), chain.Default())
	tests := []struct {
		name   string
		schema func() (*jsonschema.Schema, error)
		value  any
		// bad is a field and a value that it cannot have.
		bad     string
		instead any
	}{
		{"state", StateSchema, state, "schema", 2},
		{"touched", TouchedSchema, touched, "pending", "x"},
		{"touched without files", TouchedSchema, s.Touch(chain.OS{}, chain.Default(), nil), "files", "x"},
		{"resumed", ResumedSchema, resumed.Resume(now), "changes", []any{map[string]any{"what": "weather"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			schema, err := tt.schema()
			if err != nil {
				t.Fatal(err)
			}
			rules, err := schema.Resolve(nil)
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(tt.value)
			if err != nil {
				t.Fatal(err)
			}
			var value map[string]any
			if err := json.Unmarshal(data, &value); err != nil {
				t.Fatal(err)
			}
			if err := rules.Validate(value); err != nil {
				t.Errorf("%v in\n%s", err, data)
			}
			value[tt.bad] = tt.instead
			if rules.Validate(value) == nil {
				t.Errorf("%s may be %v", tt.bad, tt.instead)
			}
		})
	}
}
