//go:build unix

package store_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/store"
)

// TestKilledWriterLosesNothing kills a writer with no warning, again and again.
// What it was told is kept, is kept, and the log is whole. That holds without
// waiting for the disk too: what a program wrote outlives it.
func TestKilledWriterLosesNothing(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, program string
		newDSN        func(tb testing.TB) string
	}{
		{"sqlite full", "write full", storetest.SQLite},
		{"sqlite normal", "write normal", storetest.SQLite},
		{"postgres", "write full", shared.NewDSN},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			dsn := tt.newDSN(t)
			random := rand.New(rand.NewPCG(3, 5))
			acknowledged := map[string]string{}
			runs := 2
			if storetest.Long() {
				runs = 40
			}
			for run := range runs {
				killWriter(t, tt.program, dsn, run, 1+random.IntN(40), acknowledged)
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
func killWriter(t *testing.T, name, dsn string, run, after int, acknowledged map[string]string) {
	t.Helper()
	cmd := storetest.Program(t, name, dsn, fmt.Sprintf("%d:%d", run, 1_000_000))
	acknowledgedNow := 0
	err := storetest.Follow(cmd, func(n int, line string) {
		noteAcknowledged(acknowledged, line)
		if acknowledgedNow = n; n == after {
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	})
	if err == nil || acknowledgedNow < after {
		t.Fatalf("the writer ended by itself after %d manifests: %v", acknowledgedNow, err)
	}
}

// TestPostgresCrash ends the server under a writer. It is not shared with other
// tests.
func TestPostgresCrash(t *testing.T) {
	t.Parallel()

	pg, dsn := shared.Own(t)
	s, err := store.Open(t.Context(), dsn, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	acknowledged := map[string]string{}
	n := 0
	for range 3 {
		for range 5 {
			m := sample("w", "t", n)
			if err := s.Append(t.Context(), m, nil); err != nil {
				t.Fatal(err)
			}
			acknowledged[m.ManifestID] = m.Hash
			n++
		}
		if err := pg.Crash(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Append(t.Context(), sample("w", "t", n), nil); !store.HasCode(err, store.CodeUnreachable) {
			t.Errorf("without a server: %v", err)
		}
		wantError(t, s.DB().Probe(t.Context()), store.CodeUnreachable, "server")
		if err := pg.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.DB().Probe(t.Context()); err != nil {
			t.Error(err)
		}
		checkAcknowledged(t, s, acknowledged)
	}
}
