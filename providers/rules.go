package providers

import (
	"cmp"
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/providers/facts"
)

// CacheRules puts what is known of a model's cache into the compiler's words, for
// its predictions. The lifetime is the one that the host asks for, such as "1h";
// empty is what the provider gives without being asked.
//
// A host that sends breakpoints to a provider that would find prefixes by itself
// sets Explicit in the result. The error is about the lifetime.
func CacheRules(known facts.Found, lifetime string) (compiler.CacheRules, error) {
	rules := compiler.CacheRules{MinimumTokens: known.MinimumTokens, Explicit: known.Explicit, Step: known.StepTokens}
	text := cmp.Or(lifetime, known.KeptFor)
	if text == "" {
		return rules, nil
	}
	var err error
	if rules.Lifetime, err = time.ParseDuration(text); err != nil {
		return rules, fmt.Errorf("cache lifetime: %w", err)
	}
	return rules, nil
}

// KnownCacheRules looks models up in a table, for the engine's option of that
// name; nil is the table that is compiled in. Of a provider that the table does
// not have, nothing is known.
func KnownCacheRules(t *facts.Table) (func(provider, model string) (compiler.CacheRules, bool), error) {
	if t == nil {
		var err error
		if t, err = facts.Load(); err != nil {
			return nil, err
		}
	}
	return func(provider, model string) (compiler.CacheRules, bool) {
		known, ok := t.Lookup(provider, model)
		if !ok {
			return compiler.CacheRules{}, false
		}
		rules, err := CacheRules(known, "")
		return rules, err == nil
	}, nil
}
