package schema

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCurrent: both databases have migrations of the same numbers, without a gap.
func TestCurrent(t *testing.T) {
	t.Parallel()

	s := Current()
	numbers := map[string][]string{}
	for _, folder := range []string{"common", "sqlite", "postgres"} {
		entries, err := fs.ReadDir(s.Migrations, folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			number, _, ok := strings.Cut(e.Name(), "_")
			if !ok || !strings.HasSuffix(e.Name(), ".sql") {
				t.Errorf("%s is no NUMBER_NAME.sql", e.Name())
			}
			numbers[folder] = append(numbers[folder], number)
		}
	}
	if diff := cmp.Diff(numbers["sqlite"], numbers["postgres"]); diff != "" {
		t.Errorf("the databases differ (-sqlite +postgres):\n%s", diff)
	}
	all := slices.Sorted(slices.Values(append(numbers["common"], numbers["sqlite"]...)))
	if len(all) < 4 {
		t.Errorf("there are %d migrations", len(all))
	}
	for n, number := range all {
		if want := fmt.Sprintf("%05d", n+1); number != want {
			t.Errorf("where migration %s should be is %s", want, number)
		}
	}
}
