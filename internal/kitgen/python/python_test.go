package python

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the types module of sdks/python")

// TestFresh wants the committed types module to say what the contract says now.
func TestFresh(t *testing.T) {
	t.Parallel()

	root := filepath.Join("..", "..", "..")
	proto, err := os.ReadFile(filepath.Join(root, "proto", "grapnel", "plugin", "v1", "plugin.proto"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := Module(string(proto))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "sdks", "python", "src", "grapnel", "_types.py")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), want); diff != "" {
		t.Errorf("%s is stale, run go test ./internal/kitgen/python -update (-have +want):\n%s", path, diff)
	}
}

func TestComments(t *testing.T) {
	t.Parallel()

	const proto = "// A is one.\n// It is short.\nmessage A {\n  // The b.\n  string b = 1;\n  int64 c = 2;\n  oneof d {\n    // The e.\n    E e = 3;\n  }\n}\n"
	want := map[string]string{"A": "A is one. It is short.", "A.b": "The b.", "A.e": "The e."}
	if diff := cmp.Diff(comments(proto), want); diff != "" {
		t.Errorf("comments (-got +want):\n%s", diff)
	}
}

func TestClosedWords(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, doc string
		want      []string
	}{
		{"list", `"stable" or "dynamic" (the default).`, []string{`""`, `"stable"`, `"dynamic"`}},
		{"open list", `"chat", "agent", or a word of the host's.`, nil},
		{"sentence", `How much is compiled: "full" or "none".`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(closedWords(tt.doc), tt.want); diff != "" {
				t.Errorf("words (-got +want):\n%s", diff)
			}
		})
	}
}
