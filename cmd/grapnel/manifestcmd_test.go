package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/cli/logexport"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// keptLog opens a log with so many manifests of one thread.
func keptLog(t *testing.T, n int) *openedStore {
	t.Helper()

	s := must(store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "log.db"), store.Options{}))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	out := must(compiler.Compile(compiler.Input{Profile: phases.ProfileFull}))(t)
	for i := range n {
		m := out.Manifest()
		m.CreatedAt = recordedAt.Add(time.Duration(i) * time.Second)
		m.ManifestID = ulid.MustNew(ulid.Timestamp(m.CreatedAt), bytes.NewReader(make([]byte, 16))).String()
		m.WorkspaceID, m.ThreadID, m.TurnID = "w", "t", strconv.Itoa(i)
		m.Complete()
		if err := s.Append(t.Context(), &m, nil); err != nil {
			t.Fatal(err)
		}
	}
	return &openedStore{Store: s}
}

// chunks counts writes and the largest of them, and fails where it is told to.
type chunks struct {
	writes, largest, lines int
	err                    error
}

func (c *chunks) Write(p []byte) (int, error) {
	c.writes++
	c.largest = max(c.largest, len(p))
	c.lines += bytes.Count(p, []byte{'\n'})
	return len(p), c.err
}

// TestExportStreams: a large export is written as it is read, and not held.
func TestExportStreams(t *testing.T) {
	t.Parallel()

	const manifests = 300
	s := keptLog(t, manifests)
	envelope := func(_ string, payload []byte) ([]byte, error) { return payload, nil }
	a := &app{err: io.Discard}
	for _, format := range logexport.Formats() {
		out := &chunks{}
		a.stdout = out
		if err := a.exportTo(t.Context(), s, &exportFlags{Format: string(format)}, envelope); err != nil {
			t.Fatal(err)
		}
		if out.lines < manifests || out.writes < 2 || out.largest > 1<<16 || a.out.Len() > 0 {
			t.Errorf("%s: got %+v and %d bytes in the buffer: the export was held", format, *out, a.out.Len())
		}
	}
	for name, tt := range map[string]struct {
		err  error
		want int
	}{
		"the reader went away": {&os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}, exitOK},
		"a full disk":          {syscall.ENOSPC, exitUnable},
	} {
		a := &app{err: io.Discard, stdout: &chunks{err: tt.err}}
		if err := a.exportTo(t.Context(), s, &exportFlags{Format: "jsonl"}, nil); codeOf(err) != tt.want {
			t.Errorf("%s: %v, want exit code %d", name, err, tt.want)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if err := a.exportTo(ctx, s, &exportFlags{Format: "jsonl"}, nil); codeOf(err) != exitUnable {
		t.Errorf("interrupted: %v", err)
	}
}
