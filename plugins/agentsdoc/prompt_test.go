package agentsdoc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/sdk"
)

func TestSection(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"r/.git/HEAD": "", "r/AGENTS.md": "Be brief.\n", "r/a/AGENTS.md": "Use tabs.\n", "r/a/b/x.go": ""})
	p := configured(t, "", nil)
	got := askSection(t, p, inDir(base, "r/a/b"), phases.Room{MaxChars: 16_000})
	content := got.Content
	got.Content = ""
	want := &phases.PromptSection{
		SectionID: "agents_md", Title: "AGENTS.md", Stability: phases.StabilityDynamic,
		Frame: &phases.Frame{Open: preamble + "\n\n<AGENTS_MD>", Close: "</AGENTS_MD>"},
		SourceRefs: []phases.SourceRef{
			{Kind: "file", ID: filepath.Join(base, "r/AGENTS.md"), Label: "AGENTS.md"},
			{Kind: "file", ID: filepath.Join(base, "r/a/AGENTS.md"), Label: "a/AGENTS.md"},
		},
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	end := "[source: \"AGENTS.md\", scope project, kept 10 of 10 bytes]\nBe brief.\n" +
		"[source: \"a/AGENTS.md\", scope project, kept 10 of 10 bytes]\nUse tabs."
	if !strings.HasSuffix(content, end) {
		t.Errorf("the content is\n%s\nwant it to end in\n%s", content, end)
	}
	message := Message(content + "\n")
	if want := preamble + "\n\n<AGENTS_MD>\n" + content + "\n</AGENTS_MD>"; message != want {
		t.Errorf("the message is\n%s", message)
	}
	if n := strings.Count(preamble, ". ") + 1; n != 2 || !strings.HasSuffix(preamble, ".") {
		t.Errorf("the preamble has %d sentences", n)
	}
}

func TestNothingToSay(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"r/.git/HEAD": "", "r/a/x": "", "n/.git/HEAD": "", "n/agents.md": "near", "e/AGENTS.md": "\n \n"})
	tests := []struct {
		name, config string
		dir          string
		room         int
		codes        []string // of a noop; nil is no contribution
	}{
		{"no folder in the context", "", "", 0, nil},
		{"no file", "", "r/a", 0, nil},
		{"blank file", "", "e", 0, nil},
		{"near miss only", "", "n", 0, []string{"near_miss_name"}},
		{"folder is not there", "", "r/gone", 0, []string{"read_error"}},
		{"budget of nothing", `{"budget":{"total":0},"names":["x"]}`, "r/a", 0, nil},
		{"room smaller than the frame", `{"names":["near.md","agents.md"]}`, "n", 10, []string{"omitted_budget"}},
		{"root elsewhere", `{"root":"` + base + `/e"}`, "r", 0, []string{"root_refused"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			where := phases.Context{}
			if tt.dir != "" {
				where = inDir(base, tt.dir)
			}
			c := ask(t, configured(t, tt.config, nil), where, phases.Room{MaxChars: tt.room})
			if tt.codes == nil {
				if c != nil {
					t.Errorf("got %T with %v, want nothing", c, codes(c))
				}
				return
			}
			if _, ok := c.(*phases.Noop); !ok {
				t.Fatalf("got %T, want a noop", c)
			}
			if diff := cmp.Diff(codes(c), tt.codes); diff != "" {
				t.Errorf("codes (-got +want)\n%s", diff)
			}
		})
	}
}

func TestDiagnosticsNameThePath(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"r/.git/HEAD": "", "r/AGENTS.md": "bad \xff byte", "r/a\u202e[b/AGENTS.md": "x"})
	p := configured(t, "", nil)
	got := askSection(t, p, inDir(base, "r/a\u202e[b"), phases.Room{})
	want := []phases.Diagnostic{{
		Code: "invalid_utf8", Severity: phases.SeverityWarning, Message: filepath.Join(base, "r/AGENTS.md") + ": ", SafeForUser: true,
	}}
	for i := range got.Diagnostics {
		path, _, _ := strings.Cut(got.Diagnostics[i].Message, ": ")
		got.Diagnostics[i].Message = path + ": "
	}
	if diff := cmp.Diff(got.Diagnostics, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	ref := phases.SourceRef{Kind: "file", ID: base + `/r/a\u{202e}\u{5b}b/AGENTS.md`, Label: `a\u{202e}\u{5b}b/AGENTS.md`}
	if diff := cmp.Diff(got.SourceRefs[1], ref); diff != "" {
		t.Errorf("a path that reorders itself (-got +want)\n%s", diff)
	}
}

