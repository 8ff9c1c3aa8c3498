package compiler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
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
		{"implicit: the recall changed", implicit, func(in *Input) { in.Sections[1].Content = "other" }, nil, down(tools + stable + agents), manifest.CauseText},
		{"explicit: the recall changed", explicit, func(in *Input) { in.Sections[1].Content = "other" }, nil, tools + stable, manifest.CauseText},
		{"explicit: only the tools are the same", explicit, func(in *Input) { in.Host.Identity = "x" }, nil, 0, manifest.CauseText},
		{"explicit: the tools are enough", CacheRules{MinimumTokens: 10, Explicit: true}, func(in *Input) { in.Host.Identity = "x" }, nil, tools, manifest.CauseText},
		{"explicit: the previous plan kept no tools", CacheRules{Explicit: true}, func(in *Input) { in.Host.Identity = "x" }, func(p *Previous) {
			p.Breakpoints = p.Breakpoints[1:]
		}, 0, manifest.CauseText},
		{"implicit: the safety text changed", implicit, func(in *Input) { in.Host.Safety = strings.Repeat("x", 100) }, nil, down(tools + 113), manifest.CauseText},
		{"no minimum and no step", CacheRules{}, nil, nil, tools + stable + agents + recall + 4, ""},
		{"other tools", explicit, func(in *Input) { in.Tools[0].Hash = "sha256:1" }, nil, 0, manifest.CauseTools},
		{"no tools any more", implicit, func(in *Input) { in.Tools = nil }, nil, 0, manifest.CauseTools},
		{"another model", explicit, func(in *Input) { in.Model = "m2" }, nil, 0, manifest.CauseModel},
		{"another provider", explicit, func(in *Input) { in.Provider = "openai" }, nil, 0, manifest.CauseProvider},
		{"a model that was not known", explicit, nil, func(p *Previous) { p.Model, p.Provider = "", "" }, tools + stable, ""},
		{"a model that is not known", explicit, func(in *Input) { in.Model, in.Provider = "", "" }, nil, tools + stable, ""},
		{"as old as can be", explicit, nil, func(p *Previous) { p.Age = time.Minute }, tools + stable, ""},
		{"expired", explicit, nil, func(p *Previous) { p.Age = time.Minute + 1 }, 0, manifest.CauseExpired},
		{"a clock that went back", explicit, nil, func(p *Previous) { p.Age = -time.Hour }, tools + stable, ""},
		{"nobody knows the lifetime", implicit, nil, func(p *Previous) { p.Age = 1e6 * time.Hour }, down(tools + stable + agents + recall), ""},
		{"below the minimum", CacheRules{MinimumTokens: 1000}, nil, nil, 0, ""},
		{"below the minimum after a step down", CacheRules{MinimumTokens: tools + stable + agents + recall, Step: 1000}, nil, nil, 0, ""},
		{"nothing was there", explicit, nil, func(p *Previous) { p.Sections = nil }, none, ""},
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

// TestNothingIsPredicted where something for it is missing.
func TestNothingIsPredicted(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		change func(in *Input)
	}{
		{"no rules", func(in *Input) { in.CacheRules = nil }},
		{"no tokenizer", func(in *Input) { in.CountTokens = nil }},
		{"no previous prompt", func(in *Input) { in.Previous = nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			in := thread()
			in.CacheRules = &CacheRules{}
			in.Previous = inSession(mustCompile(t, thread()))
			if out := mustCompile(t, in); out.Cache.Predicted == nil {
				t.Fatal("nothing is predicted even so")
			}
			tt.change(&in)
			if out := mustCompile(t, in); out.Cache.Predicted != nil || out.Cache.Cause != "" {
				t.Errorf("predicted %d, miss %q", *out.Cache.Predicted, out.Cache.Cause)
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
			i := slices.IndexFunc(out.Diagnostics, func(d phases.Diagnostic) bool { return d.Code == CodeBelowMinimum })
			switch {
			case i < 0 && tt.want != "" || i >= 0 && out.Diagnostics[i].Severity != tt.want:
				t.Errorf("diagnostics %+v, want severity %q", out.Diagnostics, tt.want)
			case i >= 0 && (!out.Diagnostics[i].SafeForUser || !strings.Contains(out.Diagnostics[i].Message, "m1 caches from")):
				t.Errorf("diagnostic %+v", out.Diagnostics[i])
			}
		})
	}
}

