//go:build unix

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/store"
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

// TestServeKeepsWork: what a gateway has queued outlives it, whether it was asked to
// end or was killed. One that is asked to end waits for a bounded time; what a killed one had
// begun goes to the gateway that finds its leases expired.
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
				w.await(t, jobs.Counts{Running: 4, Waiting: jobsQueued - 4})
				w.checkStatus(t)
				code, said := w.served.end(t, signal)
				want := jobs.Counts{Running: 4, Waiting: jobsQueued - 4}
				if signal == syscall.SIGTERM {
					want = jobs.Counts{Waiting: jobsQueued}
					if code != exitOK {
						t.Errorf("exit code %d:\n%s", code, said)
					}
				}
				w.await(t, want)
				w.begin(t, "1ms")
				want = jobs.Counts{}
				if signal == syscall.SIGKILL {
					want.Running = 4
				}
				w.await(t, want)
				if want.Running > 0 && rounds(1, 0) > 0 { // leases are judged at the second look, after 15 seconds
					storetest.Exec(t, w.dsn, "UPDATE jobs SET renewed = 1 WHERE state = 'running'")
					w.await(t, jobs.Counts{})
				}
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
	put(t, file, strings.Replace(observing, "DELAY", delay, 1))
	w.served = serveIn(t, w.dir, "--store", w.dsn, "--config", file)
}

// await waits until the store has so many jobs, but for those that wait a moment for
// their next attempt, which count as waiting.
func (w *worked) await(t *testing.T, want jobs.Counts) {
	t.Helper()
	s := must(store.Open(t.Context(), w.dsn, store.Options{ReadOnly: true}))(t)
	defer s.Close() //nolint:errcheck // only read
	records := s.Jobs()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(longest); ; <-tick.C {
		got := must(records.Counts(t.Context()))(t)
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
