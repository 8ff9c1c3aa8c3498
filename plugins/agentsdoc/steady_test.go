package agentsdoc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// steadyEngine is an engine with the plugin inside, which sees files as given
// and tells of what the engine is told to forget.
func steadyEngine(tb testing.TB, with powers) (eng *runtime.Engine, forgotten <-chan phases.Invalidation) {
	tb.Helper()
	if with.view == nil {
		with.view = chain.OS{}
	}
	with.getenv = noVariables
	told := make(chan phases.Invalidation, 1000)
	cfg, err := config.Loader{}.Parse([]byte(`
version: 1
plugins:
  - name: agentsdoc
    builtin: agentsdoc
    grants: {contribute: [prompt_section, reminder], sections: [agents_md], see: [touched_paths], host: [state]}
    config: {global: false}
`), "grapnel.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	eng, err = runtime.New(tb.Context(), cfg, runtime.Options{InProcess: map[string]runtime.Plugin{"agentsdoc": overheard{newPlugin(with), told}}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := eng.Close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
	return eng, told
}

// overheard is a plugin whose invalidations are told.
type overheard struct {
	runtime.Plugin
	told chan<- phases.Invalidation
}

func (p overheard) Configure(ctx context.Context, c *phases.Configuration) (*phases.Description, error) {
	given := *c
	given.Host = overheardHost{c.Host, p.told}
	return p.Plugin.Configure(ctx, &given)
}

func (p overheard) Close(ctx context.Context) error {
	closer, ok := p.Plugin.(runtime.Closer)
	if !ok {
		return errors.New("the plugin cannot be closed")
	}
	return closer.Close(ctx)
}

type overheardHost struct {
	phases.Host
	told chan<- phases.Invalidation
}

// Invalidate tells when the engine has forgotten.
func (h overheardHost) Invalidate(ctx context.Context, what phases.Invalidation) error {
	err := h.Host.Invalidate(ctx, what)
	h.told <- what
	return err
}

// forgot waits until the engine has forgotten what was not changed.
func forgot(tb testing.TB, told <-chan phases.Invalidation) {
	tb.Helper()
	patience := time.After(time.Minute)
	for {
		select {
		case what := <-told:
			if slices.Contains(what.Tags, tagChanged) {
				return
			}
		case <-patience:
			tb.Fatal("the engine was told of no change")
		}
	}
}

// begun begins a session, which ends with the test.
func begun(tb testing.TB, eng *runtime.Engine, where phases.Context) {
	tb.Helper()
	s, err := eng.StartSession(tb.Context(), where, "startup")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if _, err := s.End(context.WithoutCancel(tb.Context()), ""); err != nil {
			tb.Error(err)
		}
	})
}

// asked dispatches the phase of the prompt.
func asked(tb testing.TB, eng *runtime.Engine, where phases.Context) *phases.Outcome {
	tb.Helper()
	out, err := eng.Dispatch(tb.Context(), where, &phases.PrePromptCompileInput{})
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// states are the states of the hooks of an outcome.
func states(out *phases.Outcome) string {
	var list []string
	for _, run := range out.Runs {
		list = append(list, strings.TrimPrefix(run.Subscription, "agentsdoc.")+" "+string(run.State))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func TestSteadyTurn(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"r/.git/HEAD": "", "r/AGENTS.md": "one", "r/a/x": "", "empty/.git/HEAD": ""})
	for _, dir := range []string{"r/a", "empty"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			view := &countingFS{FS: chain.OS{}}
			eng, told := steadyEngine(t, powers{view: view})
			where := inSession("s", base+"/"+dir)
			begun(t, eng, where)
			first := asked(t, eng, where)
			asked(t, eng, where) // what the first turn had to say of itself is said
			looked := view.opened.Load()
			steady := asked(t, eng, where)
			if got, want := states(steady), "changed cached, prompt cached"; got != want {
				t.Errorf("states are %s, want %s", got, want)
			}
			if now := view.opened.Load(); now != looked {
				t.Errorf("%d directories were opened", now-looked)
			}
			if a, b := sectionsOf(first), sectionsOf(steady); a != b {
				t.Errorf("the text is %q, was %q", b, a)
			}
			for len(told) > 0 {
				<-told
			}
			write(t, base+"/"+dir+"/AGENTS.md", "new in "+dir)
			forgot(t, told)
			edited := asked(t, eng, where)
			if got, want := states(edited), "changed succeeded, prompt cached"; got != want {
				t.Errorf("after an edit the states are %s, want %s", got, want)
			}
			if a, b := sectionsOf(first), sectionsOf(edited); a != b {
				t.Errorf("after an edit the text is %q, was %q", b, a)
			}
			if len(edited.Merged.Reminders) != 1 || edited.Merged.Reminders[0].Type != "agents.changed" {
				t.Errorf("reminders are %+v", edited.Merged.Reminders)
			}
			asked(t, eng, where)
			if out := asked(t, eng, where); states(out) != "changed cached, prompt cached" || len(out.Merged.Reminders) != 0 {
				t.Errorf("then the states are %s, reminders %v", states(out), out.Merged.Reminders)
			}
		})
	}
}

