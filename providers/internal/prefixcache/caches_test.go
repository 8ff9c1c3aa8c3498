package prefixcache

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/compiler"
)

// block is one piece of a request, in the order in which a model reads them: tools, system prompt, messages.
type block struct {
	text   string // compared byte by byte
	tokens int
	keep   time.Duration // the lifetime that the block's mark asks for; 0 without a mark
}

// read encodes a request to Anthropic's Messages or OpenAI's Responses API, and reads its blocks.
func read(t testing.TB, params any, count func(string) int) (blocks []block) {
	t.Helper()
	body, err := json.Marshal(params)
	var r map[string]any
	if err := errors.Join(err, json.Unmarshal(body, &r)); err != nil {
		t.Fatal(err)
	}
	add := func(place string, content any) {
		for _, piece := range listOf(content) {
			text, keep := readBlock(t, piece)
			blocks = append(blocks, block{text: place + "\n" + text, tokens: count(text), keep: keep})
		}
	}
	add("tools", r["tools"])
	add("system", r["system"])
	for _, m := range append(listOf(r["messages"]), listOf(r["input"])...) {
		m, _ := m.(map[string]any)
		if role, ok := m["role"].(string); ok {
			add(role, m["content"])
		} else { // a call, or its result
			add("item", m)
		}
	}
	if mark := r["cache_control"]; mark != nil { // a mark of the whole request is its last block's
		blocks[len(blocks)-1].keep = lifetime(t, mark)
	}
	return blocks
}

// listOf is content as a list: it may be one text or block.
func listOf(content any) []any {
	if list, ok := content.([]any); ok || content == nil {
		return list
	}
	return []any{content}
}

// readBlock returns a block's text, which for all but texts is JSON. The mark is no part of what is compared.
func readBlock(t testing.TB, piece any) (text string, keep time.Duration) {
	t.Helper()
	members, ok := piece.(map[string]any)
	if !ok {
		text, _ = piece.(string)
		return text, 0
	}
	if mark := members["cache_control"]; mark != nil {
		keep = lifetime(t, mark)
	}
	delete(members, "cache_control")
	if text, ok = members["text"].(string); ok {
		return text, keep
	}
	encoded, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded), keep
}

// lifetime is how long a cache_control keeps a prefix.
func lifetime(t testing.TB, mark any) time.Duration {
	t.Helper()
	members, _ := mark.(map[string]any)
	ttl, ok := members["ttl"].(string)
	if !ok {
		return 5 * time.Minute
	}
	keep, err := time.ParseDuration(ttl)
	if err != nil {
		t.Fatal(err)
	}
	return keep
}

// usage is what a provider would report for requests, in tokens.
type usage struct{ input, read, written int }

func (u *usage) add(v usage) {
	u.input += v.input
	u.read += v.read
	u.written += v.written
}

// share is the part of the prompts that came out of the cache, from 0 to 1.
func (u usage) share() float64 { return float64(u.read) / float64(max(u.input, 1)) }

func sumOf(blocks []block) (tokens int) {
	for i := range blocks {
		tokens += blocks[i].tokens
	}
	return tokens
}

// marked is a cache that keeps the prefixes which a request marks, and nothing else, as Anthropic's does.
type marked struct {
	rules   compiler.ModelCache
	entries map[string]entry // by the texts of the prefix
}

// entry is a prefix that is kept until a time, which each use postpones by keep.
type entry struct {
	keep  time.Duration
	until time.Time
}

// serve takes a request and keeps what it marks.
func (c *marked) serve(t testing.TB, now time.Time, blocks []block) usage {
	t.Helper()
	prefixes, marks := make([]string, len(blocks)), []int{}
	for i, b := range blocks {
		prefixes[i] = prefixes[max(0, i-1)] + b.text + "\x00"
		if b.keep == 0 {
			continue
		}
		if n := len(marks); n == c.rules.Breakpoints || n > 0 && b.keep > blocks[marks[n-1]].keep {
			t.Fatalf("block %d: too many marks, or a lifetime that is longer than one before it", i)
		}
		marks = append(marks, i)
	}
	u := usage{input: sumOf(blocks)}
	if hit := c.find(now, prefixes, marks); hit >= 0 {
		u.read = sumOf(blocks[:hit+1])
		c.use(now, prefixes[hit], 0)
	}
	for _, i := range marks {
		if tokens := sumOf(blocks[:i+1]); tokens >= c.rules.MinimumTokens {
			c.use(now, prefixes[i], blocks[i].keep)
			u.written = max(u.written, tokens-u.read)
		}
	}
	return u
}

// find returns the block that the longest kept prefix ends with, or -1. It goes back from each mark, the last one first.
func (c *marked) find(now time.Time, prefixes []string, marks []int) int {
	for _, mark := range slices.Backward(marks) {
		for at := mark; at >= max(0, mark-c.rules.LookbackBlocks+1); at-- {
			if e, ok := c.entries[prefixes[at]]; ok && !now.After(e.until) {
				return at
			}
		}
	}
	return -1
}

// use keeps a prefix for at least as long as it asked for before.
func (c *marked) use(now time.Time, prefix string, keep time.Duration) {
	if e, ok := c.entries[prefix]; ok && !now.After(e.until) {
		keep = max(keep, e.keep)
	}
	c.entries[prefix] = entry{keep: keep, until: now.Add(keep)}
}

// automatic is a cache that remembers whole prompts, and serves the longest beginning that a new one shares with one of
// them, as OpenAI's does.
type automatic struct {
	rules    compiler.ModelCache
	lifetime time.Duration
	count    func(string) int
	seen     []seen
}

// seen is a prompt that was served before.
type seen struct {
	blocks []block
	at     time.Time
}

func (c *automatic) serve(now time.Time, blocks []block) usage {
	u := usage{input: sumOf(blocks)}
	for _, s := range c.seen {
		if now.Sub(s.at) <= c.lifetime {
			u.read = max(u.read, c.shared(s.blocks, blocks))
		}
	}
	c.seen = append(c.seen, seen{blocks: blocks, at: now})
	if u.read -= u.read % max(c.rules.StepTokens, 1); u.read < c.rules.MinimumTokens {
		u.read = 0
	}
	return u
}

// shared counts the tokens that two requests begin with.
func (c *automatic) shared(before, now []block) int {
	n := 0
	for n < min(len(before), len(now)) && before[n].text == now[n].text {
		n++
	}
	tokens := sumOf(now[:n])
	if n < min(len(before), len(now)) {
		tokens += min(c.count(sameBeginning(now[n].text, before[n].text)), now[n].tokens)
	}
	return tokens
}

// sameBeginning is what two texts begin with, up to the end of a character.
func sameBeginning(a, b string) string {
	for n, r := range a {
		if !strings.HasPrefix(b[min(n, len(b)):], a[n:n+utf8.RuneLen(r)]) {
			return a[:n]
		}
	}
	return a
}
