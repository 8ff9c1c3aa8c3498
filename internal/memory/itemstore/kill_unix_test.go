//go:build unix

package itemstore_test

import (
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// killRuns is how often a writing program is killed.
func killRuns() int { return rounds(3, 20) }

// TestKilledLosesNothing kills a program that writes, uses and forgets, again and
// again. What it was told is kept, is kept; what it was told is gone, is gone; index
// and statistics are what they should be, and the file is whole.
func TestKilledLosesNothing(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		random := rand.New(rand.NewPCG(7, 11))
		told := &ledger{kept: map[string]string{}, gone: map[string]bool{}}
		for range killRuns() {
			cmd := storetest.Program(t, "write", dsn, "")
			after := 1 + random.IntN(120)
			err := storetest.Follow(cmd, func(n int, line string) {
				told.note(line)
				if n == after {
					if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
						t.Error(err)
					}
				}
			})
			if err == nil {
				t.Fatal("the program ended by itself")
			}
			told.check(t, dsn)
		}
		if len(told.kept) < 3*killRuns() {
			t.Errorf("%d items: this test shows little", len(told.kept))
		}
	})
}

// ledger is what programs were told.
type ledger struct {
	// kept are hashes by ids.
	kept map[string]string
	gone map[string]bool
}

func (l *ledger) note(line string) {
	if id, forgotten := strings.CutPrefix(line, "-"); forgotten {
		l.gone[id] = true
		return
	}
	id, hash, _ := strings.Cut(strings.TrimPrefix(line, "+"), " ")
	l.kept[id] = hash
}

// check compares what was told with what is there. What a program had begun to forget
// when it was killed may be gone untold, so it looks for what is there of that, too:
// such items are few, and their tombstones say that they were forgotten.
func (l *ledger) check(t *testing.T, dsn string) {
	t.Helper()
	s, err := itemstore.Open(t.Context(), dsn, itemstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	here := map[string]string{}
	for _, i := range list(t, s, everything("w")) {
		here[i.ID] = i.Hash
	}
	var graves int
	if err := storetest.Raw(t, dsn).QueryRowContext(t.Context(), "SELECT count(*) FROM memory_tombstones").Scan(&graves); err != nil {
		t.Fatal(err)
	}
	missing := 0
	for id, hash := range l.kept {
		switch {
		case l.gone[id] && here[id] != "":
			t.Errorf("%s was forgotten, and is there", id)
		case !l.gone[id] && here[id] == "":
			missing++
		case !l.gone[id] && here[id] != hash:
			t.Errorf("%s has another text", id)
		}
	}
	if missing > graves-len(l.gone) {
		t.Errorf("%d of %d items are missing, and only %d were forgotten untold", missing, len(l.kept), graves-len(l.gone))
	}
	checkIndex(t, dsn)
}
