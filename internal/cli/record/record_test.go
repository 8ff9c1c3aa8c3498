package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()

	for name, want := range samples() {
		file := &disk{left: -1}
		w := writer(t, file, fixed())
		if err := errors.Join(w.Write(want), w.Close()); err != nil {
			t.Fatal(err)
		}
		all, _ := entries(t, file.Bytes())
		if len(all) != 1 || all[0].Session != "3132333435363738" || all[0].Line != 2 {
			t.Fatalf("%s: entries %+v", name, all)
		}
		if diff := cmp.Diff(all[0].Exchange, want, cmp.AllowUnexported(runtime.Exchange{})); diff != "" {
			t.Errorf("%s: exchange (-got +want):\n%s", name, diff)
		}
		if lines := bytes.Split(bytes.TrimSpace(file.Bytes()), []byte("\n")); len(lines) != 3 || !file.closed || strings.Contains(file.String(), `\u003c`) {
			t.Errorf("%s: file of %d lines, closed %v:\n%s", name, len(lines), file.closed, file)
		}
	}
}

// TestEveryFieldIsRecorded: a field that is added to what plugins are sent must get a
// place in the format.
func TestEveryFieldIsRecorded(t *testing.T) {
	t.Parallel()

	d, c := samples()["dispatch"].Dispatch, samples()["tool"].ToolCall
	for name, v := range map[string]any{"dispatch": *d, "tool call": *c} {
		if empty := emptyFields(v); len(empty) > 0 {
			t.Errorf("the sample of a %s does not set %v", name, empty)
		}
	}
}

func TestAnswerThatIsNoJSON(t *testing.T) {
	t.Parallel()

	for name, x := range map[string]*runtime.Exchange{
		"nil contribution": {Kind: runtime.ExchangeDispatch, Dispatch: samples()["failed"].Dispatch, Result: &phases.Result{Contributions: []phases.Contribution{nil}}},
		"bad content":      {Kind: runtime.ExchangeTool, ToolCall: &phases.ToolCall{Tool: "t"}, ToolResult: &phases.ToolResult{Content: json.RawMessage(`{"a`)}},
	} {
		file := &disk{left: -1}
		w := writer(t, file, fixed())
		if err := w.Write(x); err != nil {
			t.Fatal(err)
		}
		all, _ := entries(t, file.Bytes())
		if got := all[0].Exchange.Err; got == nil || got.Code != phases.CauseInvalidReply {
			t.Errorf("%s: error %v, want %s", name, got, phases.CauseInvalidReply)
		}
	}
}

// TestDiskThatFills: what did not fit is counted, a torn line is closed, and
// recording goes on when there is left again.
func TestDiskThatFills(t *testing.T) {
	t.Parallel()

	file := &disk{left: -1}
	w := writer(t, file, fixed())
	if err := w.Write(one()); err != nil {
		t.Fatal(err)
	}
	file.left = 100 // in the middle of the next line
	for range 3 {
		if err := w.Write(one()); !errors.Is(err, errFull) {
			t.Errorf("error %v, want %v", err, errFull)
		}
	}
	file.left = -1
	if err := errors.Join(w.Write(one()), w.Write(one()), w.Close()); err != nil {
		t.Fatal(err)
	}
	all, r := entries(t, file.Bytes())
	if len(all) != 4 || all[1].Exchange != nil || all[1].Omitted != 3 || all[1].Why != errFull.Error() || r.Unfinished() != 1 {
		t.Errorf("entries %+v, %d unfinished, of:\n%s", all, r.Unfinished(), file)
	}
	recorded, omitted, why := w.Counts()
	if recorded != 3 || omitted != 3 || !errors.Is(why, errFull) {
		t.Errorf("counts %d, %d, %v", recorded, omitted, why)
	}
}

// TestBound: the file ends at its bound, at one moment, with the count of what is not
// in it.
func TestBound(t *testing.T) {
	t.Parallel()

	o := fixed()
	o.MaxBytes = 2000
	file := &disk{left: -1}
	w := writer(t, file, o)
	var full *FullError
	written := 0
	for range 10 {
		switch err := w.Write(one()); {
		case err == nil && full == nil:
			written++
		case !errors.As(err, &full):
			t.Fatalf("error %v after %d", err, written)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	all, _ := entries(t, file.Bytes())
	last := all[len(all)-1]
	if written == 0 || len(all) != written+1 || last.Omitted != 10-written || !strings.Contains(last.Why, "2000 bytes") {
		t.Errorf("%d written, last %+v", written, last)
	}
	if file.Len() > 2000+300 {
		t.Errorf("the file has %d bytes", file.Len())
	}
	if err := w.Write(one()); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// TestOpen appends sessions to one file, also to one whose writer was killed.
func TestOpen(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "r.jsonl")
	for _, tail := range []string{"", `{"kind":"tool","sess`, "", `{"grapnel_rec`} {
		w, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Write(one()), w.Close()); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString(tail) // a program was killed as it wrote
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all, r := entries(t, data)
	sessions := map[string]bool{}
	for _, e := range all {
		sessions[e.Session] = true
	}
	if len(all) != 4 || len(sessions) != 4 || r.Unfinished() != 2 {
		t.Errorf("%d entries of %d sessions, %d unfinished", len(all), len(sessions), r.Unfinished())
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // past the umask
			t.Fatal(err)
		}
		return path
	}
	for name, tt := range map[string]struct{ path, want string }{
		"another file":  {file("a.yaml", "version: 1\nplugins: []\nnothing: more\n", 0o600), "not a record"},
		"a short file":  {file("short", "x", 0o600), "not a record"},
		"for all eyes":  {file("open", "", 0o644), "chmod 600"},
		"a folder":      {dir, "not a regular file"},
		"no folder":     {filepath.Join(dir, "absent", "r"), "no such file"},
		"not writeable": {filepath.Join(dir, "a.yaml", "r"), "not a directory"},
	} {
		if _, err := Open(tt.path, Options{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}

// TestConcurrentWriters: lines of goroutines and of programs do not mix.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "r.jsonl")
	const writers, each = 4, 50
	var all sync.WaitGroup
	for range writers {
		w, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var own sync.WaitGroup
		for range 2 {
			own.Go(func() {
				for range each {
					if err := w.Write(one()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Go(func() {
			own.Wait()
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, r := entries(t, data); len(got) != writers*2*each || r.Unfinished() != 0 {
		t.Errorf("%d entries, %d unfinished", len(got), r.Unfinished())
	}
}
