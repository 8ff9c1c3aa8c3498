package main

import (
	"fmt"
	"strings"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
)

// printCache prints what became of the provider's prompt cache: what was
// expected of it, what the provider reported, and which section broke the
// prefix. The first prompt of a thread has nothing to say.
func (a *app) printCache(m *manifest.Manifest, u *manifest.Usage) {
	c := &m.Cache
	t := newTable("")
	if c.Predicted != nil {
		t.add("predicted", predictedText(c))
	}
	if u != nil {
		t.add("actual", actualText(u))
		t.add("reported", reportedText(u))
	}
	if c.BrokeAt != "" {
		t.add("broke at", brokeText(c))
	}
	if len(t.rows) == 0 {
		return
	}
	if plan := planText(&c.Plan); plan != "" {
		t.add("breakpoints", plan)
	}
	a.println("\nprompt cache")
	a.printTable(t)
}

// predictedText is the prediction, and of none the reason.
func predictedText(c *manifest.Cache) string {
	if c.Miss == "" {
		return tokenCount(*c.Predicted)
	}
	return fmt.Sprintf("%s (%s)", tokenCount(*c.Predicted), missText(c.Miss))
}

// missText says what a reason means; the manifest's word stands in front.
func missText(miss manifest.Miss) string {
	why := map[manifest.Miss]string{
		manifest.MissModel:   "the last prompt was for another model",
		manifest.MissTools:   "the tools in front of everything changed",
		manifest.MissExpired: "the last prompt is older than what the provider keeps",
		manifest.MissSection: "a section changed in front of what the provider keeps",
		manifest.MissMinimum: "what did not change is shorter than what the model caches",
	}[miss]
	if why == "" {
		return clean(string(miss))
	}
	return string(miss) + ": " + why
}

// actualText is what did come out of the cache.
func actualText(u *manifest.Usage) string {
	s := fmt.Sprintf("%s of %s in", tokenCount(u.CacheReadTokens), text.Thousands(u.InputTokens))
	if u.CacheWriteTokens > 0 {
		s += fmt.Sprintf(", %s written to the cache", text.Thousands(u.CacheWriteTokens))
	}
	return s + fmt.Sprintf(", %s out", text.Thousands(u.OutputTokens))
}

// reportedText says when the numbers came in, and how much they are for.
func reportedText(u *manifest.Usage) string {
	at := clock(u.ReportedAt)
	if u.Rounds == 1 {
		return at + ", for this prompt alone"
	}
	return fmt.Sprintf("%s, for %d rounds up to this one", at, u.Rounds)
}

// brokeText names the section from which on the provider had to read anew.
func brokeText(c *manifest.Cache) string {
	s := fmt.Sprintf("%s (%s)", c.BrokeAt, c.Owner)
	if c.TokensBehind > 0 {
		s += fmt.Sprintf(", %s from there on", tokenCount(c.TokensBehind))
	}
	return s
}

// planText is where the provider is asked to cache, first to last.
func planText(p *manifest.CachePlan) string {
	var places []string
	for _, b := range p.Breakpoints {
		place := "after " + string(b.After)
		if b.SectionID != "" {
			place += " (" + b.SectionID + ")"
		}
		places = append(places, place)
	}
	return strings.Join(places, ", ")
}

// tokenCount is a number of tokens with its noun.
func tokenCount(n int) string {
	return text.Thousands(n) + plural(n, " token", " tokens")
}
