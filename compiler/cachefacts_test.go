package compiler

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

func load(t testing.TB) *CacheFacts {
	t.Helper()
	table, err := LoadCacheFacts()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestLoadCacheFacts(t *testing.T) {
	t.Parallel()

	table := load(t)
	if _, err := time.Parse(time.DateOnly, table.Date); err != nil {
		t.Error(err)
	}
	check := func(name string, c CacheFact) {
		if c.MinimumTokens <= 0 {
			t.Errorf("%s: the minimum is %d", name, c.MinimumTokens)
		}
		for _, life := range append(slices.Clone(c.Lifetimes), cmp.Or(c.KeptFor, "0s")) {
			if d, err := time.ParseDuration(life); err != nil || d < 0 {
				t.Errorf("%s: lifetime %q: %v", name, life, err)
			}
		}
	}
	var names []string
	for _, p := range table.Providers {
		names = append(names, p.Name)
		if !strings.HasPrefix(p.Source, "https://") {
			t.Errorf("%s: source %q is not an address", p.Name, p.Source)
		}
		check(p.Name, p.CacheFact)
		for _, m := range p.Models {
			check(p.Name+" "+m.Match, m.CacheFact)
			if _, err := path.Match(m.Match, ""); err != nil || m.Match == "" {
				t.Errorf("%s: pattern %q: %v", p.Name, m.Match, err)
			}
		}
	}
	if diff := gocmp.Diff(names, []string{Anthropic, OpenAI, Gemini}); diff != "" {
		t.Errorf("providers (-got +want):\n%s", diff)
	}
}

// TestLookup: what is known of a model, and the rules that follow from it.
func TestLookup(t *testing.T) {
	t.Parallel()

	anthropic := func(minimum int) CacheRules {
		return CacheRules{MinimumTokens: minimum, Explicit: true, Lifetime: 5 * time.Minute}
	}
	openAI := func(lifetime time.Duration) CacheRules {
		return CacheRules{MinimumTokens: 1024, Lifetime: lifetime, Step: 128}
	}
	tests := []struct {
		provider, model string
		listed          bool
		breakpoints     int
		want            CacheRules
	}{
		{Anthropic, "claude-opus-5", true, 4, anthropic(512)},
		{Anthropic, "claude-opus-4-8", true, 4, anthropic(1024)},
		{Anthropic, "claude-opus-4-7", true, 4, anthropic(2048)},
		{Anthropic, "claude-opus-4-5-20251101", true, 4, anthropic(4096)},
		{Anthropic, "anthropic/Claude-Haiku-4-5", true, 4, anthropic(4096)},
		{Anthropic, "claude-opus-5-5", false, 4, anthropic(1024)},
		{Anthropic, "", false, 4, anthropic(1024)},
		{OpenAI, "gpt-5", true, 0, openAI(5 * time.Minute)},
		{OpenAI, "gpt-5.6-sol", true, 4, openAI(30 * time.Minute)},
		{OpenAI, "davinci", false, 0, openAI(5 * time.Minute)},
		{Gemini, "models/gemini-2.5-flash", true, 0, CacheRules{MinimumTokens: 2048}},
		{Gemini, "gemini-3-flash", true, 0, CacheRules{MinimumTokens: 1024}},
		{Gemini, "gemini-9", false, 0, CacheRules{MinimumTokens: 4096}},
	}
	table := load(t)
	for _, tt := range tests {
		t.Run(tt.provider+" "+tt.model, func(t *testing.T) {
			t.Parallel()

			got, ok := table.Lookup(tt.provider, tt.model)
			if !ok || got.Listed != tt.listed || got.Breakpoints != tt.breakpoints || got.Date != table.Date {
				t.Errorf("got %+v (%v), want listed %v, %d breakpoints", got, ok, tt.listed, tt.breakpoints)
			}
			rules, err := got.Rules("")
			if diff := gocmp.Diff(rules, tt.want); diff != "" || err != nil {
				t.Errorf("rules: error %v (-got +want):\n%s", err, diff)
			}
		})
	}
	if _, ok := table.Lookup("nobody", "x"); ok {
		t.Error("found a provider that is not there")
	}
	opus, _ := table.Lookup(Anthropic, "claude-opus-5")
	if rules, err := opus.Rules("1h"); err != nil || rules.Lifetime != time.Hour {
		t.Errorf("for an hour: %+v, %v", rules, err)
	}
	if _, err := opus.Rules("an hour"); err == nil {
		t.Error("a lifetime that is none is taken")
	}
}