func TestCutIsReported(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{
		"r/.git/HEAD": "", "r/AGENTS.md": lines(900), "r/a/AGENTS.md": lines(400), "one/AGENTS.md": strings.Repeat("x", 33),
	})
	t.Run("by the room", func(t *testing.T) {
		t.Parallel()
		got := askSection(t, configured(t, "", nil), inDir(base, "r/a"), phases.Room{MaxChars: 8000})
		if got.Cut == nil || got.Cut.Kept != len(got.Content) || got.Cut.Original < 13_000 {
			t.Errorf("cut is %+v, the content has %d", got.Cut, len(got.Content))
		}
		if size := len(Message(got.Content + "\n")); size > 8000 || size < 7900 {
			t.Errorf("%d characters of 8000 are used", size)
		}
		if !strings.Contains(got.Content, "kept 4000 of 4000 bytes]") {
			t.Error("the nearest file is not whole")
		}
		if diff := cmp.Diff(codes(got), []string{"truncated"}); diff != "" {
			t.Errorf("codes (-got +want)\n%s", diff)
		}
	})
	t.Run("by the bytes", func(t *testing.T) {
		t.Parallel()
		got := askSection(t, configured(t, `{"budget":{"total":3000}}`, nil), inDir(base, "r/a"), phases.Room{MaxChars: 8000})
		if size := len(got.Content) + 1; got.Cut == nil || size > 3000 || size < 2900 {
			t.Errorf("cut is %+v, %d bytes of 3000 are used", got.Cut, size)
		}
	})
	t.Run("by one byte of one file", func(t *testing.T) {
		t.Parallel()
		got := askSection(t, configured(t, `{"budget":{"file":32}}`, nil), inDir(base, "one"), phases.Room{})
		if got.Cut == nil || got.Cut.Original <= got.Cut.Kept {
			t.Errorf("cut is %+v: the marker is longer than what it stands for, and still it is a cut", got.Cut)
		}
	})
	t.Run("not at all", func(t *testing.T) {
		t.Parallel()
		if got := askSection(t, configured(t, "", nil), inDir(base, "one"), phases.Room{}); got.Cut != nil {
			t.Errorf("cut is %+v", got.Cut)
		}
	})
}

func TestSessionKeepsItsBytes(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"r/.git/HEAD": "", "r/AGENTS.md": "one", "r/a/x": "", "s/.git/HEAD": ""})
	file := filepath.Join(base, "r/AGENTS.md")
	p := configured(t, "", nil)
	session := phases.Context{WorkspaceID: "w", SessionID: "s", Dir: filepath.Join(base, "r")}
	first := askSection(t, p, session, phases.Room{MaxChars: 5000})
	empty := session
	empty.Dir = filepath.Join(base, "s")
	if c := ask(t, p, empty, phases.Room{}); c != nil {
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
		{"next epoch", func(c *phases.Context) { c.Epoch++ }, 5000, false},
		{"another session", func(c *phases.Context) { c.SessionID = "t" }, 5000, false},
		{"another workspace", func(c *phases.Context) { c.WorkspaceID = "v" }, 5000, false},
		{"another folder", func(c *phases.Context) { c.Dir += "/a" }, 5000, false},
		{"another room", func(*phases.Context) {}, 5001, false},
		{"no session", func(c *phases.Context) { c.SessionID = "" }, 5000, false},
	}
	for _, tt := range tests {
		where := session
		tt.change(&where)
		got := askSection(t, p, where, phases.Room{MaxChars: tt.room})
		if same := got.Content == want; same != tt.same {
			t.Errorf("%s: same text: %t, want %t", tt.name, same, tt.same)
		}
		if strings.Contains(got.Content, "spoiled") || got.SourceRefs[0].ID != file {
			t.Errorf("%s: the answer is shared with the host", tt.name)
		}
	}
	if c := ask(t, p, empty, phases.Room{}); c != nil {
		t.Errorf("a session that began without files got %T", c)
	}
	reloaded := configured(t, "", nil)
	if got := askSection(t, reloaded, session, phases.Room{MaxChars: 5000}); got.Content == want {
		t.Error("a new configuration still gives the old text")
	}
}

// countingFS counts the folders that are opened by path.
type countingFS struct {
	chain.FS
	opened atomic.Int64
}

func (f *countingFS) OpenDir(path string) (chain.Dir, error) {
	f.opened.Add(1)
	return f.FS.OpenDir(path)
}

