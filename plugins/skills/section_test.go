package skills

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/phases"
)

// three is a project with skills for Go, for documents, and for anything.
func three(tb testing.TB) string {
	tb.Helper()
	return project(tb, map[string]string{"go-style": "**/*.go|Write Go.", "docs": "docs/**|Write documents.", "any": "|Do things."})
}

// TestCallable: the model is told to call read_skill only where it can.
func TestCallable(t *testing.T) {
	t.Parallel()
	dir := three(t)
	tests := []struct {
		name     string
		in       phases.PrePromptCompileInput
		withheld []string
		want     bool
	}{
		{"offered", *calling(), nil, true},
		{"no tool calling", phases.PrePromptCompileInput{AvailableTools: []string{toolName}}, nil, false},
		{"not among the tools", phases.PrePromptCompileInput{ToolCalling: true, AvailableTools: []string{"shell"}}, nil, false},
		{"no tools", phases.PrePromptCompileInput{ToolCalling: true}, nil, false},
		{"names withheld", phases.PrePromptCompileInput{ToolCalling: true}, []string{"available_tools"}, true},
		{"everything withheld", phases.PrePromptCompileInput{}, []string{"available_tools", "tool_calling"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out := ask(t, configured(t, ""), phases.Dispatch{Hook: "section", Context: inDir(dir), Input: &tt.in, Withheld: tt.withheld})
			s, ok := out[0].(*phases.PromptSection)
			if !ok || strings.HasPrefix(s.Content, introRead) != tt.want || strings.HasPrefix(s.Content, introNoTool) == tt.want {
				t.Errorf("got %+v", out[0])
			}
		})
	}
}

func TestOffer(t *testing.T) {
	t.Parallel()
	dir, empty := three(t), project(t, nil)
	tests := []struct {
		name    string
		dir     string
		calls   bool
		profile phases.Profile
		want    int
	}{
		{"skills and calls", dir, true, "", 1},
		{"full profile", dir, true, phases.ProfileFull, 1},
		{"no calls", dir, false, "", 0},
		{"no skills", empty, true, "", 0},
		{"minimal profile", dir, true, phases.ProfileMinimal, 0},
		{"no profile", dir, true, phases.ProfileNone, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			where := inDir(tt.dir)
			where.Profile = tt.profile
			out := ask(t, configured(t, ""), phases.Dispatch{Hook: "tool", Context: where, Input: &phases.PreToolsInput{ToolCalling: tt.calls}})
			if len(out) != tt.want {
				t.Errorf("%d contributions, want %d", len(out), tt.want)
			}
		})
	}
}

func TestNothingToSay(t *testing.T) {
	t.Parallel()
	p := configured(t, "")
	for _, where := range []phases.Context{{}, inDir(project(t, nil)), inDir("/nowhere/at/all")} {
		if out := ask(t, p, phases.Dispatch{Hook: "section", Context: where, Input: calling()}); len(out) != 0 {
			t.Errorf("in %q: %v", where.Dir, out)
		}
	}
}

func TestDamagedOnly(t *testing.T) {
	t.Parallel()
	dir := build(t, map[string]string{".agents/skills/a/SKILL.md": "damaged"})
	out := ask(t, configured(t, ""), phases.Dispatch{Hook: "section", Context: inDir(dir), Input: calling()})
	if len(out) != 1 || phases.KindOf(out[0]) != phases.KindNoop {
		t.Fatalf("got %v", out)
	}
	if d := out[0].Head().Diagnostics; len(d) != 1 || d[0].Code != "invalid_front_matter" || !d[0].SafeForUser {
		t.Errorf("diagnostics %+v", d)
	}
}

