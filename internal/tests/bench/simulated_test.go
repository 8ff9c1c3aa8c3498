package bench

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

func count(s string) int { return (len(s) + 3) / 4 }

// request is a prompt as a provider reads it: tools, sections, messages. Marks are the blocks that a breakpoint ends.
type request struct {
	blocks []string
	marks  []int
}

func requestOf(done *runtime.Compiled, w *world) request {
	var r request
	var tools strings.Builder
	for _, list := range [][]phases.Tool{w.in.HostTools, done.Tools} {
		for _, t := range list {
			raw, err := json.Marshal(t)
			if err != nil {
				panic(err)
			}
			tools.Write(raw)
		}
	}
	r.blocks = append(r.blocks, tools.String())
	p, rest := done.Prompt, done.Prompt.FullText
	for i := range done.Manifest.Sections {
		s := &done.Manifest.Sections[i]
		text := ""
		if s.Placement == phases.PlacementSystem {
			next := len(rest)
			for k := i + 1; k < len(done.Manifest.Sections); k++ {
				if at := strings.Index(rest, "## "+done.Manifest.Sections[k].Title+"\n\n"); at > 0 {
					next = at
					break
				}
			}
			text, rest = rest[:next], rest[next:]
		}
		for _, m := range slices.Concat(p.SystemMessages, p.UserMessages) {
			if m.SectionID == s.SectionID {
				text = m.Text
			}
		}
		r.blocks = append(r.blocks, text)
		for _, b := range p.CachePlan.Breakpoints {
			if b.SectionID == s.SectionID {
				r.marks = append(r.marks, i+1)
			}
		}
	}
	for _, b := range p.CachePlan.Breakpoints {
		if b.After == manifest.AfterTools {
			r.marks = append(r.marks, 0)
		}
	}
	if w.ignorePlan {
		r.marks = nil
	}
	return r
}

// with is the request with the conversation, whose end is worth keeping, too.
func (r request) with(history []string) request {
	out := request{blocks: append(slices.Clip(r.blocks), history...), marks: slices.Clone(r.marks)}
	if len(r.marks) > 0 {
		out.marks = append(out.marks, len(out.blocks)-1)
	}
	return out
}

// providerCache follows what a provider says about its prompt cache (compiler/cachefacts.json has the sources), and
// knows nothing of how Grapnel predicts it.
type providerCache struct {
	explicit      bool
	minimum, step int
	lookback      int
	lifetime      time.Duration
	written       map[string]time.Time // Anthropic: prefixes that a breakpoint ended
	prompts       [][]string           // the others: whole requests
	at            []time.Time
}

func newProviderCache(provider, _ string) *providerCache {
	switch provider {
	case compiler.Anthropic: // Sonnet 5: 1,024 tokens, five minutes from the last use, 20 blocks back
		return &providerCache{explicit: true, minimum: 1024, lookback: 20, lifetime: 5 * time.Minute, written: map[string]time.Time{}}
	case compiler.OpenAI: // 1,024 tokens and steps of 128, five to ten minutes
		return &providerCache{minimum: 1024, step: 128, lifetime: 5 * time.Minute}
	default: // Gemini 2.5 Flash: 2,048 tokens; it does not say for how long
		return &providerCache{minimum: 2048, step: 1, lifetime: 10 * time.Minute}
	}
}

func total(blocks []string) (n int) {
	for _, b := range blocks {
		n += count(b)
	}
	return n
}

func (c *providerCache) serve(now time.Time, r request) phases.Usage {
	u := phases.Usage{InputTokens: total(r.blocks), OutputTokens: 1}
	if c.explicit {
		c.marked(now, r, &u)
		return u
	}
	for i, p := range c.prompts {
		if now.Sub(c.at[i]) > c.lifetime {
			continue
		}
		n := alike(p, r.blocks)
		if n -= n % c.step; n >= c.minimum {
			u.CacheReadTokens = max(u.CacheReadTokens, n)
		}
	}
	c.prompts, c.at = append(c.prompts, r.blocks), append(c.at, now)
	return u
}

// alike counts the tokens that two requests begin with.
func alike(a, b []string) int {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	n := total(b[:i])
	if i < min(len(a), len(b)) {
		k := 0
		for k < min(len(a[i]), len(b[i])) && a[i][k] == b[i][k] {
			k++
		}
		n += k / 4
	}
	return n
}

func (c *providerCache) marked(now time.Time, r request, u *phases.Usage) {
	prefix := func(n int) string { return strings.Join(r.blocks[:n+1], "\x00") }
	for _, m := range r.marks {
		for n := m; n >= max(0, m-c.lookback); n-- {
			at, ok := c.written[prefix(n)]
			if ok && now.Sub(at) <= c.lifetime {
				u.CacheReadTokens = max(u.CacheReadTokens, total(r.blocks[:n+1]))
				c.written[prefix(n)] = now
				break
			}
		}
	}
	for _, m := range r.marks {
		if n := total(r.blocks[:m+1]); n >= c.minimum {
			c.written[prefix(m)] = now
			u.CacheWriteTokens = max(u.CacheWriteTokens, n-u.CacheReadTokens)
		}
	}
}
