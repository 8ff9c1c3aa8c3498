package main

import (
	"testing"
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

			schema := must(resolvedSchema(entry.name))(t)
			if entry.name != "rpc" && schema.Validate(map[string]any{"no_such_member": true}) == nil {
				t.Error("it takes a member that it does not know")
			}
		})
	}
}
