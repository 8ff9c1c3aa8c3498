package skillset

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/grapnelhq/grapnel/sdk"
)

var update = flag.Bool("update", false, "write what is got into testdata/*.txtar")

// report is a set as fixtures show it.
func report(s *Set, base string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "root %s\n", s.Root)
	for i := range s.Skills {
		sk := &s.Skills[i]
		fmt.Fprintf(&b, "%s: %q from %s, %d characters\n", sk.Slug, sk.Description, sk.Label, len([]rune(sk.Body)))
		for _, g := range sk.Globs {
			fmt.Fprintf(&b, "  paths %s\n", g)
		}
	}
	for _, d := range s.Diagnostics {
		fmt.Fprintf(&b, "%s %s %s: %s\n", d.Severity, d.Code, sdk.PlainName(d.Path), d.Detail)
	}
	return strings.ReplaceAll(b.String(), base, "BASE")
}

// TestGolden resolves the trees of the fixtures. The header of a fixture says
// what it pins, and then, one a line, "dir: FOLDER", "directory: FOLDER" (several
// times), "home: FOLDER", in which BASE stands for the tree's directory.
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
			base, o, dir, want := t.TempDir(), Options{Markers: []string{".git"}}, "", -1
			if base, err = filepath.EvalSymlinks(base); err != nil {
				t.Fatal(err)
			}
			for i, f := range archive.Files {
				if f.Name == "want" {
					want = i
				} else {
					write(t, base, f.Name, string(f.Data))
				}
			}
			for line := range strings.Lines(string(archive.Comment)) {
				key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
				value = strings.ReplaceAll(value, "BASE", base)
				switch key {
				case "dir":
					dir = value
				case "directory":
					o.Directories = append(o.Directories, value)
				case "home":
					o.Home = value
				}
			}
			got := report(Resolve(dir, o), base)
			if diff := cmp.Diff(got, string(archive.Files[want].Data)); diff != "" && !*update {
				t.Errorf("(-got +want)\n%s", diff)
			}
			if archive.Files[want].Data = []byte(got); *update {
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
