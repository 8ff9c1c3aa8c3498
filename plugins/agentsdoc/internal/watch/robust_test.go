package watch

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
)

// TestTwoWaysToOneDirectory has sessions that name a directory in two ways. Neither
// ends the other's watch.
func TestTwoWaysToOneDirectory(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"real/a": "", "real/b": ""})
	must(t, os.Symlink("real", base+"/link"))
	w, calls := listening(t, Options{})
	must(t, w.Watch("real", Seen{base + "/real": {"a": {}}}))
	must(t, w.Watch("link", Seen{base + "/link": {"a": {}}}))
	write(t, base+"/real/a", "1")
	if diff := cmp.Diff(heard(t, calls), []string{"link", "real"}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	w.Forget("link")
	drain(calls)
	write(t, base+"/real/a", "2")
	if diff := cmp.Diff(heard(t, calls), []string{"real"}); diff != "" {
		t.Errorf("after one was forgotten (-got +want)\n%s", diff)
	}
	must(t, w.Watch("link", Seen{base + "/link": {"a": {}}}))
	w.Forget("real")
	drain(calls)
	write(t, base+"/link/a", "3")
	if diff := cmp.Diff(heard(t, calls), []string{"link"}); diff != "" {
		t.Errorf("after the other was forgotten (-got +want)\n%s", diff)
	}
}

// settle waits until everything that was done before is told, and returns whom:
// changes are told in the order in which they happen, so that of a new file comes
// last.
func settle(t *testing.T, w *Watcher, calls <-chan []string, base, mark string) []string {
	t.Helper()
	must(t, w.Watch(mark, Seen{base: {mark: {absent: true}}}))
	defer w.Forget(mark)
	write(t, base+"/"+mark, "")
	var told []string
	for !slices.Contains(told, mark) {
		told = append(told, heard(t, calls)...)
	}
	return told
}

// TestDirectoryMovedAway has directories that are moved away, with others in their place.
func TestDirectoryMovedAway(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"r/a/AGENTS.md": "1", "r/.git/HEAD": ""})
	w, calls := listening(t, Options{})
	must(t, w.Watch("s", traced(t, base+"/r/a")))
	for i := range 3 {
		must(t, os.Rename(base+"/r/a", fmt.Sprintf("%s/old-%d", base, i)))
		heard(t, calls)
		write(t, base+"/r/a/AGENTS.md", fmt.Sprint("again ", i))
		must(t, w.Watch("s", traced(t, base+"/r/a")))
		drain(calls)
		write(t, base+"/r/a/AGENTS.md", fmt.Sprint("edited ", i))
		if ids := settle(t, w, calls, base, fmt.Sprint("mark-", i)); !slices.Contains(ids, "s") {
			t.Errorf("the edit was not told, only %v", ids)
		}
		must(t, w.Watch("last", Seen{base: {"last": {absent: true}}}))
		drain(calls)
		write(t, fmt.Sprintf("%s/old-%d/AGENTS.md", base, i), "of no concern")
		write(t, base+"/last", strconv.Itoa(i))
		if diff := cmp.Diff(heard(t, calls), []string{"last"}); diff != "" {
			t.Errorf("(-got +want)\n%s", diff)
		}
		w.Forget("last")
	}
	if n := len(w.events.source.WatchList()); n > len(w.directories) {
		t.Errorf("%d directories are watched, of %d: %q", n, len(w.directories), w.events.source.WatchList())
	}
}

// fakeSource is a source of a test, which has room for so many directories.
type fakeSource struct {
	room        int
	directories []string
	events      chan fsnotify.Event
	errors      chan error
	closing     chan struct{} // closed when Close is called
	close       chan struct{} // Close waits for it
}

func (f *fakeSource) Add(directory string) error {
	if slices.Contains(f.directories, directory) {
		return nil
	}
	if len(f.directories) == f.room {
		return syscall.ENOSPC
	}
	f.directories = append(f.directories, directory)
	return nil
}

func (f *fakeSource) Remove(directory string) error {
	f.directories = slices.DeleteFunc(f.directories, func(other string) bool { return other == directory })
	return nil
}

