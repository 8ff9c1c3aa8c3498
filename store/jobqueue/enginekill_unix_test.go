//go:build unix

package jobqueue_test

import (
	"bufio"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/internal/queuetest"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/storetest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store/jobqueue"
)

// TestKilledEngines kills one of two hosts that share a database, again and again,
// while both take turns whose plugin observes and asks for jobs. Nothing that a turn
// has queued is lost: it is done, or among the dead jobs with the cause
// "interrupted". Only what says that it may be repeated is.
func TestKilledEngines(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		open(t, dsn, toughOptions()) // the first makes the tables
		path := filepath.Join(t.TempDir(), "done")
		random := rand.New(rand.NewPCG(7, 9))
		var turns []string
		standing := startHost(t, dsn, path)
		for range killRuns() {
			next := startHost(t, dsn, path)
			turns = append(turns, standing.killAfter(t, 1+random.IntN(12))...)
			standing = next
		}
		turns = append(turns, standing.killAfter(t, 1)...)
		db := storetest.Open(t, dsn, sqldb.Options{})
		q := on(t, db, toughOptions())
		eng, err := newToughEngine(t.Context(), q, path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = eng.Close(context.WithoutCancel(t.Context())) })
		queuetest.Await(t, "no open jobs", func() bool {
			c := counts(t, q)
			return c.Waiting+c.Running+c.Scheduled == 0
		})
		checkTurns(t, turns, journalOf(t, path), deadOf(t, q))
	})
}

// checkTurns holds what was done against what was asked for.
func checkTurns(t *testing.T, turns []string, runs, dead map[string]int) {
	t.Helper()
	repeated, interrupted := 0, 0
	for _, turn := range turns {
		for _, what := range []string{"idempotent", "keyed", "once", "plain"} {
			name := what + " " + turn
			done, gone := runs[name], dead[name]
			switch {
			case what == "idempotent" || what == "keyed":
				if done == 0 || gone > 0 {
					t.Errorf("%s: done %d times, dead %d times", name, done, gone)
				}
			case done > 1 || done+gone == 0:
				t.Errorf("%s must not be repeated: done %d times, dead %d times", name, done, gone)
			}
			if interrupted += gone; done > 1 {
				repeated++
			}
		}
	}
	for name, n := range runs { // also of turns that were not printed
		if n > 1 && (strings.HasPrefix(name, "once") || strings.HasPrefix(name, "plain")) {
			t.Errorf("%s was done %d times", name, n)
		}
	}
	t.Logf("%d turns, %d pieces of work repeated, %d interrupted", len(turns), repeated, interrupted)
	if storetest.Long() && (repeated == 0 || interrupted == 0) {
		t.Error("nothing was interrupted: nothing was tested")
	}
}

// deadOf are the dead jobs, by the names of the work.
func deadOf(t *testing.T, q *jobqueue.Queue) map[string]int {
	t.Helper()
	dead := map[string]int{}
	for after := int64(0); ; {
		list, err := q.List(t.Context(), jobqueue.Filter{Dead: true, After: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range list {
			after = row.ID
			name := row.Job.Kind
			if name == "" {
				name = strings.TrimPrefix(row.Job.Subscription, "p.")
			}
			if dead[name+" "+row.Job.Context.TurnID]++; row.Code != phases.CauseInterrupted {
				t.Errorf("%s of %s is dead: %s", name, row.Job.Context.TurnID, row.Error)
			}
		}
		if len(list) == 0 {
			return dead
		}
	}
}

// journalOf is how often each line stands in a file.
func journalOf(t *testing.T, path string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for line := range strings.Lines(string(text)) {
		lines[strings.TrimSpace(line)]++
	}
	return lines
}

// host is a process with an engine that prints its turns.
type host struct {
	cmd   *exec.Cmd
	lines *bufio.Reader
}

func startHost(t *testing.T, dsn, path string) *host {
	t.Helper()
	cmd := storetest.Program(t, "host", dsn, path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &host{cmd: cmd, lines: bufio.NewReader(out)}
}

// killAfter kills the host when it has taken so many more turns, and returns all turns
// that it printed.
func (h *host) killAfter(t *testing.T, turns int) []string {
	t.Helper()
	var printed []string
	for n := 1; ; n++ {
		line, err := h.lines.ReadString('\n') // a cut line does not count
		if err != nil {
			break
		}
		printed = append(printed, strings.TrimSpace(line))
		if n == turns {
			if err := h.cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
	if err := h.cmd.Wait(); err == nil || h.cmd.ProcessState.ExitCode() > 0 {
		t.Fatalf("the host ended by itself: %v", err)
	}
	return printed
}
