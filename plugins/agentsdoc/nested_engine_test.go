package agentsdoc_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/engine/hostservice"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// named are the files that reminders name, below a directory, one list a reminder.
func named(base string, list []phases.MergedReminder) []string {
	var out []string
	for _, r := range list {
		var files []string
		for line := range strings.Lines(r.Text) {
			if path, ok := strings.CutPrefix(line, "- "+base+"/"); ok {
				path, _, _ = strings.Cut(path, " (")
				files = append(files, path)
			}
		}
		out = append(out, r.Type+": "+strings.Join(files, " "))
	}
	return out
}

// nestedTree is a tree with files beside the way to its working directory.
func nestedTree(tb testing.TB) string {
	tb.Helper()
	return build(tb, map[string]string{
		".git/HEAD": "", "AGENTS.md": "top", "web/AGENTS.md": "web", "web/ui/AGENTS.md": "ui", "web/ui/x.ts": "",
		"api/AGENTS.md": "api", "api/x.go": "", "vendor/lib/AGENTS.md": "not ours", "sub/.git/HEAD": "", "sub/AGENTS.md": "another repository",
	})
}

// TestNested: files of directories that tools touch come once for each content.
func TestNested(t *testing.T) {
	t.Parallel()
	for _, delivery := range []string{"body", "reminder"} {
		t.Run(delivery, func(t *testing.T) {
			t.Parallel()
			base := nestedTree(t)
			eng := inside(t, "{global: false, resolver: {delivery: "+delivery+"}}", runtime.Options{})
			h := session(t, eng, "s", base)
			first := section(h.compile())
			steps := []struct {
				name  string
				do    func()
				paths []string
				want  []string
			}{
				{name: "nothing touched"},
				{name: "in the chain", paths: []string{base + "/main.go"}},
				{name: "two below", paths: []string{base + "/web/ui/x.ts"}, want: []string{"agents.resolve.paths: web/AGENTS.md web/ui/AGENTS.md"}},
				{name: "again", paths: []string{"web/ui/x.ts", base + "/web"}},
				{name: "several paths", paths: []string{base + "/api/x.go", base + "/web/x"}, want: []string{"agents.resolve.paths: api/AGENTS.md"}},
				{name: "boundaries", paths: []string{base + "/vendor/lib/x", "/etc/passwd", filepath.Dir(base) + "/x"}},
				{name: "edited", do: func() { write(t, base+"/api/AGENTS.md", "api, edited") }, paths: []string{"api"}, want: []string{"agents.resolve.paths: api/AGENTS.md"}},
				{name: "a new file", do: func() { write(t, base+"/api/v2/AGENTS.md", "v2") }, paths: []string{"api/v2/x/y/z.go"}, want: []string{"agents.resolve.paths: api/v2/AGENTS.md"}},
				{name: "as it was delivered before", do: func() { write(t, base+"/api/v2/AGENTS.md", "v2") }, paths: []string{"api/v2"}},
			}
			for _, step := range steps {
				if step.do != nil {
					step.do()
				}
				got := reminders(h.touch(step.paths...))
				if diff := cmp.Diff(named(base, got), step.want); diff != "" {
					t.Errorf("%s (-got +want)\n%s", step.name, diff)
				}
				for _, r := range got {
					if hasText := strings.Contains(r.Text, "[source: "); hasText != (delivery == "body") {
						t.Errorf("%s: with its text: %t\n%s", step.name, hasText, r.Text)
					}
				}
			}
			if again := section(h.compile()); again != first {
				t.Errorf("the prompt is another one\n%s", cmp.Diff(again, first))
			}
		})
	}
}

