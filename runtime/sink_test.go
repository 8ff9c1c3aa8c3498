package runtime_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestSink: each compiled turn is kept. Whatever the sink does, the turn goes on
// within a bounded time; when its manifest is not kept, that is told, and the
// operator's word says whether the turn goes on without.
func TestSink(t *testing.T) {
	t.Parallel()

	disk := errors.New("disk full")
	tests := []struct {
		name   string
		sink   func(ctx context.Context, release <-chan struct{}) error
		took   time.Duration
		code   phases.Cause // empty: it is kept
		events []string
	}{
		{name: "kept"},
		{"error", func(context.Context, <-chan struct{}) error { return disk }, 0, phases.CauseUnavailable, []string{"not_kept unavailable"}},
		{"coded error", func(context.Context, <-chan struct{}) error {
			return phases.Errorf(phases.CauseOverloaded, "busy")
		}, 0, phases.CauseOverloaded, []string{"not_kept overloaded"}},
		{"panic", func(context.Context, <-chan struct{}) error { panic("a bug") }, 0, phases.CauseInternal, []string{"not_kept internal"}},
		{"slow, and honest about it", func(ctx context.Context, _ <-chan struct{}) error {
			return neverUp(ctx)
		}, 450 * time.Millisecond, phases.CauseUnavailable, []string{"not_kept unavailable"}},
		{"blocks for ever", func(_ context.Context, release <-chan struct{}) error {
			<-release
			return nil
		}, 500 * time.Millisecond, phases.CauseTimeout, []string{"not_kept timeout"}},
	}
	for _, tt := range tests {
		for _, policy := range []string{"", "warn", "refuse"} {
			t.Run(strings.TrimSpace(tt.name+" "+policy), func(t *testing.T) {
				t.Parallel()

				synctest.Test(t, func(t *testing.T) {
					var j journal
					release := make(chan struct{})
					s := &memorySink{before: at("Append", func(ctx context.Context) error {
						if tt.sink == nil {
							return nil
						}
						return tt.sink(ctx, release)
					})}
					h := newHosted(whole())
					h.cfg.Manifest.OnFailure = policy
					h.opts.Sink, h.opts.OnEvent = s, j.events(runtime.EventManifest)
					eng := h.start(t)
					t.Cleanup(func() { close(release) })
					begun := time.Now()
					done, err := compile(t, eng, runtime.CompileInput{})
					if took := time.Since(begun); took != tt.took {
						t.Errorf("it took %s, want %s", took, tt.took)
					}
					checkSame(t, "events", j.all(), tt.events)
					checkKept(t, done, err, tt.code, policy)
					want := runtime.Stats{ManifestsKept: 1}
					if tt.code != "" {
						want = runtime.Stats{ManifestsNotKept: 1}
					}
					if tt.code == phases.CauseTimeout {
						want.SinkHanging = 1
					}
					checkSame(t, "stats", eng.Stats(), want)
				})
			})
		}
	}
}

// checkKept looks at a turn whose manifest failed with a code; "" is none.
func checkKept(t *testing.T, done *runtime.Compiled, err error, code phases.Cause, policy string) {
	t.Helper()
	fails := code != "" && policy == "refuse"
	if (err != nil) != fails || fails && phases.CodeOf(err) != code || (done.Prompt == nil) != fails || (done.Error == nil) == fails {
		t.Errorf("error %v, %+v, prompt %v; it should fail: %v", err, done.Error, done.Prompt != nil, fails)
	}
	i := slices.IndexFunc(done.Diagnostics, func(d phases.Diagnostic) bool { return d.Code == "manifest_not_kept" })
	if (i >= 0) != (code != "") {
		t.Errorf("diagnostics %+v", done.Diagnostics)
	}
	if i >= 0 && strings.Contains(done.Diagnostics[i].Message, "disk") {
		t.Errorf("diagnostic %+v", done.Diagnostics[i])
	}
	m := done.Manifest
	if fails {
		return
	}
	if sum, err := manifest.RecordHash(m, nil); err != nil || sum != m.Hash {
		t.Errorf("the manifest that the host has does not verify: %s, %v", sum, err)
	}
}

