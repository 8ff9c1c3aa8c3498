package record

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/runtime"
)

// emptyFields names the fields of a struct that have their zero value.
func emptyFields(v any) []string {
	var names []string
	s := reflect.ValueOf(v)
	for i := range s.NumField() {
		if s.Field(i).IsZero() {
			names = append(names, s.Type().Field(i).Name)
		}
	}
	return names
}

func TestReaderRefuses(t *testing.T) {
	t.Parallel()

	const head = `{"grapnel_record":1,"kind":"header","session":"a","begin":"2026-05-01T12:00:00Z"}` + "\n"
	for name, tt := range map[string]struct{ text, want string }{
		"another file":       {"version: 1\n", "line 1: it is not a line of a record"},
		"newer format":       {strings.Replace(head, ":1,", ":2,", 1), "line 1: the record has the format 2; this program reads 1"},
		"no header":          {`{"kind":"tool","session":"a"}`, `line 1: the session "a" has no header`},
		"session unknown":    {head + `{"kind":"tool","session":"b"}`, `line 2: the session "b" has no header`},
		"unknown kind":       {head + `{"kind":"dance","session":"a"}`, `line 2: unknown kind "dance"`},
		"garbage":            {head + "\n\x00\x01\n", "line 3: it is not a line of a record"},
		"nothing was sent":   {head + `{"kind":"dispatch","session":"a","error":{"code":"crash","message":""}}`, "line 2: a dispatch without what was sent"},
		"no tool call":       {head + `{"kind":"tool","session":"a"}`, "line 2: a tool call without what was sent"},
		"no answer":          {head + `{"kind":"tool","session":"a","tool_call":{"tool":"t"}}`, "line 2: it has neither an answer nor an error"},
		"unknown phase":      {head + `{"kind":"dispatch","session":"a","dispatch":{"phase":"turn.never"}}`, "turn.never"},
		"unknown input":      {head + `{"kind":"dispatch","session":"a","dispatch":{"phase":"turn.pre_policy","input":{"nope":1}}}`, "nope"},
		"contribution":       {head + `{"kind":"dispatch","session":"a","dispatch":{"phase":"turn.pre_policy"},"result":{"contributions":[{"kind":"x"}]}}`, `unknown kind "x"`},
		"a list where a map": {head + `[]`, "line 2"},
	} {
		r := NewReader(strings.NewReader(tt.text))
		_, err := r.Next()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}

// TestEveryBeginning reads every beginning of a file: a program may be killed at any
// moment.
func TestEveryBeginning(t *testing.T) {
	t.Parallel()

	file := &disk{left: -1}
	w := writer(t, file, fixed())
	for _, x := range []*runtime.Exchange{samples()["failed"], samples()["custom"]} {
		if err := w.Write(x); err != nil {
			t.Fatal(err)
		}
	}
	data := file.Bytes()
	for n := len(beginning); n <= len(data); n++ {
		whole := bytes.Count(data[:n], []byte("\n"))
		if n < len(data) && data[n] == '\n' {
			whole++ // all of it but its end
		}
		all, r := entries(t, data[:n])
		if want := max(0, whole-1); len(all) != want {
			t.Fatalf("%d entries in %d bytes, want %d", len(all), n, want)
		}
		if cut := data[n-1] != '\n' && (n == len(data) || data[n] != '\n'); cut != (r.Unfinished() == 1) {
			t.Fatalf("%d unfinished lines in %d bytes", r.Unfinished(), n)
		}
	}
}

// FuzzReader reads anything: it ends, and what it takes for an exchange can be written
// and is read as the same again.
func FuzzReader(f *testing.F) {
	for _, x := range samples() {
		file := &disk{left: -1}
		w := writer(f, file, fixed())
		if err := errors.Join(w.Write(x), w.Close()); err != nil {
			f.Fatal(err)
		}
		f.Add(file.Bytes())
		f.Add(file.Bytes()[:file.Len()/2])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewReader(bytes.NewReader(data))
		for {
			e, err := r.Next()
			if err != nil {
				return
			}
			if e.Exchange == nil {
				continue
			}
			file := &disk{left: -1}
			w := writer(t, file, fixed())
			if err := w.Write(e.Exchange); err != nil {
				t.Fatalf("what was read cannot be written: %v", err)
			}
			again, _ := entries(t, file.Bytes())
			if len(again) != 1 {
				t.Fatalf("%d entries out of one", len(again))
			}
			first, errFirst := lineOf(e.Exchange)
			second, errSecond := lineOf(again[0].Exchange)
			if err := errors.Join(errFirst, errSecond); err != nil {
				t.Fatal(err)
			}
			if a, b := jsonOf(t, first), jsonOf(t, second); a != b {
				t.Fatalf("not the same again (-got +want):\n%s", cmp.Diff(b, a))
			}
		}
	})
}

// jsonOf is a line as it is written.
func jsonOf(t *testing.T, l *Line) string {
	t.Helper()
	var b bytes.Buffer
	if err := l.encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
