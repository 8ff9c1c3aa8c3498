package compiler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestModelCacheRules(t *testing.T) {
	t.Parallel()

	table, err := LoadCacheFacts()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		provider, model, lifetime string
		want                      CacheRules
		fails                     bool
	}{
		{Anthropic, "claude-haiku-4-5", "", CacheRules{MinimumTokens: 4096, Explicit: true, Lifetime: 5 * time.Minute}, false},
		{Anthropic, "claude-opus-5", "1h", CacheRules{MinimumTokens: 512, Explicit: true, Lifetime: time.Hour}, false},
		{OpenAI, "gpt-5", "", CacheRules{MinimumTokens: 1024, Lifetime: 5 * time.Minute, Step: 128}, false},
		{OpenAI, "gpt-5.6-sol", "", CacheRules{MinimumTokens: 1024, Lifetime: 30 * time.Minute, Step: 128}, false},
		{Gemini, "gemini-3-flash", "", CacheRules{MinimumTokens: 1024}, false},
		{Anthropic, "claude-opus-5", "an hour", CacheRules{MinimumTokens: 512, Explicit: true}, true},
	}
	for _, tt := range tests {
		t.Run(tt.model+" "+tt.lifetime, func(t *testing.T) {
			t.Parallel()

			known, ok := table.Lookup(tt.provider, tt.model)
			if !ok {
				t.Fatal("nothing is known")
			}
			got, err := known.Rules(tt.lifetime)
			if diff := cmp.Diff(got, tt.want); diff != "" || (err != nil) != tt.fails {
				t.Errorf("error %v (-got +want):\n%s", err, diff)
			}
		})
	}
}
