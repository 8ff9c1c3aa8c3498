package main

import (
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestCountTokens: the vocabulary follows the model, and nothing is predicted for
// a provider that nobody knows.
func TestCountTokens(t *testing.T) {
	t.Parallel()

	for model, want := range map[string]string{"": "cl100k_base", "claude-sonnet-5": "o200k_base", "gpt-5": "o200k_base"} {
		var o runtime.Options
		if err := countTokens(&o, model); err != nil {
			t.Fatal(err)
		}
		if got := o.CountTokens("hello world"); o.TokenizerName != want || got != 2 {
			t.Errorf("%q: %d tokens by %s, want 2 by %s", model, got, o.TokenizerName, want)
		}
		if _, ok := o.CacheRules("nobody", model); ok {
			t.Errorf("%q: rules of an unknown provider", model)
		}
		if rules, ok := o.CacheRules(compiler.Anthropic, "claude-sonnet-5"); !ok || !rules.Explicit || rules.MinimumTokens == 0 {
			t.Errorf("%q: rules %+v, %v of a known provider", model, rules, ok)
		}
		if rules, ok := o.CacheRules(compiler.OpenAI, "gpt-5"); !ok || rules.Explicit || rules.Step == 0 || rules.Lifetime != 5*time.Minute {
			t.Errorf("%q: rules %+v, %v of a provider that finds prefixes by itself", model, rules, ok)
		}
	}
}