// TestPredictionsHold plays threads of random prompts against a provider that
// caches, and wants each prediction to be what it serves. The provider knows
// texts, blocks and nothing of fingerprints.
func TestPredictionsHold(t *testing.T) {
	t.Parallel()

	hits := 0
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 9))
		rules := CacheRules{MinimumTokens: pick(r, 0, 40, 200), Explicit: r.IntN(2) == 0, Step: pick(r, 0, 1, 16)}
		provider := fakeProvider{rules: rules}
		var prev *Previous
		for turn := range 12 {
			in := drifting(r, turn)
			in.CacheRules, in.Previous = &rules, prev
			out := mustCompile(t, in)
			served := provider.serve(t, &out)
			if prev != nil && (out.Cache.Predicted == nil || *out.Cache.Predicted != served) {
				t.Fatalf("seed %d, turn %d, %+v: predicted %v, served %d", seed, turn, rules, asJSON(t, Output{Cache: out.Cache}), served)
			}
			hits += min(served, 1)
			prev = inSession(out)
		}
	}
	if hits < 300 { // of 1,320 prompts
		t.Errorf("only %d hits: the test shows nothing", hits)
	}
}

// drifting is a prompt in which something changes now and then.
func drifting(r *rand.Rand, turn int) Input {
	in := Input{
		Order: pick(r, OrderCache, OrderCache, OrderCache, OrderReference), KeepTexts: true,
		CountTokens: utf8.RuneCountInString, Host: HostTexts{Identity: "You are number 1.", Safety: "Be careful."},
	}
	if r.IntN(8) == 0 {
		in.Host.Safety = "Be very careful."
	}
	for i := range 5 {
		content := fmt.Sprintf("section %d says something that takes some room", i)
		if r.IntN(4+2*(5-i)) == 0 {
			content += strconv.Itoa(turn)
		}
		in.Sections = append(in.Sections, phases.MergedSection{SectionID: fmt.Sprint("s", i), Priority: 9 - i, Owner: "p", Content: content})
	}
	if r.IntN(10) > 0 {
		in.Tools = []phases.MergedTool{{Name: "t", Owner: "p", Definition: phases.Tool{Name: "t", Description: "a tool of some length"}}}
	}
	return in
}

// fakeProvider keeps what it was asked to keep in the last request.
type fakeProvider struct {
	rules CacheRules
	// kept are the prefixes of the last request that end at a breakpoint, and last
	// is all of it.
	kept []string
	last string
}

// serve answers a request with the number of tokens that came from the cache, as
// the compiler counts them: separators count only without breakpoints. A request comes in blocks:
// the tools, the stable part, and each section behind it. Whoever caches without
// being told compares all of it.
func (f *fakeProvider) serve(t *testing.T, out *Output) int {
	t.Helper()
	text := lookup(out.Texts)
	plan := out.Prompt.CachePlan.Breakpoints
	var request strings.Builder
	var kept []string
	count, best := 0, 0
	// block ends a block.
	block := func(isBreak bool) {
		request.WriteByte(2)
		whole := request.String()
		if isBreak {
			kept = append(kept, whole)
		}
		hit := slices.Contains(f.kept, whole)
		n := count
		if !f.rules.Explicit {
			hit = strings.HasPrefix(f.last, whole)
			n -= n % max(f.rules.Step, 1)
		}
		if hit && n >= f.rules.MinimumTokens {
			best = n
		}
	}
	add := func(s string) {
		count += utf8.RuneCountInString(s)
		request.WriteString(s)
	}
	if len(out.Offered) > 0 {
		b, err := toolEncoder().Append(nil, &out.Offered[0].Definition)
		if err != nil {
			t.Fatal(err)
		}
		add(string(b))
		block(plan[0].After == manifest.AfterTools)
	}
	for i := range out.Sections {
		s := &out.Sections[i]
		body, err := text(s.Hash)
		if err != nil {
			t.Fatal(err)
		}
		add(body)
		if !f.rules.Explicit {
			count++ // a separator is about a token
		}
		isBreak := slices.ContainsFunc(plan, func(b manifest.Breakpoint) bool { return b.SectionID == s.SectionID })
		if isBreak || s.Stability == dynamic || !f.rules.Explicit {
			block(isBreak)
		}
	}
	f.kept, f.last = kept, request.String()
	return best
}
