package toolset

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden: what stands first in what providers cache does not change unnoticed.
func TestGolden(t *testing.T) {
	t.Parallel()
	got, err := json.MarshalIndent(Definitions(everything), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "definitions.json")
	if *update {
		if err := os.WriteFile(path, append(got, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got)+"\n", string(want)); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		allowed Allowed
		want    string
	}{
		{"nothing", Allowed{}, ""},
		{"read", Allowed{Read: true}, Search + " " + List + " " + Get},
		{"remember", Allowed{Remember: true}, Remember},
		{"read and forget", Allowed{Read: true, Forget: true}, Search + " " + List + " " + Get + " " + Forget},
		{"everything", everything, strings.Join(Names(), " ")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var names []string
			for _, tool := range Definitions(tt.allowed) {
				names = append(names, tool.Name)
				if tool.Description == "" || len(tool.InputSchema) == 0 || !phases.ValidName(tool.Name) {
					t.Errorf("%+v", tool)
				}
				if !tt.allowed.Allows(tool.Name) {
					t.Errorf("%s is offered and not allowed", tool.Name)
				}
			}
			if got := strings.Join(names, " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if everything.Allows("other") {
		t.Error("a tool that is none is allowed")
	}
}

// everything allows all tools.
var everything = Allowed{Read: true, Remember: true, Forget: true}
