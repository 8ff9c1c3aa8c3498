package compiler

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// thread is an input with a stable part, a steady dynamic section and one that
// changes, counted in characters.
func thread() Input {
	return Input{
		Order: OrderCache, CountTokens: utf8.RuneCountInString, Tokenizer: "chars", Provider: "anthropic", Model: "m1",
		Host: HostTexts{Identity: strings.Repeat("i", 100), Safety: strings.Repeat("s", 100)},
		Sections: []phases.MergedSection{
			{SectionID: "agents_md", Owner: "agentsdoc", Content: strings.Repeat("a", 200)},
			{SectionID: "memory_recall", Owner: "memory", Content: "today"},
		},
		Tools: []phases.MergedTool{{Name: "t", Owner: "p", Definition: phases.Tool{Name: "t", Description: strings.Repeat("d", 50)}}},
	}
}

// followed compiles the second input with the first one's prompt as the previous.
func followed(t testing.TB, before, now Input, change func(p *Previous)) Output {
	t.Helper()
	p := inSession(mustCompile(t, before))
	p.Provider, p.Model = before.Provider, before.Model
	if change != nil {
		change(p)
	}
	now.Previous = p
	return mustCompile(t, now)
}

func TestPredict(t *testing.T) {
	t.Parallel()

	// What the parts of thread have in characters.
	const (
		tools   = len(`{"description":"","name":"t"}`) + 50
		stable  = len("## Identity\n\n") + 100 + len("## Safety\n\n") + 100
		agents  = len("## AGENTS.md\n\n") + 200
		recall  = len("## Memory Recall\n\n") + 5
		minimum = 100
	)
	explicit, implicit := CacheRules{MinimumTokens: minimum, Explicit: true, Lifetime: time.Minute}, CacheRules{MinimumTokens: minimum, Step: 64}
	down := func(n int) int { return n - n%64 }
	none := -1
	tests := []struct {
		name  string
		rules CacheRules
		now   func(in *Input)
		prev  func(p *Previous)
		want  int
		miss  manifest.Cause
	}{
		{"explicit: everything is the same", explicit, nil, nil, tools + stable, ""},
		{"implicit: everything is the same", implicit, nil, nil, down(tools + stable + agents + recall), ""},
		{"explicit: the previous plan went further", explicit, nil, func(p *Previous) {
			p.Breakpoints = append(p.Breakpoints, manifest.Breakpoint{After: manifest.AfterDynamic, SectionID: "agents_md"})
		}, tools + stable + agents, ""},
		{"implicit: the recall changed", implicit, func(in *Input) { in.Sections[1].Content = "other" }, nil, down(tools + stable + agents), "section_text"},
		{"explicit: the recall changed", explicit, func(in *Input) { in.Sections[1].Content = "other" }, nil, tools + stable, "section_text"},
		{"explicit: only the tools are the same", explicit, func(in *Input) { in.Host.Identity = "x" }, nil, 0, "section_text"},
		{"explicit: the tools are enough", CacheRules{MinimumTokens: 10, Explicit: true}, func(in *Input) { in.Host.Identity = "x" }, nil, tools, "section_text"},
		{"explicit: the previous plan kept no tools", CacheRules{Explicit: true}, func(in *Input) { in.Host.Identity = "x" }, func(p *Previous) {
			p.Breakpoints = p.Breakpoints[1:]
		}, 0, "section_text"},
		{"implicit: the safety text changed", implicit, func(in *Input) { in.Host.Safety = strings.Repeat("x", 100) }, nil, down(tools + 113), "section_text"},
		{"no minimum and no step", CacheRules{}, nil, nil, tools + stable + agents + recall + 4, ""},
		{"other tools", explicit, func(in *Input) { in.Tools[0].Hash = "sha256:1" }, nil, 0, "tools"},
		{"no tools any more", implicit, func(in *Input) { in.Tools = nil }, nil, 0, "tools"},
		{"another model", explicit, func(in *Input) { in.Model = "m2" }, nil, 0, "model"},
		{"another provider", explicit, func(in *Input) { in.Provider = "openai" }, nil, 0, "provider"},
		{"a model that was not known", explicit, nil, func(p *Previous) { p.Model, p.Provider = "", "" }, tools + stable, ""},
		{"a model that is not known", explicit, func(in *Input) { in.Model, in.Provider = "", "" }, nil, tools + stable, ""},
		{"as old as can be", explicit, nil, func(p *Previous) { p.Age = time.Minute }, tools + stable, ""},
		{"expired", explicit, nil, func(p *Previous) { p.Age = time.Minute + 1 }, 0, "expired"},
		{"a clock that went back", explicit, nil, func(p *Previous) { p.Age = -time.Hour }, tools + stable, ""},
		{"nobody knows the lifetime", implicit, nil, func(p *Previous) { p.Age = 1e6 * time.Hour }, down(tools + stable + agents + recall), ""},
		{"below the minimum", CacheRules{MinimumTokens: 1000}, nil, nil, 0, ""},
		{"below the minimum after a step down", CacheRules{MinimumTokens: tools + stable + agents + recall, Step: 1000}, nil, nil, 0, ""},
		{"nothing was there", explicit, nil, func(p *Previous) { p.Sections = nil }, none, ""},
		{"no rules", explicit, func(in *Input) { in.CacheRules = nil }, nil, none, ""},
		{"no tokenizer", explicit, func(in *Input) { in.CountTokens = nil }, nil, none, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			in := thread()
			in.CacheRules = &tt.rules
			if tt.now != nil {
				tt.now(&in)
			}
			out := followed(t, thread(), in, tt.prev)
			checkOutput(t, &out)
			got := none
			if p := out.Cache.Predicted; p != nil {
				got = *p
			}
			if got != tt.want || out.Cache.Cause != tt.miss {
				t.Errorf("predicted %d, miss %q; want %d, %q", got, out.Cache.Cause, tt.want, tt.miss)
			}
			if out.Cache.Model != in.Model || out.Cache.Provider != in.Provider {
				t.Errorf("recorded for %s, %s", out.Cache.Provider, out.Cache.Model)
			}
		})
	}
}

func TestBelowMinimum(t *testing.T) {
	t.Parallel()

	whole := mustCompile(t, thread())
	all := tokens(whole.Sections)
	const tool = len(`{"description":"","name":"t"}`) + 50
	tests := []struct {
		name  string
		rules CacheRules
		want  phases.Severity // empty: no remark
	}{
		{"explicit", CacheRules{MinimumTokens: all + tool + 1, Explicit: true}, phases.SeverityWarning},
		{"implicit", CacheRules{MinimumTokens: all + tool + 1}, phases.SeverityInfo},
		{"just enough", CacheRules{MinimumTokens: all + tool, Explicit: true}, ""},
		{"no minimum", CacheRules{Explicit: true}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			in := thread()
			in.CacheRules = &tt.rules
			out := mustCompile(t, in) // with no previous prompt: it is about this one
			i := slices.IndexFunc(out.Diagnostics, func(d phases.Diagnostic) bool { return d.Code == codeBelowMinimum })
			switch {
			case i < 0 && tt.want != "" || i >= 0 && out.Diagnostics[i].Severity != tt.want:
				t.Errorf("diagnostics %+v, want severity %q", out.Diagnostics, tt.want)
			case i >= 0 && (!out.Diagnostics[i].SafeForUser || !strings.Contains(out.Diagnostics[i].Message, "m1 caches from")):
				t.Errorf("diagnostic %+v", out.Diagnostics[i])
			}
		})
	}
}
