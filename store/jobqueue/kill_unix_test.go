//go:build unix

package jobqueue_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/runtime/queuetest"
	"github.com/grapnelhq/grapnel/store/jobqueue"
	"github.com/grapnelhq/grapnel/store/storetest"
)

// killRuns is how often a working program is killed.
const killRuns = 6

// TestKilledLosesNothing kills a program that adds jobs and works on them, again and
// again. What it was told is kept, is done in the end, and no job begins again after
// its verdict was stored.
func TestKilledLosesNothing(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		q := open(t, dsn, toughOptions())
		path := filepath.Join(t.TempDir(), "begun")
		l := &ledger{dsn: dsn, path: path, attempts: map[string]int{}, ended: map[string]bool{}}
		random := rand.New(rand.NewPCG(3, 5))
		for range killRuns {
			l.runAndKill(t, 1+random.IntN(120))
			l.check(t)
		}
		serve(t, q, noting(path))
		queuetest.Await(t, "no open jobs", func() bool { return counts(t, q) == jobqueue.Counts{} })
		l.check(t)
		for _, name := range l.added {
			if !l.ended[name] {
				t.Errorf("%s was taken and never done", name)
			}
		}
		t.Logf("%d jobs were taken; %d begun, %d times; %d ended", len(l.added), len(l.attempts), l.begun, len(l.ended))
		if l.begun == len(l.attempts) {
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
	// ended are those of which a verdict is stored; read is how much of the file was
	// read.
	ended map[string]bool
	read  int
}

// runAndKill runs a program until it has added some jobs.
func (l *ledger) runAndKill(t *testing.T, jobs int) {
	t.Helper()
	cmd := program(t, "work", l.dsn, l.path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for n := 0; ; n++ {
		line, err := lines.ReadString('\n') // what is cut off was not told
		if err != nil {
			break
		}
		l.added = append(l.added, strings.TrimSpace(line))
		if n == jobs {
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() > 0 {
		t.Fatalf("the program ended by itself: %v", err)
	}
}

// check reads what has begun since the last check, and then what has ended.
func (l *ledger) check(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text[l.read:])) {
		var name string
		var attempt int
		if _, err := fmt.Sscanf(line, "%s %d\n", &name, &attempt); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if l.ended[name] {
			t.Errorf("%s began again, as attempt %d, after its verdict was stored", name, attempt)
		}
		if attempt <= l.attempts[name] {
			t.Errorf("attempt %d at %s after attempt %d", attempt, name, l.attempts[name])
		}
		l.attempts[name] = attempt
		l.begun++
	}
	l.read = len(text)
	open := openJobs(t, l.dsn)
	for name := range l.attempts {
		if !open[name] {
			l.ended[name] = true
		}
	}
}

// openJobs are the names of jobs in the database that have not ended.
func openJobs(t *testing.T, dsn string) map[string]bool {
	t.Helper()
	rows, err := storetest.Raw(t, dsn).QueryContext(t.Context(), "SELECT args, state FROM "+jobTable(dsn)+" WHERE state <> 'completed'")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	open := map[string]bool{}
	for rows.Next() {
		var state string
		var text []byte
		var args struct {
			Job string `json:"job"`
		}
		var job struct {
			Payload string `json:"payload"`
		}
		if err := rows.Scan(&text, &state); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &args); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(args.Job), &job); err != nil {
			t.Fatal(err)
		}
		if state == "discarded" {
			t.Errorf("%s was given up", job.Payload)
		}
		open[job.Payload] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return open
}
