package agentsdoc_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/engine/hostservice"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// subtaskTree is a tree with a file everywhere, and the operator's beside it.
func subtaskTree(tb testing.TB) string {
	tb.Helper()
	return build(tb, map[string]string{
		"managed.md": "house rules", "r/.git/HEAD": "", "r/AGENTS.md": "top", "r/a/AGENTS.md": "deep", "r/a/b/AGENTS.md": "deeper", "r/b/AGENTS.md": "aside",
	})
}

// TestSubtaskOfAnotherSession: what a sub-task is given stays that, also when the
// plugin begins anew and when the sub-task is taken up again.
func TestSubtaskOfAnotherSession(t *testing.T) {
	t.Parallel()
	tests := []struct {
		subtasks string
		has      []string
		lacks    []string
		resumed  string // what the reminder says after an edit
	}{
		{"inherit", []string{"\nhouse rules\n", "\ntop\n"}, []string{"deep"}, "r/AGENTS.md (mtime"},
		{"managed_only", []string{"\nhouse rules\n"}, []string{"\ntop\n", "deep"}, ""},
		{"none", nil, []string{"house rules", "\ntop\n", "deep"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.subtasks, func(t *testing.T) {
			t.Parallel()
			base, store := subtaskTree(t), hostservice.NewMemoryState()
			fresh := func() *runtime.Engine {
				return inside(t, `{global: false, managed: "`+base+`/managed.md", subtasks: `+tt.subtasks+`}`, runtime.Options{State: store})
			}
			eng := fresh()
			session(t, eng, "parent", base+"/r").compile()
			h := session(t, eng, "child", base+"/r/a")
			h.where.ParentSessionID = "parent"
			text := section(h.compile())
			for _, want := range tt.has {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in the text:\n%s", want, text)
				}
			}
			for _, other := range tt.lacks {
				if strings.Contains(text, other) {
					t.Errorf("%q is in the text:\n%s", other, text)
				}
			}
			h.eng = fresh()
			for range 2 { // the first finds out what the process before it knew
				done := h.compile()
				if section(done) != text || len(done.Reminders) != 0 {
					t.Errorf("by another process the reminders are %+v, the text is\n%s", done.Reminders, section(done))
				}
			}
			write(t, base+"/r/AGENTS.md", "top, edited")
			s, err := fresh().ResumeSession(t.Context(), h.where, &phases.SessionResumeInput{})
			if err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			for _, r := range s.Outcome.Merged.Reminders {
				said.WriteString(r.Text)
			}
			if got := said.String(); !strings.Contains(got, tt.resumed) || tt.resumed == "" && got != "" || strings.Contains(got, "r/a/") {
				t.Errorf("resumed, it is told %q", got)
			}
			if _, err := s.End(t.Context(), ""); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSubtaskInTheSession: sub-tasks that run in the session of their parent are
// conversations of their own, which neither take from the parent nor give to it.
func TestSubtaskInTheSession(t *testing.T) {
	t.Parallel()
	base := subtaskTree(t)
	tests := []struct {
		name, subtasks string
		sub            func(*phases.Context)
		same           bool // the parent's bytes
		touched        []string
	}{
		{"by its mode", "inherit", func(c *phases.Context) { c.Mode, c.TaskID = phases.ModeTask, "1" }, true, []string{"agents.resolve.paths: r/b/AGENTS.md"}},
		{"by its thread", "inherit", func(c *phases.Context) { c.ThreadID, c.ConversationThreadID = "sub", "s" }, true, []string{"agents.resolve.paths: r/b/AGENTS.md"}},
		{"elsewhere", "inherit", func(c *phases.Context) { c.Mode, c.Dir = phases.ModeTask, base+"/r/b" }, true, []string{"agents.resolve.paths: r/b/AGENTS.md"}},
		{"the operator's file", "managed_only", func(c *phases.Context) { c.Mode = phases.ModeTask }, false, nil},
		{"nothing", "none", func(c *phases.Context) { c.Mode = phases.ModeTask }, false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			eng := inside(t, `{global: false, managed: "`+base+`/managed.md", subtasks: `+tt.subtasks+`}`, runtime.Options{})
			parent := session(t, eng, "s", base+"/r/a")
			want := section(parent.compile())
			if n := len(reminders(parent.touch(base + "/r/b/x"))); n != 1 {
				t.Fatalf("%d reminders for the parent", n)
			}
			sub := &host{TB: t, eng: eng, where: parent.where, turns: 100}
			tt.sub(&sub.where)
			for range 3 {
				done := sub.compile()
				if same := section(done) == want; same != tt.same || len(done.Reminders) != 0 {
					t.Errorf("the parent's bytes: %t, want %t; reminders are %+v, the text is\n%s", same, tt.same, done.Reminders, section(done))
				}
				if done = parent.compile(); section(done) != want || len(done.Reminders) != 0 {
					t.Errorf("the parent is told %+v, and has the text\n%s", done.Reminders, section(done))
				}
			}
			if diff := cmp.Diff(named(base, reminders(sub.touch(base+"/r/b/x", base+"/r/a/x"))), tt.touched); diff != "" {
				t.Errorf("touched (-got +want)\n%s", diff)
			}
		})
	}
}