// TestEpochs: after a compaction everything may come again.
func TestEpochs(t *testing.T) {
	t.Parallel()
	base := nestedTree(t)
	eng := inside(t, "{global: false}", runtime.Options{})
	h := session(t, eng, "s", base)
	first := section(h.compile())
	touched := func() int { return len(reminders(h.touch("api/x.go"))) }
	if n := touched() + touched(); n != 1 {
		t.Fatalf("%d reminders", n)
	}
	write(t, base+"/AGENTS.md", "top, edited")
	if _, err := h.turn().Dispatch(t.Context(), &phases.PostCompactionInput{}); err != nil {
		t.Fatal(err)
	}
	h.where.Epoch++
	done := h.compile()
	if got := section(done); got == first || !strings.Contains(got, "top, edited") || len(done.Reminders) != 0 {
		t.Errorf("reminders are %v, the text is\n%s", done.Reminders, got)
	}
	if n := touched() + touched(); n != 1 {
		t.Errorf("in the new epoch %d reminders", n)
	}
}

// TestWithoutSession: a turn is what remembers then.
func TestWithoutSession(t *testing.T) {
	t.Parallel()
	base := nestedTree(t)
	eng := inside(t, "{global: false}", runtime.Options{})
	h := &host{TB: t, eng: eng, where: phases.Context{WorkspaceID: "w", Dir: base}}
	h.compile()
	for range 2 { // each is a turn with two calls
		if diff := cmp.Diff(named(base, reminders(h.touch("web/x"))), []string{"agents.resolve.paths: AGENTS.md web/AGENTS.md"}); diff != "" {
			t.Errorf("(-got +want)\n%s", diff)
		}
	}
}

