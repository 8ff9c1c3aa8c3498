package agentsdoc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEditsShow: whatever way a file of the chain changes, the watch tells of it,
// the next turn says it, and the turn after that is steady again.
func TestEditsShow(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"r/.git/HEAD": "", "r/AGENTS.md": "one", "r/a/AGENTS.md": "deep", "r/a/b/x": "", "docs/x": ""})
	at := func(path string) string { return filepath.Join(base, filepath.FromSlash(path)) }
	do := func(t *testing.T, errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	steps := []struct {
		name string
		do   func(t *testing.T)
		want string // is part of what is told
	}{
		{"written", func(t *testing.T) { write(t, at("r/AGENTS.md"), "e1") }, "\ne1"},
		{"written at the same length", func(t *testing.T) { write(t, at("r/AGENTS.md"), "e2") }, "\ne2"},
		{"replaced", func(t *testing.T) {
			write(t, at("r/.new"), "e3")
			do(t, os.Rename(at("r/.new"), at("r/AGENTS.md")))
		}, "\ne3"},
		{"an override", func(t *testing.T) { write(t, at("r/a/AGENTS.override.md"), "over") }, "\nover"},
		{"no override any more", func(t *testing.T) { do(t, os.Remove(at("r/a/AGENTS.override.md"))) }, "AGENTS.override.md (removed)"},
		{"a personal file", func(t *testing.T) { write(t, at("r/a/AGENTS.local.md"), "mine") }, "\nmine"},
		{"another directory of the name", func(t *testing.T) {
			do(t, os.Rename(at("r/a"), at("docs/old")), os.MkdirAll(at("r/a/b"), 0o755))
			write(t, at("r/a/AGENTS.md"), "another")
		}, "\nanother"},
		{"a file in that", func(t *testing.T) { write(t, at("r/a/b/AGENTS.md"), "deepest") }, "\ndeepest"},
		{"removed", func(t *testing.T) { do(t, os.Remove(at("r/a/b/AGENTS.md"))) }, "b/AGENTS.md (removed)"},
		{"a link", func(t *testing.T) {
			write(t, at("r/docs/x.md"), "linked")
			do(t, os.Symlink("../../docs/x.md", at("r/a/b/AGENTS.md")))
		}, "\nlinked"},
		{"what the link leads to", func(t *testing.T) { write(t, at("r/docs/x.md"), "linked, edited") }, "\nlinked, edited"},
		{"a nearer marker", func(t *testing.T) { do(t, os.Mkdir(at("r/a/.git"), 0o755)) }, "- root: "},
		{"and none again", func(t *testing.T) { do(t, os.Remove(at("r/a/.git"))) }, "- root: "},
	}
	eng, told := steadyEngine(t, powers{})
	where := inSession("s", at("r/a/b"))
	begun(t, eng, where)
	text := sectionsOf(asked(t, eng, where))
	for _, step := range steps {
		for len(told) > 0 {
			<-told
		}
		step.do(t)
		var said strings.Builder
		for !strings.Contains(said.String(), step.want) { // an edit of several steps may be noticed in between
			forgot(t, told)
			out := asked(t, eng, where)
			for _, r := range out.Merged.Reminders {
				said.WriteString(r.Text)
			}
			if sectionsOf(out) != text {
				t.Fatalf("%s: the text is another one", step.name)
			}
		}
		asked(t, eng, where)
		if out := asked(t, eng, where); states(out) != "changed cached, prompt cached" || len(out.Merged.Reminders) != 0 {
			t.Errorf("%s: then the states are %s, reminders %v", step.name, states(out), out.Merged.Reminders)
		}
	}
	where.Epoch++
	if now := sectionsOf(asked(t, eng, where)); now == text || !strings.Contains(now, "linked, edited") {
		t.Errorf("the next epoch has the text\n%s", now)
	}
}
