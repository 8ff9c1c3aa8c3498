package main

import (
	"encoding/json"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// TestSchemasResolve makes every schema: a type that reflection cannot describe is found here, not by a user. Objects refuse
// unknown members, so that a mistyped name in a program is found.
func TestSchemasResolve(t *testing.T) {
	t.Parallel()

	seen := map[string]bool{}
	for _, entry := range commandSchemas() {
		if seen[entry.name] || entry.doc == "" {
			t.Errorf("schema %q is there twice, or says nothing of itself", entry.name)
		}
		seen[entry.name] = true
		t.Run(entry.name, func(t *testing.T) {
			t.Parallel()

			schema, err := resolvedSchema(entry.name)
			if err != nil {
				t.Fatal(err)
			}
			if entry.name != "rpc" && schema.Validate(map[string]any{"no_such_member": true}) == nil {
				t.Error("it takes a member that it does not know")
			}
		})
	}
}

// TestKindsSchema holds the union against the decoder: what one takes, the other
// takes.
func TestKindsSchema(t *testing.T) {
	t.Parallel()

	schema, err := resolvedSchema("kinds")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, value string
		valid       bool
	}{
		{"section", `{"kind":"prompt_section","section_id":"a","content":"b","frame":{"open":"<a>"}}`, true},
		{"policy with any value", `{"kind":"policy","key":"k","value":[1,{"a":null}]}`, true},
		{"decision", `{"kind":"decision","verdict":"ask"}`, true},
		{"noop", `{"kind":"noop"}`, true},
		{"render false", `{"kind":"prompt_context","content":"c","render":false}`, true},
		{"unknown kind", `{"kind":"prompt"}`, false},
		{"unknown member", `{"kind":"noop","text":"x"}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var value any
			if err := json.Unmarshal([]byte(tt.value), &value); err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value); (err == nil) != tt.valid {
				t.Errorf("schema: %v, want valid: %v", err, tt.valid)
			}
			var list phases.Contributions
			if err := json.Unmarshal([]byte("["+tt.value+"]"), &list); (err == nil) != tt.valid {
				t.Errorf("decoder: %v, want valid: %v", err, tt.valid)
			}
		})
	}
}
