//go:build unix

package store_test

import (
	"bufio"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/store/storetest"
)

// killRuns is how often a writer is killed.
const killRuns = 12

// TestKilledWriterLosesNothing kills a writer with no warning, again and again.
// What it was told is kept, is kept, and the log is whole.
func TestKilledWriterLosesNothing(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		newDSN func(t *testing.T) string
	}{
		{"sqlite", storetest.SQLite},
		{"postgres", func(t *testing.T) string { return newPostgres(t) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			dsn := tt.newDSN(t)
			random := rand.New(rand.NewPCG(3, 5))
			acknowledged := map[string]string{}
			for run := range killRuns {
				killWriter(t, dsn, run, 1+random.IntN(40), acknowledged)
				s, err := store.Open(t.Context(), dsn, store.Options{})
				if err != nil {
					t.Fatalf("run %d: %v", run, err)
				}
				checkAcknowledged(t, s, acknowledged)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// killWriter runs a writer until it has acknowledged so many manifests, kills it,
// and notes all that it acknowledged until it was dead.
func killWriter(t *testing.T, dsn string, run, after int, acknowledged map[string]string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), writerDSN+"="+dsn, writerRun+"="+strconv.Itoa(run))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 1; lines.Scan(); n++ {
		if id, hash, ok := strings.Cut(lines.Text(), " "); ok {
			acknowledged[id] = hash
		}
		if n == after {
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the writer ended by itself")
	}
}

func checkAcknowledged(t *testing.T, s *store.Store, acknowledged map[string]string) {
	t.Helper()
	list, err := s.List(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]string{}
	for _, x := range list {
		kept[x.ManifestID] = x.Hash
	}
	for id, hash := range acknowledged {
		if kept[id] != hash {
			t.Errorf("manifest %s was acknowledged with %s and is kept as %q", id, hash, kept[id])
		}
	}
	got, err := s.Verify(t.Context(), store.Filter{}, manifest.VerifyOptions{})
	if err != nil || !got.OK || got.Checked < len(acknowledged) {
		t.Errorf("verdict %+v, %v", got, err)
	}
}

// TestPostgresCrash ends the server under a writer. It is not shared with other
// tests.
func TestPostgresCrash(t *testing.T) {
	t.Parallel()

	postgres(t) // skips where there is none
	pg, err := storetest.StartPostgres(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := pg.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	dsn, err := pg.NewDSN(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), dsn, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	acknowledged := map[string]string{}
	n := 0
	for range 3 {
		for range 5 {
			m := storetest.Sample("w", "t", n)
			if err := s.Append(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			acknowledged[m.ManifestID] = m.Hash
			n++
		}
		if err := pg.Crash(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Append(t.Context(), storetest.Sample("w", "t", n)); !store.HasCode(err, store.CodeUnreachable) {
			t.Errorf("without a server: %v", err)
		}
		if err := pg.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkAcknowledged(t, s, acknowledged)
	}
}