// TestResume: a session that is taken up again is told what changed, also by
// another engine, and also when the host alone has the state.
func TestResume(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		do   func(t *testing.T, base string, where *phases.Context)
		want []string
	}{
		{"nothing", func(*testing.T, string, *phases.Context) {}, nil},
		{"edited", func(t *testing.T, base string, _ *phases.Context) { write(t, base+"/AGENTS.md", "edited") }, []string{"- $/AGENTS.md (mtime"}},
		{"another directory", func(_ *testing.T, base string, where *phases.Context) { where.Dir = base + "/api" }, []string{
			"- cwd: $ -> $/api", "- $/api/AGENTS.md (mtime",
		}},
		{"another root", func(t *testing.T, base string, where *phases.Context) {
			where.Dir = base + "/sub"
		}, []string{"- root: $ -> $/sub", "- $/sub/AGENTS.md", "No longer in scope:\n- $/AGENTS.md"}},
		{"removed", func(t *testing.T, base string, _ *phases.Context) {
			if err := os.Remove(base + "/AGENTS.md"); err != nil {
				t.Fatal(err)
			}
		}, []string{"No longer in scope:\n- $/AGENTS.md"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := nestedTree(t)
			store := hostservice.NewMemoryState()
			first := session(t, inside(t, "{global: false}", runtime.Options{State: store}), "s", base)
			text := section(first.compile())
			where := first.where
			tt.do(t, base, &where)
			eng := inside(t, "{global: false}", runtime.Options{State: store})
			s, err := eng.ResumeSession(t.Context(), where, &phases.SessionResumeInput{})
			if err != nil {
				t.Fatal(err)
			}
			got := s.Outcome.Merged.Reminders
			if len(got) != min(len(tt.want), 1) || len(got) > 0 && got[0].Type != "session.resume.diff" {
				t.Fatalf("reminders are %+v", got)
			}
			for _, want := range tt.want {
				if want = strings.ReplaceAll(want, "$", base); !strings.Contains(got[0].Text, want) {
					t.Errorf("it does not say %q:\n%s", want, got[0].Text)
				}
			}
			h := &host{TB: t, eng: eng, where: where}
			done := h.compile()
			if now := section(session(t, eng, "another", where.Dir).compile()); section(done) != now || tt.want == nil && now != text {
				t.Errorf("the text is not that of the files:\n%s", section(done))
			}
			if len(done.Reminders) != len(got) || len(got) > 0 && done.Reminders[0].Text != got[0].Text { // the session's next prompt brings it
				t.Errorf("the prompt has the reminders %+v", done.Reminders)
			}
			if again := h.compile(); len(again.Reminders) != 0 {
				t.Errorf("it is told again: %+v", again.Reminders)
			}
			if _, err := s.End(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestResumeByTheHostsState: what a host has kept by itself serves, too.
func TestResumeByTheHostsState(t *testing.T) {
	t.Parallel()
	base := nestedTree(t)
	store := hostservice.NewMemoryState()
	session(t, inside(t, "{global: false}", runtime.Options{State: store}), "s", base).compile()
	kept, err := store.GetState(t.Context(), phases.StateKey{WorkspaceID: "w", SessionID: "s", Plugin: "agentsdoc"})
	if err != nil || kept == nil {
		t.Fatalf("nothing is kept: %v", err)
	}
	write(t, base+"/AGENTS.md", "edited")
	var envelope struct {
		Nested json.RawMessage `json:"nested"`
	}
	if err := json.Unmarshal(kept, &envelope); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		state json.RawMessage
		want  int
	}{
		{"as the service keeps it", kept, 1},
		{"as the command line writes it", envelope.Nested, 1},
		{"somebody else's", json.RawMessage(`{"turns":3}`), 0},
		{"none", nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			eng := inside(t, "{global: false}", runtime.Options{})
			where := phases.Context{WorkspaceID: "w", SessionID: "s", ThreadID: "s", Dir: base}
			s, err := eng.ResumeSession(t.Context(), where, &phases.SessionResumeInput{State: tt.state})
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Outcome.Merged.Reminders; len(got) != tt.want || tt.want > 0 && !strings.Contains(got[0].Text, base+"/AGENTS.md") {
				t.Errorf("reminders are %+v", got)
			}
			if _, err := s.End(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestAnotherDirectory: a session that goes on elsewhere is told so.
func TestAnotherDirectory(t *testing.T) {
	t.Parallel()
	base := nestedTree(t)
	eng := inside(t, "{global: false}", runtime.Options{})
	h := session(t, eng, "s", base+"/api")
	first := section(h.compile())
	h.where.Dir = base + "/web/ui"
	done := h.compile()
	if len(done.Reminders) != 1 || done.Reminders[0].Type != "session.resume.diff" ||
		!strings.Contains(done.Reminders[0].Text, "- cwd: "+base+"/api -> "+base+"/web/ui") ||
		!strings.Contains(done.Reminders[0].Text, "No longer in scope:\n- "+base+"/api/AGENTS.md") {
		t.Errorf("reminders are %+v", done.Reminders)
	}
	if text := section(done); !strings.Contains(text, "\nui\n") || strings.Contains(text, "\napi\n") {
		t.Errorf("the text is\n%s", text)
	}
	if again := h.compile(); len(again.Reminders) != 0 || section(again) != section(done) {
		t.Errorf("then the reminders are %+v", again.Reminders)
	}
	h.where.Dir = base + "/api"
	if back := h.compile(); section(back) != first || len(back.Reminders) != 1 {
		t.Errorf("back again the reminders are %+v, the text is\n%s", back.Reminders, section(back))
	}
}

// TestNewRoot: a marker that appears in between makes another tree.
func TestNewRoot(t *testing.T) {
	t.Parallel()
	base := nestedTree(t)
	eng := inside(t, "{global: false, watch: false}", runtime.Options{})
	h := session(t, eng, "s", base+"/web/ui")
	first := section(h.compile())
	write(t, base+"/web/.git/HEAD", "")
	done := h.compile()
	if section(done) != first || len(done.Reminders) != 1 || !strings.Contains(done.Reminders[0].Text, "- root: "+base+" -> "+base+"/web") {
		t.Errorf("reminders are %+v", done.Reminders)
	}
	if again := h.compile(); len(again.Reminders) != 0 {
		t.Errorf("then the reminders are %+v", again.Reminders)
	}
}
