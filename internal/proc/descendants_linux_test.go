package proc

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseStat(t *testing.T) {
	t.Parallel()

	rest := " 7 " + strings.Repeat("0 ", 15) + "1 0 4242 0 99 0"
	good := func(zombie bool) process {
		return process{id: procID{5, 4242}, parent: 7, zombie: zombie, threads: 1, pages: 99}
	}
	headless := good(false)
	headless.threads = 2
	tests := []struct {
		name, line string
		want       process
		ok         bool
	}{
		{"plain", "5 (sh) S" + rest, good(false), true},
		{"name with parentheses", "5 (a) Z 1 (b)) R" + rest, good(false), true},
		{"zombie", "5 (sh) Z" + rest, good(true), true},
		{"zombie with another thread", "5 (sh) Z" + strings.Replace(rest, " 1 0", " 2 0", 1), headless, true},
		{"short", "5 (sh) S 7 0", process{}, false},
		{"no name", "5 S 7", process{}, false},
		{"parent is no number", "5 (sh) S x" + strings.Repeat(" 0", 30), process{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, ok := parseStat(5, []byte(tt.line))
			if ok != tt.ok || got != tt.want {
				t.Errorf("parseStat = %+v, %v, want %+v, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestClosureSparesThisProcess(t *testing.T) {
	t.Parallel()

	self := procID{os.Getpid(), 1}
	table := []process{{id: procID{1 << 23, 1}}, {id: self, parent: 1 << 23}, {id: procID{1<<23 + 1, 1}, parent: os.Getpid()}}
	got := slices.Collect(maps.Keys((&family{}).closure(table, map[procID]bool{{1 << 23, 1}: true})))
	if diff := cmp.Diff(got, []procID{{1 << 23, 1}}, cmp.AllowUnexported(procID{})); diff != "" {
		t.Errorf("members (-got +want):\n%s", diff)
	}
}

func TestKillProcessComparesTheStart(t *testing.T) {
	t.Parallel()

	// Were only the number looked at, this test would not survive.
	killProcess(procID{os.Getpid(), 1})
}
