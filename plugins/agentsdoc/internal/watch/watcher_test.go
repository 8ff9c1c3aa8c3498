package watch

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
)

func TestWatch(t *testing.T) {
	t.Parallel()
	for _, tt := range changes {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base, dir := tree(t)
			w, calls := listening(t, Options{})
			seen := traced(t, dir)
			must(t, w.Watch("s", seen))
			if seen.Changed(fsview.OS{}) {
				t.Fatal("something has changed before anything was done")
			}
			tt.do(t, base)
			if got := seen.Changed(fsview.OS{}); got == tt.quiet {
				t.Errorf("changed is %t", got)
			}
			if tt.quiet {
				// What is told next must be of the file that is touched last.
				must(t, w.Watch("s", traced(t, dir)))
				write(t, base+"/r/AGENTS.md", "now")
			}
			if diff := cmp.Diff(heard(t, calls), []string{"s"}); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
}

func TestWhoIsConcerned(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"x/a": "", "x/b": "", "y/a": ""})
	w, calls := listening(t, Options{})
	must(t, w.Watch("one", Seen{base + "/x": {"a": {}}}))
	must(t, w.Watch("two", Seen{base + "/x": {"a": {}, "b": {}}}))
	must(t, w.Watch("three", Seen{base + "/y": {"a": {}}}))
	write(t, base+"/x/a", "1")
	if diff := cmp.Diff(heard(t, calls), []string{"one", "two"}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	must(t, w.Watch("one", Seen{base + "/y": {"a": {}}})) // in the place of what it was
	w.Forget("two")
	write(t, base+"/x/a", "2")
	write(t, base+"/y/a", "2")
	if diff := cmp.Diff(heard(t, calls), []string{"one", "three"}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	w.Forget("nobody")
}

// drain forgets what was told so far.
func drain(calls <-chan []string) {
	for {
		select {
		case <-calls:
		default:
			return
		}
	}
}

func TestDirectoryThatIsNotThere(t *testing.T) {
	t.Parallel()
	base := build(t, nil)
	w, calls := listening(t, Options{})
	seen := Seen{}
	seen.look(fsview.OS{}, base+"/a/b/c")
	must(t, w.Watch("s", seen))
	write(t, base+"/a/b/c", "")
	heard(t, calls)
	if err := w.Watch("t", Seen{base + "/gone": {"x": {absent: true}}}); !errors.Is(err, ErrDegraded) {
		t.Errorf("a directory that nobody would tell of: error %v", err)
	}
}

func TestDegraded(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"x/a": "", "y/a": ""})
	tests := []struct {
		name string
		o    Options
		want string
	}{
		{"too many directories", Options{directories: 1}, "more than 1 directories"},
		{"another machine's", Options{Remote: func(directory string) bool { return filepath.Base(directory) == "y" }}, "another machine"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, calls := listening(t, tt.o)
			err := w.Watch("s", Seen{base + "/x": {"a": {}}, base + "/y": {"a": {}}})
			if !errors.Is(err, ErrDegraded) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v", err)
			}
			if w.events != nil || len(w.ids) != 0 || len(w.directories) != 0 {
				t.Errorf("something is watched: %d directories", len(w.directories))
			}
			must(t, w.Watch("t", Seen{base + "/x": {"a": {}}}))
			write(t, base+"/x/a", "1")
			if diff := cmp.Diff(heard(t, calls), []string{"t"}); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"a": ""})
	w, _ := listening(t, Options{})
	must(t, w.Watch("s", Seen{base: {"a": {}}}))
	w.Close()
	w.Close()
	if err := w.Watch("s", Seen{base: {"a": {}}}); !errors.Is(err, ErrDegraded) {
		t.Errorf("error is %v", err)
	}
	New(Options{}).Close()
}
