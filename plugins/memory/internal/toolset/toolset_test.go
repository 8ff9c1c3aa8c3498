package toolset

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden: what stands first in what providers cache does not change unnoticed.
func TestGolden(t *testing.T) {
	t.Parallel()
	got, err := json.MarshalIndent(Definitions(func(string) bool { return true }), "", "  ")
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
