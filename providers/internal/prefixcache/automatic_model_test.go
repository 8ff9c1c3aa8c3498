package prefixcache

import (
	"slices"
	"time"
	"unicode/utf8"
)

// AutomaticRules are the rules of a cache that finds prefixes by itself.
type AutomaticRules struct {
	// MinimumTokens is the shortest prefix that is found, and Step by how many
	// tokens a longer one grows; 0 counts as 1.
	MinimumTokens, Step int
	// Lifetime is how long a prompt is remembered.
	Lifetime time.Duration
	// Count counts the tokens of what two blocks begin with alike.
	Count func(string) int
}

// Automatic is a cache that remembers whole prompts and serves the longest
// beginning that a new one shares with one of them. NewAutomatic makes it. It is
// not safe for concurrent use.
type Automatic struct {
	rules AutomaticRules
	seen  []seen
}

// seen is a prompt that was served before.
type seen struct {
	blocks []Block
	at     time.Time
}

// NewAutomatic makes an empty cache.
func NewAutomatic(rules AutomaticRules) *Automatic {
	rules.Step = max(rules.Step, 1)
	return &Automatic{rules: rules}
}

// Serve takes a request and remembers it. Marks mean nothing. Nothing is ever
// reported as written.
func (c *Automatic) Serve(now time.Time, blocks []Block) Usage {
	var u Usage
	for i := range blocks {
		u.Input += blocks[i].Tokens
	}
	c.seen = slices.DeleteFunc(c.seen, func(s seen) bool { return now.Sub(s.at) > c.rules.Lifetime })
	var longest beginning
	for _, s := range c.seen {
		if alike := alikeIn(s.blocks, blocks); alike.longer(longest) {
			longest = alike
		}
	}
	u.Read = c.tokens(blocks, longest)
	c.seen = append(c.seen, seen{blocks: blocks, at: now})
	u.Read -= u.Read % c.rules.Step
	if u.Read < c.rules.MinimumTokens {
		u.Read = 0
	}
	return u
}

// beginning is what two prompts have in common: so many blocks, and so many bytes
// of the next one.
type beginning struct{ blocks, bytes int }

func (b beginning) longer(than beginning) bool {
	return b.blocks > than.blocks || b.blocks == than.blocks && b.bytes > than.bytes
}

func alikeIn(a, b []Block) beginning {
	n := 0
	for n < len(a) && n < len(b) && a[n].Text == b[n].Text {
		n++
	}
	if n == len(a) || n == len(b) {
		return beginning{blocks: n}
	}
	return beginning{n, len(sameBeginning(a[n].Text, b[n].Text))}
}

// tokens counts a beginning of a prompt.
func (c *Automatic) tokens(blocks []Block, of beginning) int {
	n := 0
	for i := range of.blocks {
		n += blocks[i].Tokens
	}
	if of.bytes > 0 {
		next := blocks[of.blocks]
		n += min(c.rules.Count(next.Text[:of.bytes]), next.Tokens)
	}
	return n
}

// sameBeginning is what two texts begin with, up to the end of a character.
func sameBeginning(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	return a[:n]
}
