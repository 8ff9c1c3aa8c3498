//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store/storetest"
)

// observing is a plugin that looks at the end of each turn for a while.
const observing = `version: 1
plugins:
  - name: house
    builtin: scripted
    config: {hooks: [{id: look, phase: turn.post_turn, timeout: 60s, delay: DELAY}]}
`

// jobsQueued is more than are worked on at once.
const jobsQueued = 7

// TestServeKeepsWork: what a gateway has queued outlives it, whether it was told to
// end or was killed. One that is told to end waits for a bounded time; who is killed
// leaves what he had begun to whoever finds his leases run out.
func TestServeKeepsWork(t *testing.T) {
	t.Parallel()

	for name, dsn := range serveStores() {
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			t.Run(name+"/"+signal.String(), func(t *testing.T) {
				t.Parallel()

				w := &worked{dir: t.TempDir(), dsn: dsn(t)}
				w.begin(t, "60s")
				w.served.errs.until(t, "state=ready")
				c := dial(t, w.served.target(), "")
				for range jobsQueued {
					c.ask(t, "phase/dispatch", object{"phase": "turn.post_turn", "input": object{"status": "succeeded"}})
				}
				w.await(t, runtime.QueueCounts{Running: 4, Waiting: jobsQueued - 4})
				w.checkStatus(t)
				told := time.Now()
				code, said := w.served.end(t, signal)
				want := runtime.QueueCounts{Running: 4, Waiting: jobsQueued - 4}
				if signal == syscall.SIGTERM {
					want = runtime.QueueCounts{Waiting: jobsQueued}
					if took := time.Since(told); code != exitOK || took > 10*time.Second {
						t.Errorf("exit code %d after %s:\n%s", code, took, said)
					}
				}
				w.await(t, want)
				w.begin(t, "1ms")
				if signal == syscall.SIGKILL {
					w.await(t, runtime.QueueCounts{Running: 4})
					storetest.Exec(t, w.dsn, "UPDATE "+w.table()+" SET attempted_at = '2001-01-01 00:00:00' WHERE state = 'running'")
				}
				w.await(t, runtime.QueueCounts{})
				if code, said := w.served.end(t, syscall.SIGTERM); code != exitOK {
					t.Errorf("exit code %d:\n%s", code, said)
				}
			})
		}
	}
}

// worked is a gateway with background work.
type worked struct {
	dir, dsn string
	served   *served
}

// begin starts the gateway, whose plugin takes so long.
func (w *worked) begin(t *testing.T, delay string) {
	t.Helper()
	file := filepath.Join(w.dir, "observing.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(observing, "DELAY", delay, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.served = serveIn(t, w.dir, "--store", w.dsn, "--config", file)
}

// table is that of the jobs.
func (w *worked) table() string {
	if strings.HasPrefix(w.dsn, sqliteScheme) {
		return "river_job"
	}
	return "grapnel_queue.river_job"
}

// await waits until the store has so many jobs, but for those that wait a moment for
// their next attempt, which count as waiting.
func (w *worked) await(t *testing.T, want runtime.QueueCounts) {
	t.Helper()
	for deadline := time.Now().Add(longest); ; {
		code, out, errs := grapnelIn(t, w.dir, "jobs", "list", "--store", w.dsn, "--json")
		var list jobsList
		if err := json.Unmarshal([]byte(out), &list); err != nil || code != exitOK {
			t.Fatalf("exit code %d, %v: %s", code, err, errs)
		}
		got := list.Counts
		got.Waiting, got.Scheduled, got.OldestSeconds = got.Waiting+got.Scheduled, 0, 0
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("jobs: %+v, want %+v", got, want)
		}
	}
}

// checkStatus: the gateway says where its work is, and how much.
func (w *worked) checkStatus(t *testing.T) {
	t.Helper()
	code, out, errs := grapnelIn(t, w.dir, "status", "--url", w.served.target(), "--json")
	var status statusResult
	if err := json.Unmarshal([]byte(out), &status); err != nil || code != exitOK {
		t.Fatalf("exit code %d, %v: %s", code, err, errs)
	}
	if q := status.Queue; !q.Durable || q.Running != 4 || q.Waiting != jobsQueued-4 || q.OldestSeconds <= 0 || q.Error != "" {
		t.Errorf("status: %+v", q)
	}
	_, out, _ = grapnelIn(t, w.dir, "status", "--url", w.served.target())
	if !strings.Contains(out, "3 waiting (the oldest for ") || !strings.Contains(out, "4 running") {
		t.Errorf("status:\n%s", out)
	}
}
