package main

import (
	"cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/settings"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/thread"
)

// threadPromptChars is how much of a document a prompt has room for: what the
// configuration gives the hook, less what stands around the text. Zero is for a
// configuration by which no prompt has documents.
func threadPromptChars(cfg *config.Config) int {
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i]
		if p.Builtin != agentsName {
			continue
		}
		o := p.Subscriptions[p.Name+".thread_prompt"]
		c, err := settings.Parse(p.Config)
		if err != nil || c.Source == "" || c.Source == settings.SourceFiles || c.Enabled != nil && !*c.Enabled || o.Enabled != nil && !*o.Enabled {
			return 0
		}
		limit := agentsdoc.MaxChars
		if o.Budget != nil && o.Budget.Chars > 0 {
			limit = o.Budget.Chars
		}
		limit = min(limit, cmp.Or(cfg.Budgets.Turn.Chars, config.DefaultTurnChars), merge.DefaultSectionChars)
		return max(0, limit-text.Chars(thread.FrameOpen)-text.Chars(thread.FrameClose)-len("\n\n"))
	}
	return 0
}
