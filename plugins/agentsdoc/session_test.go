package agentsdoc

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// inSession is a context of a session.
func inSession(id, dir string) phases.Context {
	return phases.Context{WorkspaceID: "w", SessionID: id, ThreadID: id, Dir: dir}
}

func TestSessionKeepsItsBytes(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"r/.git/HEAD": "", "r/AGENTS.md": strings.Repeat("one\n", 100), "r/a/x": "", "s/.git/HEAD": ""})
	file := filepath.Join(base, "r/AGENTS.md")
	p := configured(t, "")
	here := inSession("s", filepath.Join(base, "r"))
	first := askSection(t, p, here, phases.AnswerBudget{MaxChars: 5000})
	empty := inSession("empty", filepath.Join(base, "s"))
	if c := ask(t, p, empty, phases.AnswerBudget{}); c != nil {
		t.Fatalf("got %T of a tree without files", c)
	}
	want := first.Content
	first.Content, first.SourceRefs[0].ID = "spoiled", "spoiled" // by a host that owns the answer
	write(t, file, "two, longer")
	write(t, filepath.Join(base, "s/AGENTS.md"), "new")

	tests := []struct {
		name   string
		change func(*phases.Context)
		room   int
		same   bool
	}{
		{"next turn", func(c *phases.Context) { c.TurnID = "2" }, 5000, true},
		{"more room", func(*phases.Context) {}, 9000, true},
		{"another session", func(c *phases.Context) { c.SessionID = "t" }, 5000, false},
		{"another workspace", func(c *phases.Context) { c.WorkspaceID = "v" }, 5000, false},
		{"another directory", func(c *phases.Context) { c.Dir += "/a" }, 5000, false},
		{"back in the first", func(*phases.Context) {}, 5000, true},
		{"no session", func(c *phases.Context) { c.SessionID = "" }, 5000, false},
		{"less room", func(*phases.Context) {}, utf8.RuneCountInString(chain.FrameOpen) + len(want), false},
		{"next epoch", func(c *phases.Context) { c.Epoch++ }, 5000, false},
	}
	for _, tt := range tests {
		where := here
		tt.change(&where)
		got := askSection(t, p, where, phases.AnswerBudget{MaxChars: tt.room})
		if same := got.Content == want; same != tt.same {
			t.Errorf("%s: same text: %t, want %t", tt.name, same, tt.same)
		}
		if strings.Contains(got.Content, "spoiled") || got.SourceRefs[0].ID != file {
			t.Errorf("%s: the answer is shared with the host", tt.name)
		}
	}
	if c := ask(t, p, empty, phases.AnswerBudget{}); c != nil {
		t.Errorf("a session that began without files got %T", c)
	}
}

// TestAnotherProcess: a plugin that is started anew has the text of what there is now, and says what it could not use of
// what the host has kept.
func TestAnotherProcess(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		spoil func(h *fakeHost)
		code  string // of a remark
	}{
		{name: "kept"},
		{name: "damaged", spoil: func(h *fakeHost) { h.values["w/s"] = json.RawMessage(`{"schema":1,"nested":7}`) }, code: codeStateDamaged},
		{name: "of another version", spoil: func(h *fakeHost) { h.values["w/s"] = json.RawMessage(`{"schema":99}`) }, code: codeStateDamaged},
		{name: "host fails", spoil: func(h *fakeHost) { h.fail = true }, code: codeStateNotKept},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := build(t, map[string]string{".git/HEAD": "", "AGENTS.md": "one"})
			where := inSession("s", base)
			host := &fakeHost{}
			first := newPlugin(powers{view: chain.OS{}, getenv: noVariables})
			configure(t, first, `{"global":false}`, host)
			ask(t, first, where, phases.AnswerBudget{})
			write(t, base+"/AGENTS.md", "two")
			if tt.spoil != nil {
				tt.spoil(host)
			}
			second := newPlugin(powers{view: chain.OS{}, getenv: noVariables})
			configure(t, second, `{"global":false}`, host)
			if text := askSection(t, second, where, phases.AnswerBudget{}).Content; !strings.Contains(text, "\ntwo") {
				t.Errorf("the text is %s", text)
			}
			var got []string
			for _, c := range dispatch(t, second, "changed", where, &phases.PrePromptCompileInput{}, phases.AnswerBudget{}) {
				got = append(got, codes(c)...)
			}
			if tt.code != "" && strings.Join(got, " ") != tt.code {
				t.Errorf("remarks are %q, want %s", got, tt.code)
			}
			if again := dispatch(t, second, "changed", where, &phases.PrePromptCompileInput{}, phases.AnswerBudget{}); len(again) != 0 {
				t.Errorf("it is said again: %v", codes(again[0]))
			}
		})
	}
}

// countingFS counts what is opened and looked up.
type countingFS struct {
	chain.FS
	opened atomic.Int64
}

func (f *countingFS) OpenDir(path string) (chain.Dir, error) {
	f.opened.Add(1)
	return f.FS.OpenDir(path)
}

func TestSessionsAreForgotten(t *testing.T) {
	t.Parallel()
	var dropped []string
	m := sessions{dropped: func(s *session) { dropped = append(dropped, s.key.session) }}
	key := func(id string) sessionKey { return sessionKey{session: id} }
	first := m.of(key("0"))
	for i := range maxSessions {
		m.of(key(strconv.Itoa(i)))
	}
	if m.of(key("0")) != first {
		t.Fatal("the first session is forgotten too early")
	}
	m.of(key("one more"))
	for range 2 {
		m.forget(func(k sessionKey) bool { return k == key("2") })
	}
	if m.known(key("1").text()) != nil || m.known(key("0").text()) != first || len(m.recent) != maxSessions-1 {
		t.Errorf("%d sessions; session 1 is there: %t", len(m.recent), m.known(key("1").text()) != nil)
	}
	if strings.Join(dropped, " ") != "1 2" {
		t.Errorf("dropped are %q", dropped)
	}
}

func TestDirectoriesOfASessionAreBounded(t *testing.T) {
	t.Parallel()
	s := newSession(sessionKey{})
	for i := range maxBlocks + 3 {
		s.keep(strconv.Itoa(i), &block{chars: i})
	}
	s.keep("5", s.blocks["5"])
	if len(s.blocks) != maxBlocks || len(s.order) != maxBlocks || s.dir() != "5" || s.latest().chars != 5 {
		t.Errorf("%d blocks, order %q", len(s.blocks), s.order)
	}
}

func TestAbandonedCall(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"AGENTS.md": "x"})
	s, err := settingsOf(nil, noVariables)
	if err != nil {
		t.Fatal(err)
	}
	d := newDocs(powers{view: chain.OS{}}, s, &phases.Configuration{})
	t.Cleanup(d.watcher.Close)
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	where := inSession("s", base)
	call := &sdk.Call{Dispatch: &phases.Dispatch{Context: where}}
	cancel(gone)
	if _, err := d.prompt(ctx, call, nil); !errors.Is(err, gone) {
		t.Errorf("error is %v", err)
	}
	key, _ := keyOf(&where)
	if known := d.sessions.known(key.text()); known != nil && known.latest() != nil {
		t.Error("an answer that nobody got is remembered")
	}
	if cs, err := d.prompt(t.Context(), call, nil); err != nil || len(cs) != 1 {
		t.Errorf("the next turn gets %d contributions, error %v", len(cs), err)
	}
}
