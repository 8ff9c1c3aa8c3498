//go:build unix

package jobqueue_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store/internal/jobqueue"
)

// killRuns is how often a working program is killed.
func killRuns() int {
	if storetest.Long() {
		return 12
	}
	return 2
}

// TestKilledLosesNothing kills a program that adds jobs and works on them, again and
// again. Each job that was taken is kept, and done in the end; no job begins again after
// its result was stored. A job that must not be repeated begins once, and if it was
// killed then, is among the dead ones.
func TestKilledLosesNothing(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		q := open(t, dsn, toughOptions())
		path := filepath.Join(t.TempDir(), "begun")
		l := &ledger{dsn: dsn, path: path, attempts: map[string]int{}, ended: map[string]bool{}}
		random := rand.New(rand.NewPCG(3, 5))
		for range killRuns() {
			l.runAndKill(t, 1+random.IntN(120))
			l.check(t)
		}
		serveAttempts(t, q, noting(path))
		await(t, "no open jobs", func() bool { return counts(t, q) == jobs.Counts{Dead: len(l.dead(t, q))} })
		l.check(t)
		dead := l.dead(t, q)
		for _, name := range l.added {
			if !l.ended[name] && !dead[name] {
				t.Errorf("%s was taken and never done", name)
			}
		}
		for name := range dead {
			if !once(name) { // the others begin once, perhaps after attempts that were lost before that
				t.Errorf("%s may be repeated, and is dead after attempt %d", name, l.attempts[name])
			}
		}
		t.Logf("%d jobs were taken; %d begun, %d times; %d ended, %d dead", len(l.added), len(l.attempts), l.begun, len(l.ended), len(dead))
		if storetest.Long() && (l.begun == len(l.attempts) || len(dead) == 0) {
			t.Error("no job was interrupted: nothing was tested")
		}
	})
}

// ledger is what a test knows of jobs.
type ledger struct {
	dsn, path string
	// added are those that Add took, begun is how often one began, attempts the last
	// attempt at each.
	added    []string
	begun    int
	attempts map[string]int
	// ended are those whose result is stored; read is how much of the file was
	// read.
	ended map[string]bool
	read  int
}

// runAndKill runs a program until it has added some jobs.
func (l *ledger) runAndKill(t *testing.T, total int) {
	t.Helper()
	cmd := storetest.Program(t, "work", l.dsn, l.path)
	err := storetest.Follow(cmd, func(n int, line string) {
		if l.added = append(l.added, line); n == total {
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	})
	if err == nil || cmd.ProcessState.ExitCode() > 0 {
		t.Fatalf("the program ended by itself: %v", err)
	}
}

// check reads what has begun since the last check, and then what has ended.
func (l *ledger) check(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(l.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a program that was killed early has begun none
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text[l.read:])) {
		var name string
		var attempt int
		if _, err := fmt.Sscanf(line, "%s %d\n", &name, &attempt); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if l.ended[name] {
			t.Errorf("%s began again, as attempt %d, after its result was stored", name, attempt)
		}
		if attempt <= l.attempts[name] || l.attempts[name] > 0 && once(name) {
			t.Errorf("attempt %d at %s after attempt %d", attempt, name, l.attempts[name])
		}
		l.attempts[name] = attempt
		l.begun++
	}
	l.read = len(text)
	unended := notCompleted(t, l.dsn)
	for name := range l.attempts {
		if !unended[name] {
			l.ended[name] = true
		}
	}
}

// dead are the dead jobs, each of which must not have been repeated.
func (l *ledger) dead(t *testing.T, q *jobqueue.Queue) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for after := int64(0); ; {
		list, err := q.List(t.Context(), jobs.Filter{Dead: true, After: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range list {
			name := row.Job.IdempotencyKey
			if names[name] = true; !once(name) || row.Code != phases.CauseInterrupted || row.Attempts < 1 {
				t.Errorf("%s is dead: %+v", name, row)
			}
			after = row.ID
		}
		if len(list) == 0 {
			return names
		}
	}
}

// notCompleted are the names of jobs in the database that have not been done.
func notCompleted(t *testing.T, dsn string) map[string]bool {
	t.Helper()
	rows, err := storetest.Raw(t, dsn).QueryContext(t.Context(), "SELECT job FROM jobs WHERE state <> 'done'")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	open := map[string]bool{}
	for rows.Next() {
		var text []byte
		var job struct {
			Payload string `json:"payload"`
		}
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &job); err != nil {
			t.Fatal(err)
		}
		open[job.Payload] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return open
}