// TestRefusedReminders: a reminder of a turn that was refused comes with the session's next prompt, and once.
func TestRefusedReminders(t *testing.T) {
	t.Parallel()

	fail := true
	s := &memorySink{before: at("Append", func(context.Context) error {
		if fail {
			return errors.New("disk full")
		}
		return nil
	})}
	h := newHosted(plugin("p", on("h", phases.PrePromptCompile, reply(&phases.Reminder{Type: "note", Text: "once", DedupeKey: "k"}), phases.KindReminder)))
	h.cfg.Manifest.OnFailure = "refuse"
	h.opts.Sink = s
	eng := h.start(t)
	where := host()
	where.SessionID = "s"
	for _, want := range []int{0, 1, 0} {
		done, err := eng.CompileTurn(t.Context(), where, runtime.CompileInput{})
		if (err != nil) != fail || len(done.Reminders) != want {
			t.Errorf("error %v, reminders %v, want %d", err, done.Reminders, want)
		}
		fail = false
	}
}

// TestKeepText: the texts of a prompt are handed to the sink where the operator
// says so, and put the prompt together again.
func TestKeepText(t *testing.T) {
	t.Parallel()

	for _, keep := range []bool{false, true} {
		t.Run(strconv.FormatBool(keep), func(t *testing.T) {
			t.Parallel()

			s := &memorySink{}
			h := newHosted(whole())
			h.cfg.Manifest.KeepText = keep
			h.opts.Sink = s
			done := prompted(t)(compile(t, h.start(t), runtime.CompileInput{}))
			if !keep {
				if len(s.texts) > 0 {
					t.Errorf("texts nobody wants kept: %v", s.texts)
				}
				return
			}
			prompt, err := compiler.Rebuild(done.Manifest, func(f string) (string, error) { return s.texts[f], nil })
			if err != nil || prompt.FullText != done.Prompt.FullText {
				t.Errorf("rebuilt %v:\n%s", err, cmp.Diff(prompt.FullText, done.Prompt.FullText))
			}
		})
	}
}

// TestSinkKeepsItsOwn: what a host does to its manifest does not reach the one
// that was kept, and the other way round.
func TestSinkKeepsItsOwn(t *testing.T) {
	t.Parallel()

	s := &memorySink{}
	h := newHosted(whole())
	h.opts.Sink = s
	done := prompted(t)(compile(t, h.start(t), runtime.CompileInput{}))
	done.Manifest.Sections[0].Title = "mine"
	done.Manifest.Runs[0].Contributions[0] = "mine"
	kept := s.records[0]
	if sum, err := manifest.RecordHash(kept, nil); err != nil || sum != kept.Hash {
		t.Errorf("the kept manifest was changed: %s, %v", sum, err)
	}
}

// memorySink keeps manifests in chains, as a store does.
type memorySink struct {
	// before, if set, is asked before each call, by the name of its method.
	before func(ctx context.Context, method string) error

	mu      sync.Mutex
	records []*manifest.Manifest
	texts   map[string]string
	usage   []manifest.Usage
	calls   map[string]int
}

var _ runtime.Sink = (*memorySink)(nil)

func (s *memorySink) called(ctx context.Context, method string) error {
	s.mu.Lock()
	if s.calls == nil {
		s.calls, s.texts = map[string]int{}, map[string]string{}
	}
	s.calls[method]++
	s.mu.Unlock()
	if s.before == nil {
		return nil
	}
	return s.before(ctx, method)
}

