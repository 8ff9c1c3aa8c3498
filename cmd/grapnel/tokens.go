package main

import (
	"sync"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/facts"
	"github.com/grapnelhq/grapnel/runtime"
)

// countTokens makes the engine count with the vocabulary that fits the model
// best, and predict with what is known of its cache. Nothing is unpacked or read
// before something is counted.
func countTokens(o *runtime.Options, model string) error {
	counter, err := history.NewCounter(history.CounterOptions{Encoding: history.EncodingFor(model)})
	if err != nil {
		return err
	}
	o.CountTokens, o.TokenizerName = counter.Count, string(counter.Encoding())
	table := sync.OnceValues(facts.Load)
	o.CacheRules = func(provider, model string) (compiler.CacheRules, bool) {
		known, err := table()
		if err != nil {
			return compiler.CacheRules{}, false // a test of facts excludes it
		}
		found, ok := known.Lookup(provider, model)
		rules, err := providers.CacheRules(found, "")
		return rules, ok && err == nil
	}
	return nil
}
