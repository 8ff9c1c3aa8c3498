package chain

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what is got into testdata/*.txtar")

func TestGolden(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, name, archive, readFixture(t, archive).run(t))
		})
	}
}

// compareGolden compares, or writes.
func compareGolden(t *testing.T, name string, archive *txtar.Archive, got map[string]string) {
	t.Helper()
	found := 0
	for i, f := range archive.Files {
		text, ok := got[f.Name]
		if !ok {
			if strings.HasPrefix(f.Name, "want/") {
				t.Errorf("nothing gives %s", f.Name)
			}
			continue
		}
		found++
		if diff := cmp.Diff(text, string(f.Data)); diff != "" && !*update {
			t.Errorf("%s (-got +want)\n%s", f.Name, diff)
		}
		archive.Files[i].Data = []byte(text)
	}
	if found < 2 {
		t.Fatal("the fixture wants less than two things")
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