func (s *memorySink) Append(ctx context.Context, m *manifest.Manifest, texts []manifest.Text) error {
	if err := s.called(ctx, "Append"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var link *manifest.Link
	if last := s.last(m.WorkspaceID, m.ThreadID); last != nil {
		l := last.Link()
		link = &l
	}
	if err := manifest.Seal(m, link, nil); err != nil {
		return err
	}
	s.records = append(s.records, m)
	for _, text := range texts {
		s.texts[text.Hash] = text.Text
	}
	return nil
}

func (s *memorySink) last(workspace, thread string) *manifest.Manifest {
	for _, m := range slices.Backward(s.records) {
		if m.WorkspaceID == workspace && m.ThreadID == thread {
			return m
		}
	}
	return nil
}

func (s *memorySink) Last(ctx context.Context, workspace, thread string) (*manifest.Manifest, error) {
	if err := s.called(ctx, "Last"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range slices.Backward(s.records) {
		if m.WorkspaceID == workspace && m.ThreadID == thread && m.Kind == manifest.KindPrompt {
			return m, nil
		}
	}
	return nil, nil
}

// prompts are the records that are not of events.
func (s *memorySink) prompts() (list []*manifest.Manifest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.records {
		if m.Kind == manifest.KindPrompt {
			list = append(list, m)
		}
	}
	return list
}

func (s *memorySink) Report(ctx context.Context, u manifest.Usage) error {
	if err := s.called(ctx, "Report"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.records, func(m *manifest.Manifest) bool { return m.ManifestID == u.ManifestID }) {
		return errors.New("no such manifest")
	}
	s.usage = append(s.usage, u)
	return nil
}

// at does something at the calls of one method.
func at(method string, do func(context.Context) error) func(context.Context, string) error {
	return func(ctx context.Context, called string) error {
		if called == method {
			return do(ctx)
		}
		return nil
	}
}

// failingAt fails the calls of one method; hangingAt ignores their context until it is released.
func failingAt(method string, err error) func(context.Context, string) error {
	return at(method, func(context.Context) error { return err })
}

func hangingAt(method string, release <-chan struct{}) func(context.Context, string) error {
	return at(method, func(context.Context) error { <-release; return nil })
}

// TestHangingSink: calls that hang are bounded; further ones fail at once, and
// what ends after all is told.
func TestHangingSink(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var j journal
		release := make(chan struct{})
		h := newHosted()
		s := &memorySink{before: hangingAt("Append", release)}
		h.opts.Sink, h.opts.OnEvent = s, j.events(runtime.EventManifest)
		eng := h.start(t)
		const hanging = 8
		for range hanging {
			if done, err := compile(t, eng, runtime.CompileInput{}); err != nil || done.Prompt == nil {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		done, err := compile(t, eng, runtime.CompileInput{})
		if err != nil || done.Prompt == nil || time.Since(begun) != 0 {
			t.Errorf("error %v after %s", err, time.Since(begun))
		}
		if got := j.all(); got[len(got)-1] != "not_kept overloaded" {
			t.Errorf("events %v", got)
		}
		checkSame(t, "stats", eng.Stats(), runtime.Stats{ManifestsNotKept: hanging + 1, SinkHanging: hanging})
		close(release)
		synctest.Wait()
		checkSame(t, "stats after all", eng.Stats(), runtime.Stats{ManifestsNotKept: hanging + 1, ManifestsKeptLate: hanging})
		if got := j.all(); got[len(got)-1] != "kept_late" {
			t.Errorf("events %v", got)
		}
		if done, err := compile(t, eng, runtime.CompileInput{}); err != nil || done.Manifest.Seq != hanging {
			t.Errorf("seq %d, %v", done.Manifest.Seq, err)
		}
	})
}

// TestCloseWithAHangingSink: closing is bounded, and says what is left.
func TestCloseWithAHangingSink(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := newHosted()
		h.opts.Sink = &memorySink{before: hangingAt("Append", release)}
		eng, err := runtime.New(t.Context(), &h.cfg, h.opts)
		if err != nil {
			t.Fatal(err)
		}
		turn := begin(t, eng)
		for range 3 {
			prompted(t)(turn.Compile(t.Context(), runtime.CompileInput{}))
		}
		begun := time.Now()
		err = eng.Close(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), "3 calls of the sink have not returned") || time.Since(begun) > time.Second {
			t.Errorf("Close = %v after %s", err, time.Since(begun))
		}
		if err := eng.ReportUsage(t.Context(), manifest.Usage{ManifestID: "01JZ0000000000000000000000"}); !errors.Is(err, runtime.ErrClosed) {
			t.Errorf("ReportUsage after Close = %v", err)
		}
		close(release)
		synctest.Wait()
		if got := eng.Stats(); got.ManifestsKeptLate != 3 || got.SinkHanging != 0 {
			t.Errorf("stats %+v", got)
		}
	})
}
