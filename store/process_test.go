package store_test

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/store"
)

// TestLockedByAnotherProcess has a program that holds the database's lock.
// Reading goes on, writing is refused with a code once it has waited, and goes on
// when the program lets go.
func TestLockedByAnotherProcess(t *testing.T) {
	t.Parallel()

	dsn := storetest.SQLite(t)
	patient := open(t, dsn, store.Options{LockTimeout: time.Hour})
	fillThread(t, patient, "w", "t", 0, 1)
	s := open(t, dsn, store.Options{LockTimeout: 2 * time.Second}) // time to open it on a busy machine
	release := holdByProgram(t, dsn)
	wantGood(t, open(t, dsn, store.Options{ReadOnly: true}), 1)
	wantError(t, s.Append(t.Context(), sample("w", "t", 1), nil), store.CodeLocked, "another program")
	cause := errors.New("no more time")
	ctx, cancel := contextWithCause(t, 60*time.Millisecond, cause)
	defer cancel()
	if err := patient.Append(ctx, sample("w", "t", 1), nil); !errors.Is(err, cause) {
		t.Errorf("Append behind a lock: %v", err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		if err := patient.Append(t.Context(), sample("w", "t", 1), nil); err != nil {
			t.Errorf("when the lock was let go: %v", err)
		}
	})
	release()
	group.Wait()
	fillThread(t, s, "w", "t", 2, 3)
	wantGood(t, s, 3)
}

// holdByProgram starts a program that holds the lock until release is called.
func holdByProgram(t *testing.T, dsn string) (release func()) {
	t.Helper()
	cmd := storetest.Program(t, "hold", dsn, "")
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the holder says %q, %v", line, err)
	}
	return func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			t.Error(err)
		}
	}
}

// TestProcessesAppendAtOnce has several programs append to the same threads of
// one database. Everything acknowledged is kept, and the chains have no gap.
func TestProcessesAppendAtOnce(t *testing.T) {
	t.Parallel()

	const programs, each = 3, 60
	tests := []struct {
		name   string
		newDSN func(testing.TB) string
	}{
		{"sqlite", storetest.SQLite},
		{"postgres", shared.NewDSN},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			dsn := tt.newDSN(t)
			acknowledged := map[string]string{}
			for _, list := range writeAtOnce(t, dsn, programs, each) {
				maps.Copy(acknowledged, list)
			}
			if len(acknowledged) != programs*each {
				t.Errorf("%d manifests were acknowledged, want %d", len(acknowledged), programs*each)
			}
			s := open(t, dsn, store.Options{})
			checkAcknowledged(t, s, acknowledged)
			for _, thread := range []string{"t0", "t1"} {
				list, err := s.List(t.Context(), store.Filter{Workspace: "w", Thread: thread})
				if err != nil {
					t.Fatal(err)
				}
				for n, x := range list {
					if x.Seq != uint64(n) {
						t.Errorf("thread %s: number %d has seq %d", thread, n, x.Seq)
					}
				}
				if len(list) != programs*each/2 {
					t.Errorf("thread %s has %d manifests", thread, len(list))
				}
			}
		})
	}
}

// writeAtOnce runs programs that append until they are done, and returns what
// each of them was told is kept. One starts when the one before it has begun, so
// that they do work at the same time.
func writeAtOnce(t *testing.T, dsn string, programs, each int) []map[string]string {
	t.Helper()
	lists := make([]map[string]string, programs)
	var group sync.WaitGroup
	for n := range programs {
		lists[n] = map[string]string{}
		cmd := storetest.Program(t, "write full", dsn, fmt.Sprintf("%d:%d", n, each))
		begun := make(chan struct{})
		once := sync.OnceFunc(func() { close(begun) })
		group.Go(func() {
			defer once()
			err := storetest.Follow(cmd, func(_ int, line string) {
				noteAcknowledged(lists[n], line)
				once()
			})
			if err != nil {
				t.Errorf("a writer: %v", err)
			}
		})
		<-begun
	}
	group.Wait()
	return lists
}
