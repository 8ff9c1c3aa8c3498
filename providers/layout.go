package providers

import (
	"fmt"

	"github.com/grapnelhq/grapnel/manifest"
)

// Rules are what a provider wants of any request.
type Rules struct {
	// NameChars are allowed in names of tools, besides letters, digits, "_" and
	// "-".
	NameChars string
	// NameMax bounds a name's length; 0 means 64.
	NameMax int
	// Breakpoints is how many breakpoints of the plan can be said. Those at the
	// end of the plan are left out first.
	Breakpoints int
}

// Layout is a request in nobody's words.
type Layout struct {
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
	// Tail stands behind all messages; see [Request.AfterConversation]. Where it
	// is not empty, the last message is the user's, or there is none.
	Tail     string
	Names    Names
	Warnings []Warning
}

// Segment is a piece of the system prompt.
type Segment struct {
	Text string
	// Break is the breakpoint at its end; After is empty if there is none.
	Break manifest.Breakpoint
}

// Lay lays a request out. It is a pure function and safe for concurrent use; the
// layout shares memory with the request.
//
// An error means that no provider could take the request: a tool's schema is no
// JSON Schema object, or two tools have one name.
func Lay(r Request, rules Rules) (*Layout, error) {
	l := &Layout{Key: r.Prompt.CachePlan.Key}
	if err := l.layTools(r.Tools, rules); err != nil {
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

// affordable returns the breakpoints that the provider takes. No adapter asked
// for any where limit is 0, so there is nothing to warn about.
func (l *Layout) affordable(plan []manifest.Breakpoint, limit int) []manifest.Breakpoint {
	if len(plan) <= limit {
		return plan
	}
	if limit > 0 {
		for _, b := range plan[limit:] {
			l.Warnf(CodeBreakpoint, "the breakpoint after %s was left out: only %d are taken", place(b), limit)
		}
	}
	return plan[:max(limit, 0)]
}

// Warnf adds a warning. Adapters use it too.
func (l *Layout) Warnf(code Code, format string, args ...any) {
	l.Warnings = append(l.Warnings, Warning{Code: code, Message: fmt.Sprintf(format, args...)})
}

// place names a breakpoint in a message.
func place(b manifest.Breakpoint) string {
	if b.SectionID != "" {
		return string(b.After) + " (" + b.SectionID + ")"
	}
	return string(b.After)
}
