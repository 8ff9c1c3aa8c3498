package prefixcache

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"
)

// Block is one piece of a request, in the order in which the provider puts them
// together: tools, system prompt, messages.
type Block struct {
	// Text is what is compared, byte by byte.
	Text string
	// Tokens is its length.
	Tokens int
	// Keep is the lifetime that its mark asks for; 0 is no mark.
	Keep time.Duration
}

// Usage is what the provider would report for one request, in tokens.
type Usage struct {
	// Input is the whole prompt, Read what of it came out of the cache, and
	// Written what went into it.
	Input, Read, Written int
}

// Add adds another request's.
func (u *Usage) Add(v Usage) {
	u.Input += v.Input
	u.Read += v.Read
	u.Written += v.Written
}

// Share is the part of the prompts that came out of the cache, from 0 to 1.
func (u Usage) Share() float64 {
	if u.Input == 0 {
		return 0
	}
	return float64(u.Read) / float64(u.Input)
}

// MarkedRules are the rules of a cache that is told what to keep.
type MarkedRules struct {
	// MinimumTokens is the shortest prefix that is kept. A mark on a shorter one is
	// passed over in silence.
	MinimumTokens int
	// Marks is how many a request may have.
	Marks int
	// Lookback is at how many blocks an earlier entry is looked for: that of the
	// mark, and those before it.
	Lookback int
}

// Marked is a cache that keeps the prefixes which a request marks, and nothing
// else. NewMarked makes it. It is not safe for concurrent use.
type Marked struct {
	rules MarkedRules
	// entries are by the hash of all blocks of a prefix.
	entries map[prefixHash]entry
}

type prefixHash [sha256.Size]byte

// entry is a prefix that was kept. It lives anew for Keep from each use on.
type entry struct {
	keep  time.Duration
	until time.Time
}

// NewMarked makes an empty cache.
func NewMarked(rules MarkedRules) *Marked {
	return &Marked{rules: rules, entries: map[prefixHash]entry{}}
}

// Serve takes a request and keeps what it marks. An error is what the provider
// would refuse: too many marks, or a long lifetime behind a short one.
func (c *Marked) Serve(now time.Time, blocks []Block) (Usage, error) {
	if err := c.check(blocks); err != nil {
		return Usage{}, err
	}
	p := prefixesOf(blocks)
	var u Usage
	if n := len(blocks); n > 0 {
		u.Input = p[n-1].tokens
	}
	hit := c.find(now, blocks, p)
	if hit >= 0 {
		u.Read = p[hit].tokens
		c.use(now, p[hit].hash, 0)
	}
	for i := range blocks {
		if blocks[i].Keep == 0 || p[i].tokens < c.rules.MinimumTokens {
			continue
		}
		c.use(now, p[i].hash, blocks[i].Keep)
		u.Written = max(u.Written, p[i].tokens-u.Read)
	}
	return u, nil
}

// check refuses what the provider refuses.
func (c *Marked) check(blocks []Block) error {
	var before time.Duration
	marks := 0
	for i := range blocks {
		keep := blocks[i].Keep
		if keep == 0 {
			continue
		}
		if marks++; marks > c.rules.Marks {
			return fmt.Errorf("block %d: at most %d marks are taken", i, c.rules.Marks)
		}
		if before != 0 && keep > before {
			return fmt.Errorf("block %d: the lifetime %s stands behind one of %s", i, keep, before)
		}
		before = keep
	}
	return nil
}

// prefix is a request up to and with one block.
type prefix struct {
	hash   prefixHash
	tokens int
}

func prefixesOf(blocks []Block) []prefix {
	out := make([]prefix, len(blocks))
	var last prefix
	for i := range blocks {
		text := sha256.Sum256([]byte(blocks[i].Text))
		last.hash = sha256.Sum256(append(last.hash[:], text[:]...))
		last.tokens += blocks[i].Tokens
		out[i] = last
	}
	return out
}

// find returns the block that the longest kept prefix ends with, or -1. It goes
// back from each mark, the last one first, and stops at what it finds.
func (c *Marked) find(now time.Time, blocks []Block, p []prefix) int {
	for mark, b := range slices.Backward(blocks) {
		if b.Keep == 0 {
			continue
		}
		for at := mark; at >= 0 && at > mark-c.rules.Lookback; at-- {
			if c.live(now, p[at].hash) {
				return at
			}
		}
	}
	return -1
}

func (c *Marked) live(now time.Time, h prefixHash) bool {
	e, ok := c.entries[h]
	return ok && !now.After(e.until)
}

// use keeps a prefix, or lets it live on if it is there. A keep of 0 changes
// nothing about how long that is.
func (c *Marked) use(now time.Time, h prefixHash, keep time.Duration) {
	if c.live(now, h) {
		keep = max(keep, c.entries[h].keep)
	}
	c.entries[h] = entry{keep: keep, until: now.Add(keep)}
}