func (f *fakeSource) WatchList() []string { return slices.Clone(f.directories) }

func (f *fakeSource) Close() error {
	close(f.closing)
	<-f.close
	close(f.events)
	return nil
}

// faked is a watcher of a fake source.
func faked(t *testing.T, room int) (*Watcher, *fakeSource, <-chan []string) {
	t.Helper()
	f := &fakeSource{room: room, events: make(chan fsnotify.Event), errors: make(chan error), closing: make(chan struct{}), close: make(chan struct{})}
	calls := make(chan []string, 10)
	w := New(Options{
		Changed: func(ids []string) { calls <- ids },
		open:    func() (source, channels, error) { return f, channels{f.events, f.errors}, nil },
	})
	return w, f, calls
}

// TestOverflow tells all when the system says that events were lost.
func TestOverflow(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"x/a": "", "y/a": ""})
	w, f, calls := faked(t, 10)
	must(t, w.Watch("one", Seen{base + "/x": {"a": {}}}))
	must(t, w.Watch("two", Seen{base + "/y": {"a": {}}}))
	f.errors <- fsnotify.ErrEventOverflow
	if diff := cmp.Diff(heard(t, calls), []string{"one", "two"}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	close(f.close)
	w.Close()
}

// TestNoRoomLeft has a system whose limit of watches is reached: what is watched
// stays so, and what is not is told.
func TestNoRoomLeft(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"x/a": "", "y/a": "", "z/a": ""})
	w, f, calls := faked(t, 2)
	must(t, w.Watch("one", Seen{base + "/x": {"a": {}}}))
	seen := Seen{base + "/x": {"a": {}}, base + "/y": {"a": {}}, base + "/z": {"a": {}}}
	if err := w.Watch("two", seen); !errors.Is(err, ErrDegraded) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error is %v", err)
	}
	if diff := cmp.Diff(f.directories, []string{base + "/x"}); diff != "" {
		t.Errorf("watched (-got +want)\n%s", diff)
	}
	f.events <- fsnotify.Event{Name: base + "/x/a"}
	if diff := cmp.Diff(heard(t, calls), []string{"one"}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	close(f.close)
	w.Forget("one")
	select { // nothing is watched, so the source was closed
	case <-f.closing:
	default:
		t.Error("the source is open with nothing watched")
	}
}

// TestNoSource has a system that gives no events at all.
func TestNoSource(t *testing.T) {
	t.Parallel()
	w := New(Options{open: func() (source, channels, error) { return nil, channels{}, syscall.EMFILE }})
	defer w.Close()
	base := build(t, map[string]string{"a": ""})
	for range 2 {
		if err := w.Watch("s", Seen{base: {"a": {}}}); !errors.Is(err, ErrDegraded) || !errors.Is(err, syscall.EMFILE) {
			t.Errorf("error is %v", err)
		}
	}
}

// TestCloseWaits has a goroutine that another call is about to end.
func TestCloseWaits(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"a": ""})
	synctest.Test(t, func(t *testing.T) {
		w, f, _ := faked(t, 10)
		must(t, w.Watch("s", Seen{base: {"a": {}}}))
		go w.Forget("s")
		<-f.closing
		closed := make(chan struct{})
		go func() {
			w.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close has returned, and a goroutine is at work")
		default:
		}
		close(f.close)
		<-closed
	})
}

// TestImportsAreSeen says that what a file imports is looked at again.
func TestImportsAreSeen(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{".git/HEAD": "", "AGENTS.md": "@./docs/x.md\n", "docs/x.md": "one\n"})
	trace := NewTrace(fsview.OS{})
	o := chain.Default()
	o.Imports, o.Markers = chain.ImportLines, []string{".git"}
	chain.Resolve(trace, base, o)
	w, calls := listening(t, Options{})
	must(t, w.Watch("s", trace.Seen().Below(base, []string{".git"})))
	write(t, base+"/docs/x.md", "another\n")
	heard(t, calls)
	if !trace.Seen().Changed(fsview.OS{}) {
		t.Error("the import is another, and nothing has changed")
	}
}
