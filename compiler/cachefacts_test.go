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

func TestLookup(t *testing.T) {
	t.Parallel()

	tests := []struct {
		provider, model string
		minimum         int
		listed          bool
		breakpoints     int
	}{
		{Anthropic, "claude-opus-5", 512, true, 4},
		{Anthropic, "claude-opus-4-8", 1024, true, 4},
		{Anthropic, "claude-opus-4-7", 2048, true, 4},
		{Anthropic, "claude-opus-4-5-20251101", 4096, true, 4},
		{Anthropic, "claude-opus-4-1-20250805", 1024, true, 4},
		{Anthropic, "anthropic/Claude-Haiku-4-5", 4096, true, 4},
		{Anthropic, "claude-opus-5-5", 1024, false, 4},
		{Anthropic, "", 1024, false, 4},
		{OpenAI, "gpt-5", 1024, true, 0},
		{OpenAI, "gpt-5.6-sol", 1024, true, 4},
		{OpenAI, "o3-mini", 1024, true, 0},
		{OpenAI, "davinci", 1024, false, 0},
		{Gemini, "models/gemini-2.5-flash", 2048, true, 0},
		{Gemini, "gemini-9", 4096, false, 0},
	}
	table := load(t)
	for _, tt := range tests {
		t.Run(tt.provider+" "+tt.model, func(t *testing.T) {
			t.Parallel()

			got, ok := table.Lookup(tt.provider, tt.model)
			if !ok || got.MinimumTokens != tt.minimum || got.Listed != tt.listed || got.Breakpoints != tt.breakpoints || got.Date != table.Date {
				t.Errorf("got %+v (%v), want a minimum of %d, listed %v, %d breakpoints", got, ok, tt.minimum, tt.listed, tt.breakpoints)
			}
		})
	}
	if _, ok := table.Lookup("nobody", "x"); ok {
		t.Error("found a provider that is not there")
	}
}
