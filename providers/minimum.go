package providers

import "github.com/grapnelhq/grapnel/providers/facts"

// Prefix is the beginning of a request.
type Prefix struct {
	// Until says what it ends with, for people.
	Until string
	// Tokens is an estimate.
	Tokens int
}

// Prefixes returns the tokens up to each breakpoint, tools first, for providers
// that cache where they are told. Without count there are none.
func (l *Layout) Prefixes(count func(string) int) []Prefix {
	if count == nil {
		return nil
	}
	var out []Prefix
	tokens := l.toolTokens(count)
	if l.BreakAfterTools {
		out = append(out, Prefix{Until: "tools", Tokens: tokens})
	}
	for _, s := range l.System {
		tokens += count(s.Text)
		if s.Break.After != "" {
			out = append(out, Prefix{Until: place(s.Break), Tokens: tokens})
		}
	}
	return out
}

// Whole returns the tokens of tools and system prompt as one prefix, for
// providers that find out themselves what to cache.
func (l *Layout) Whole(count func(string) int) []Prefix {
	if count == nil {
		return nil
	}
	return []Prefix{{Until: "the end of the system prompt", Tokens: l.toolTokens(count) + count(l.SystemText())}}
}

func (l *Layout) toolTokens(count func(string) int) int {
	tokens := 0
	for i := range l.Tools {
		tokens += count(l.Tools[i].Text)
	}
	return tokens
}

// CheckMinimum warns of prefixes that are too short for the model to cache.
func (l *Layout) CheckMinimum(model string, known facts.Found, prefixes []Prefix) {
	for _, p := range prefixes {
		if p.Tokens >= known.MinimumTokens {
			continue
		}
		guess := ""
		if !known.Listed {
			guess = "; the model is not listed, so this is a guess"
		}
		l.Warnf(CodeBelowMinimum, "the prefix up to %s has about %d tokens, and %s caches from %d on (as of %s%s)",
			p.Until, p.Tokens, model, known.MinimumTokens, known.Date, guess)
	}
}