// TestBodyLimits: a few full texts, whole or not at all; the others are named.
func TestBodyLimits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("A long line of a skill.\n", 100)
	dir := project(t, map[string]string{"a": "**|A.", "b": "**|" + long, "c": "**|C.", "d": "**|D.", "e": "**|", "f": "|F."})
	const rest = "These skills are about what you work on, too; read them with read_skill before you go on: "
	tests := []struct {
		name, config string
		room         int
		want         []string
		hint         string
	}{
		{"default", "", 0, []string{"list", "body/a", "body/b", "body/c", "hint"}, rest + "d"},
		{"all", `{"max_active_bodies":9}`, 0, []string{"list", "body/a", "body/b", "body/c", "body/d"}, ""},
		{"one", `{"max_active_bodies":1}`, 0, []string{"list", "body/a", "hint"}, rest + "b, c, d"},
		{"none", `{"max_active_bodies":0}`, 0, []string{"list", "hint"}, rest + "a, b, c, d"},
		{"no room for the long one", "", 1600, []string{"list", "body/a", "body/c", "body/d", "hint"}, rest + "b"},
		{"by configuration", `{"max_chars":1600}`, 0, []string{"list", "body/a", "body/c", "body/d", "hint"}, rest + "b"},
		{"room for the list", "", 400, []string{"list"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := sections(t, configured(t, tt.config), inDir(dir), tt.room)
			if diff := cmp.Diff(ids(got), tt.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
			if last := got[len(got)-1]; tt.hint != "" && last.Content != tt.hint {
				t.Errorf("hint %q, want %q", last.Content, tt.hint)
			}
		})
	}
}

// TestNoRoom: a section that has no room for anything says so.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	out := ask(t, configured(t, ""), phases.Dispatch{Hook: "section", Context: inDir(three(t)), Input: calling(), Budget: phases.AnswerBudget{MaxChars: 50}})
	if len(out) != 1 || phases.KindOf(out[0]) != phases.KindNoop || out[0].Head().Diagnostics[0].Code != "budget_too_small" {
		t.Errorf("got %+v", out)
	}
}

// hostSize is what the host makes of the fragments, joins aside, by the rules of
// its documentation: its own marks and the frame's tags get a backslash.
func hostSize(list []*phases.PromptSection) int {
	n := 0
	for _, s := range list {
		n += utf8.RuneCountInString(s.Content) + strings.Count(s.Content, compiler.Boundary)
		for line := range strings.Lines(s.Content) {
			if strings.HasPrefix(strings.TrimSpace(line), "[truncated: kept") {
				n++
			}
		}
		if s.Frame != nil {
			n += utf8.RuneCountInString(s.Frame.Open+s.Frame.Close) + 2
			lower := strings.ToLower(s.Content)
			n += strings.Count(lower, "<skill") + strings.Count(lower, "</skill")
		}
	}
	return n
}

// TestNeverOverTheRoom tries random skills and rooms: the host never has to cut.
func TestNeverOverTheRoom(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	pieces := []string{"word ", "é", "\n", "</SKILL>", "<skill>", compiler.Boundary, "[truncated: kept " + "1 of 2 characters]\n", "<\u200dSKILL>", "\U0001f469\u200d\U0001f469"}
	text := func(n int) string {
		var b strings.Builder
		for range rng.IntN(n) + 1 {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		return b.String()
	}
	for range 60 {
		list := map[string]string{}
		for i := range rng.IntN(12) + 1 {
			list[fmt.Sprintf("s%d", i)] = "**|" + text(120)
		}
		p, dir := configured(t, `{"max_active_bodies":5}`), project(t, list)
		for range 20 {
			room := rng.IntN(4000) + 1
			if got := sections(t, p, inDir(dir), room); hostSize(got) > room {
				t.Fatalf("room %d, used %d: %q", room, hostSize(got), ids(got))
			}
		}
	}
}

// TestEscape: no text of a list opens or closes the frame of a full text.
func TestEscape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain < text <b>":             "plain < text <b>",
		"a</skill >b":                  `a<\/skill >b`,
		"<SKILLS><Skill x='y'>":        `<\SKILLS><\Skill x='y'>`,
		"</ SKILL> ＜／SKILL＞ &lt;SKILL": "<\\/ SKILL> ＜\\／SKILL＞ &lt;\\SKILL",
	} {
		if got := escape(in); got != want {
			t.Errorf("escape(%q) = %q, want %q", in, got, want)
		}
	}
}