// sectionsOf is the text of an outcome.
func sectionsOf(out *phases.Outcome) string {
	var b strings.Builder
	for _, s := range out.Merged.Sections {
		b.WriteString(s.Content)
	}
	return b.String()
}

// TestDegradedTurn: where nobody watches, each turn looks again.
func TestDegradedTurn(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{".git/HEAD": "", "AGENTS.md": "one"})
	eng, _ := steadyEngine(t, powers{remote: func(string) bool { return true }})
	where := inSession("s", base)
	begun(t, eng, where)
	var notes []string
	for range 2 {
		out := asked(t, eng, where)
		for _, d := range out.Diagnostics {
			notes = append(notes, d.Code)
		}
	}
	if fmt.Sprint(notes) != "["+codeWatchDegraded+"]" {
		t.Errorf("diagnostics are %q", notes)
	}
	if got, want := states(asked(t, eng, where)), "changed succeeded, prompt cached"; got != want {
		t.Errorf("states are %s, want %s", got, want)
	}
	write(t, base+"/AGENTS.md", "another")
	if out := asked(t, eng, where); len(out.Merged.Reminders) != 1 {
		t.Errorf("reminders are %v", out.Merged.Reminders)
	}
}

// TestNoSession: each turn looks afresh, whatever was said to others.
func TestNoSession(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{".git/HEAD": "", "AGENTS.md": "one"})
	eng, _ := steadyEngine(t, powers{})
	where := phases.Context{WorkspaceID: "w", Dir: base}
	for _, text := range []string{"one", "two", "three"} {
		write(t, base+"/AGENTS.md", text)
		out := asked(t, eng, where)
		if !strings.Contains(sectionsOf(out), "\n"+text+"\n") || states(out) != "changed filtered, prompt succeeded" {
			t.Errorf("%s: states are %s, the text is %q", text, states(out), sectionsOf(out))
		}
	}
	if err := os.Remove(base + "/AGENTS.md"); err != nil {
		t.Fatal(err)
	}
	if text := sectionsOf(asked(t, eng, where)); text != "" {
		t.Errorf("the file is gone, and the text is %q", text)
	}
}

// BenchmarkSteadyTurn is what the phase costs with both hooks from memory, and,
// to compare, without any hook.
func BenchmarkSteadyTurn(b *testing.B) {
	dir := build(b, map[string]string{".git/HEAD": ""})
	for range 6 {
		dir += "/d"
		write(b, dir+"/AGENTS.md", strings.Repeat("a line...\n", 50))
	}
	eng, _ := steadyEngine(b, powers{})
	where := inSession("s", dir)
	begun(b, eng, where)
	asked(b, eng, where)
	asked(b, eng, where)
	b.Run("cached", func(b *testing.B) {
		for b.Loop() {
			asked(b, eng, where)
		}
	})
	empty, err := runtime.New(b.Context(), &config.Config{Version: 1}, runtime.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = empty.Close(context.WithoutCancel(b.Context())) }()
	b.Run("no hook", func(b *testing.B) {
		for b.Loop() {
			asked(b, empty, where)
		}
	})
}
