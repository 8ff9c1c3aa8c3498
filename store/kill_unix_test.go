//go:build unix

package store_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/storetest"
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
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n := 0
	noteAcknowledged(out, acknowledged, func() {
		if n++; n == after {
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	})
	if err := cmd.Wait(); err == nil || n < after {
		t.Fatalf("the writer ended by itself after %d manifests: %v", n, err)
	}
}

// TestPostgresEndsWithItsProcess kills a program that has started a server: the
// server ends too, and leaves nothing behind.
func TestPostgresEndsWithItsProcess(t *testing.T) {
	t.Parallel()

	shared.Postgres(t) // skips where there is none
	cmd := storetest.Program(t, "postgres", "none", "")
	_, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	cmd.Stderr = nil
	ended, errEnded := cmd.StderrPipe() // the guard has it too, and nobody else
	if err := errors.Join(errIn, errOut, errEnded, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	dir, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	dir = strings.TrimSpace(dir)
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	// An SSLRequest and its answer: a backend that has not set its signal handlers when
	// the server stops would live until its authentication_timeout.
	if _, err := conn.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(os.Stderr, ended); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Error(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the server is there still: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its files are there still: %v", err)
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
		if err := pg.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkAcknowledged(t, s, acknowledged)
	}
}
