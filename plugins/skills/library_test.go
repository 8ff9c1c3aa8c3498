package skills

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/skillset"
	"github.com/grapnelhq/grapnel/phases"
)

func newTestLibrary(now func() time.Time) *library {
	return &library{options: skillset.Options{Directories: []string{".agents/skills"}, Markers: []string{".git"}}, given: func(string) []string { return nil }, now: now}
}

// TestLibraryKeeps: an unchanged tree is read once, and an edit is seen at the
// next question.
func TestLibraryKeeps(t *testing.T) {
	t.Parallel()
	dir := three(t)
	lib := newTestLibrary(later)
	first := lib.set(&phases.Context{Dir: dir})
	for range 5 {
		if lib.set(&phases.Context{Dir: dir}) != first {
			t.Fatal("a new set of an unchanged tree")
		}
	}
	write(t, filepath.Join(dir, ".agents/skills/any/SKILL.md"), skill("any", "", "Edited, and longer."))
	if got := lib.set(&phases.Context{Dir: dir}); got == first || got.Find("any").Body != "Edited, and longer." {
		t.Errorf("the edit is not seen: %+v", got.Find("any"))
	}
}

// TestYoungFiles: right after a change a second one may not show, so nothing is
// kept until the files have settled.
func TestYoungFiles(t *testing.T) {
	t.Parallel()
	dir := three(t)
	path := filepath.Join(dir, ".agents/skills/any/SKILL.md")
	lib := newTestLibrary(time.Now)
	first := lib.set(&phases.Context{Dir: dir})
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	// The same size, the same time, the same file: only reading tells.
	write(t, path, skill("any", "", "DO THINGS."))
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if !first.Fresh() {
		t.Skip("this file system shows the change")
	}
	if got := lib.set(&phases.Context{Dir: dir}).Find("any").Body; got != "DO THINGS." {
		t.Errorf("got the text of before: %q", got)
	}
}

func TestLibraryForgets(t *testing.T) {
	t.Parallel()
	dir := three(t)
	lib := newTestLibrary(later)
	set := func(i int) *skillset.Set { return lib.set(&phases.Context{Dir: filepath.Join(dir, strconv.Itoa(i))}) }
	var sets []*skillset.Set
	for i := range maxSets + 1 {
		write(t, filepath.Join(dir, strconv.Itoa(i), "keep"), "")
		sets = append(sets, set(i))
	}
	if len(lib.recent) != maxSets || set(1) != sets[1] || set(maxSets) != sets[maxSets] || set(0) == sets[0] {
		t.Errorf("%d sets are kept, want %d, and only the oldest is made anew", len(lib.recent), maxSets)
	}
}

// TestReadByAgent: what the agent lists by itself, from the same file or a copy, is not listed again, but reported.
func TestReadByAgent(t *testing.T) {
	t.Parallel()
	copied, other := skill("copied", "", "Same."), skill("other", "", "Ours.")
	dir := build(t, map[string]string{
		".git/HEAD": "", ".agents/skills/copied/SKILL.md": copied, ".claude/skills/copied/SKILL.md": copied,
		".agents/skills/other/SKILL.md": other, ".claude/skills/other/SKILL.md": skill("other", "", "Theirs."), "sub/.claude/skills/deep/SKILL.md": skill("deep", "", "x"),
	})
	home := build(t, map[string]string{".claude/skills/mine/SKILL.md": skill("mine", "", "x"), ".codex/skills/coded/SKILL.md": skill("coded", "", "x")})
	for _, tt := range []struct{ agent, more, want string }{
		{"claude-code", "", "coded other"},
		{"codex", "", "deep mine"},
		{"cursor", "", "coded copied deep mine other"},
		{"codex", `, "send_again": true`, "coded copied deep mine other"},
	} {
		p := newPlugin(environment(map[string]string{"HOME": home}), later)
		config := `{"directories": [".agents/skills", ".claude/skills", "~/.claude/skills", "~/.codex/skills"]` + tt.more + `}`
		if _, err := p.Configure(t.Context(), &phases.Configuration{Config: []byte(config)}); err != nil {
			t.Fatal(err)
		}
		where := inDir(filepath.Join(dir, "sub"))
		where.Flags = map[string]bool{phases.AgentFlag + tt.agent: true}
		var listed, left []string
		for _, c := range sections(t, p, where, 0) {
			for _, ref := range c.SourceRefs {
				listed = append(listed, filepath.Base(filepath.Dir(ref.ID)))
			}
			for _, d := range c.Diagnostics {
				left = append(left, d.Code)
			}
		}
		if got := strings.Join(listed, " "); got != tt.want || strings.Count(fmt.Sprint(left), "read_by_agent") != 5-len(listed) {
			t.Errorf("%s%s: listed %q, want %q; left out: %q", tt.agent, tt.more, got, tt.want, left)
		}
	}
}
