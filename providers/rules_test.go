package providers

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/providers/facts"
)

func TestCacheRules(t *testing.T) {
	t.Parallel()

	table, err := facts.Load()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		provider, model, lifetime string
		want                      compiler.CacheRules
		fails                     bool
	}{
		{facts.Anthropic, "claude-haiku-4-5", "", compiler.CacheRules{MinimumTokens: 4096, Explicit: true, Lifetime: 5 * time.Minute}, false},
		{facts.Anthropic, "claude-opus-5", "1h", compiler.CacheRules{MinimumTokens: 512, Explicit: true, Lifetime: time.Hour}, false},
		{facts.OpenAI, "gpt-5", "", compiler.CacheRules{MinimumTokens: 1024, Lifetime: 5 * time.Minute, Step: 128}, false},
		{facts.OpenAI, "gpt-5.6-sol", "", compiler.CacheRules{MinimumTokens: 1024, Lifetime: 30 * time.Minute, Step: 128}, false},
		{facts.Gemini, "gemini-3-flash", "", compiler.CacheRules{MinimumTokens: 1024}, false},
		{facts.Anthropic, "claude-opus-5", "an hour", compiler.CacheRules{MinimumTokens: 512, Explicit: true}, true},
	}
	for _, tt := range tests {
		t.Run(tt.model+" "+tt.lifetime, func(t *testing.T) {
			t.Parallel()

			known, ok := table.Lookup(tt.provider, tt.model)
			if !ok {
				t.Fatal("nothing is known")
			}
			got, err := CacheRules(known, tt.lifetime)
			if diff := cmp.Diff(got, tt.want); diff != "" || (err != nil) != tt.fails {
				t.Errorf("error %v (-got +want):\n%s", err, diff)
			}
		})
	}
}

func TestKnownCacheRules(t *testing.T) {
	t.Parallel()

	odd := &facts.Table{Providers: []facts.Provider{{Name: "odd", Cache: facts.Cache{MinimumTokens: 1, KeptFor: "long"}}}}
	for _, tt := range []struct {
		name, provider string
		table          *facts.Table
		want           bool
	}{
		{"known", facts.OpenAI, nil, true},
		{"unknown provider", "house", nil, false},
		{"another table", facts.OpenAI, odd, false},
		{"no lifetime", "odd", odd, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			rules, err := KnownCacheRules(tt.table)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := rules(tt.provider, "m"); ok != tt.want || ok && got.MinimumTokens == 0 {
				t.Errorf("rules = %+v, %v", got, ok)
			}
		})
	}
}

func ExampleKnownCacheRules() {
	rules, err := KnownCacheRules(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, ok := rules("anthropic", "claude-opus-4-7")
	fmt.Println(r.MinimumTokens, r.Explicit, r.Lifetime, ok)
	// Output: 2048 true 5m0s true
}
