package providers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/manifest"
)

// Rules are what an adapter lays a request out by.
type Rules struct {
	// Provider is the one whose [PublicRules] hold. Without one, names of tools are as OpenAI wants them.
	Provider string
	// Breakpoints is how many breakpoints a request may have. Those at the end of the plan are omitted first.
	Breakpoints int
}

// Layout is a request in terms that are no provider's.
type Layout struct {
	Translation

	// Key groups requests that share the stable part; empty if there is none.
	Key string
	// Tools are sorted by name.
	Tools []Tool
	// BreakAfterTools says that the plan has a breakpoint behind the tools.
	BreakAfterTools bool
	// System is the system prompt in pieces. None is empty.
	System []Segment
	// DynamicText is its dynamic part, for a place of its own.
	DynamicText string
	// SystemMessages follow the system prompt.
	SystemMessages []string
	// Messages alternate between user and assistant.
	Messages []Message
	// Tail stands behind all messages; see [Request.AfterConversation]. If it is not
	// empty, the last message is the user's, or there is none.
	Tail string

	rules checks
}

// Translation is what a host needs to know of a request beside its parameters.
type Translation struct {
	// Names translates the tools that the model calls.
	Names    Names
	Warnings []Warning
	// Changes are how the request differs from its manifest.
	Changes []Change
}

// Segment is a piece of the system prompt.
type Segment struct {
	Text string
	// Break is the breakpoint at its end; After is empty if there is none.
	Break manifest.Breakpoint
}

// Lay lays a request out. It is a pure function; the layout shares memory with the request. It is an error if a
// tool's schema is not a JSON Schema object, or two tools have one name.
func Lay(r Request, rules Rules) (*Layout, error) {
	l := &Layout{Key: r.Prompt.CachePlan.Key, rules: checksFor(rules.Provider, r.Model)}
	l.layKey()
	if r.CountTokens != nil && !history.TokensFor(r.Model).Listed {
		l.Warnf(codeTokenizer, "the tokenizer of model %s is not known: its tokens are estimated with %s", r.Model, history.O200kBase)
	}
	if err := l.layTools(r.Tools); err != nil {
		return nil, err
	}
	l.layMessages(r)
	r = l.behind(r)
	l.DynamicText = r.Prompt.DynamicText
	l.laySystem(r, l.affordable(r.Prompt.CachePlan.Breakpoints, rules.Breakpoints))
	for _, m := range r.Prompt.SystemMessages {
		if m.Text != "" {
			l.SystemMessages = append(l.SystemMessages, m.Text)
		}
	}
	return l, nil
}

// layKey replaces a key that is too long: with a fingerprint key it has 76 characters.
func (l *Layout) layKey() {
	if l.rules.breaks(ruleCacheKey, l.Key) {
		sent := hashed(l.Key)
		l.Warnf(codeCacheKey, "the cache key has %d characters: its hash is sent", len(l.Key))
		l.change(manifest.RequestCacheKey, "", l.Key, sent)
		l.Key = sent
	}
}

// hashed returns 64 hexadecimal digits.
func hashed(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// affordable returns the breakpoints that the provider accepts. With a limit of 0 the
// adapter asks for none, and there is no warning.
func (l *Layout) affordable(plan []manifest.Breakpoint, limit int) []manifest.Breakpoint {
	limit = min(max(limit, 0), len(plan))
	for i := limit; i < len(plan) && limit > 0; i++ {
		l.Warnf(CodeBreakpoint, "the breakpoint after %s was omitted: only %d are accepted", place(plan[i]), limit)
	}
	return plan[:limit]
}

// Warnf adds a warning. Adapters use it too.
func (l *Layout) Warnf(code, format string, args ...any) {
	l.Warnings = append(l.Warnings, Warning{Code: code, Message: fmt.Sprintf(format, args...)})
}

func place(b manifest.Breakpoint) string {
	if b.SectionID != "" {
		return string(b.After) + " (" + b.SectionID + ")"
	}
	return string(b.After)
}

// CheckMinimum warns of prefixes that are too short for the model to cache: those up to each breakpoint or, without
// breakpoints, tools and system prompt as one. It needs [Request.CountTokens].
func (l *Layout) CheckMinimum(r Request, known compiler.ModelCache, breakpoints bool) {
	if r.CountTokens == nil {
		return
	}
	tokens := 0
	for i := range l.Tools {
		tokens += r.CountTokens(l.Tools[i].Text)
	}
	if !breakpoints {
		l.checkPrefix(r.Model, known, "the end of the system prompt", tokens+r.CountTokens(l.SystemText()))
		return
	}
	if l.BreakAfterTools {
		l.checkPrefix(r.Model, known, "tools", tokens)
	}
	for _, s := range l.System {
		tokens += r.CountTokens(s.Text)
		if s.Break.After != "" {
			l.checkPrefix(r.Model, known, place(s.Break), tokens)
		}
	}
}

func (l *Layout) checkPrefix(model string, known compiler.ModelCache, until string, tokens int) {
	if tokens >= known.MinimumTokens {
		return
	}
	guess := ""
	if !known.Listed {
		guess = "; the model is not listed, so this is a guess"
	}
	l.Warnf(codeBelowMinimum, "the prefix up to %s has about %d tokens, and %s caches from %d on (as of %s%s)",
		until, tokens, model, known.MinimumTokens, known.Date, guess)
}