func TestNoReadingInSteadyTurns(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"AGENTS.md": "x", "empty/.git/HEAD": ""})
	view := &countingFS{FS: chain.OS{}}
	p := newPlugin(view, environment(nil))
	if _, err := p.Configure(t.Context(), &phases.Configuration{}); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", "empty"} {
		where := inDir(base, dir)
		where.SessionID = "s"
		ask(t, p, where, phases.Room{})
		first := view.opened.Load()
		ask(t, p, where, phases.Room{})
		if again := view.opened.Load(); first == 0 || again != first {
			t.Errorf("folder %q: %d folders opened at first, %d after the next turn", dir, first, again)
		}
		where.SessionID = ""
		if ask(t, p, where, phases.Room{}); view.opened.Load() == first {
			t.Errorf("folder %q: a turn without a session does not look afresh", dir)
		}
	}
}

func TestSessionsAreForgotten(t *testing.T) {
	t.Parallel()
	var m memory
	for i := range maxRemembered {
		m.keep(memoryKey{session: strconv.Itoa(i)}, &phases.Noop{})
	}
	if _, ok := m.get(memoryKey{session: "0"}); !ok {
		t.Fatal("the first session is forgotten too early")
	}
	m.keep(memoryKey{session: "one more"}, nil)
	if _, ok := m.get(memoryKey{session: "1"}); ok {
		t.Error("the session that was not asked for longest is still there")
	}
	if _, ok := m.get(memoryKey{session: "0"}); !ok || len(m.index) != maxRemembered || m.recent.Len() != maxRemembered {
		t.Errorf("session 0 is there: %t; %d answers, %d in order", ok, len(m.index), m.recent.Len())
	}
	if c, ok := m.get(memoryKey{session: "one more"}); !ok || c != nil {
		t.Errorf("nothing to say is remembered as %v, %t", c, ok)
	}
}

func TestTurnsOfASessionAtOnce(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"AGENTS.md": "0"})
	p := configured(t, "", nil)
	where := inDir(base)
	where.SessionID = "s"
	texts := make([]string, 16)
	var wg sync.WaitGroup
	for i := range texts {
		wg.Go(func() {
			_ = os.WriteFile(filepath.Join(base, "AGENTS.md"), []byte(strconv.Itoa(i)), 0o644)
			if s, ok := ask(t, p, where, phases.Room{}).(*phases.PromptSection); ok {
				texts[i] = s.Content
			}
		})
	}
	wg.Wait()
	// A file that is being replaced may be found empty, but all turns agree.
	for _, text := range texts[1:] {
		if text != texts[0] {
			t.Fatalf("two turns of a session got %q and %q", text, texts[0])
		}
	}
}

func TestAbandonedCall(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"AGENTS.md": "x"})
	p := newPrompter(chain.OS{}, Settings{Options: chain.Default(), MaxBytes: 1000})
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	where := inDir(base)
	where.SessionID = "s"
	call := &sdk.Call{Dispatch: &phases.Dispatch{Context: where}}
	cancel(gone)
	if _, err := p.answer(ctx, call, nil); !errors.Is(err, gone) {
		t.Errorf("error is %v", err)
	}
	if len(p.memory.index) != 0 {
		t.Error("an answer that nobody got is remembered")
	}
	if cs, err := p.answer(t.Context(), call, nil); err != nil || len(cs) != 1 || len(p.memory.index) != 1 {
		t.Errorf("the next turn gets %d contributions, error %v", len(cs), err)
	}
}

func TestDescription(t *testing.T) {
	t.Parallel()
	p := New()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	d, err := p.Configure(t.Context(), &phases.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	want := []phases.Hook{{
		Name: "prompt", Doc: d.Hooks[0].Doc, Phase: phases.PrePromptCompile, Kinds: []phases.Kind{phases.KindPromptSection}, Priority: 600,
		OnFailure: phases.OnFailure{Default: phases.FailClosed}, Idempotent: true, Budget: phases.TextBudget{Chars: 16_000},
		Visibility: phases.VisibilityInternal,
	}}
	if diff := cmp.Diff(d.Hooks, want); diff != "" {
		t.Errorf("hooks (-got +want)\n%s", diff)
	}
	off, err := p.Configure(t.Context(), &phases.Configuration{Config: []byte(`{"enabled":false}`)})
	if err != nil || len(off.Hooks) != 0 {
		t.Errorf("switched off: %d hooks, error %v", len(off.Hooks), err)
	}
}
