package memory

import (
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
	"github.com/grapnelhq/grapnel/plugins/memory/toolset"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
)

// turnPolicy is the turn's policy. Without an entry, or with one that is none, it allows
// nothing.
func turnPolicy(set []phases.PolicyEntry) (p turnpolicy.Policy, ok bool) {
	for i := range set {
		if set[i].Domain != domain || set[i].Key != policyKey {
			continue
		}
		p, err := turnpolicy.Parse(set[i].Value)
		return p, err == nil
	}
	return turnpolicy.Policy{}, false
}

// allowed are the tools that a policy allows. Where reading is only for forgetting the
// reading tools are there too: what is to be forgotten has to be found.
func allowed(p turnpolicy.Policy) toolset.Allowed {
	return toolset.Allowed{
		Read:     p.ReadTools == turnpolicy.ReadAllow || p.ReadTools == turnpolicy.ReadForgetOnly,
		Remember: p.RememberTool.Allowed(),
		Forget:   p.ForgetTool.Allowed(),
	}
}

// user is the id of the user who caused the turn, if the host says so.
func user(c *phases.Context) string {
	if c.Actor.Kind == "user" {
		return c.Actor.ID
	}
	return ""
}

// byUser reports whether a turn's text is a user's own: not one of an agent that calls
// another, nor of the system.
func byUser(c *phases.Context) bool {
	return (c.Actor.Kind == "" || c.Actor.Kind == "user") && c.Mode != phases.ModeSystem
}

// view is what a turn may see.
func (m *memory) view(c *phases.Context) itemstore.View {
	return itemstore.View{
		WorkspaceID: c.WorkspaceID, ThreadID: c.Conversation(), AgentID: c.AgentID, UserID: user(c),
		UserEverywhere: m.settings.UserScopeEverywhere,
	}
}

// clock is the turn's time, or the machine's where the host gives none.
func (m *memory) clock(c *phases.Context) time.Time {
	if c.Now.IsZero() {
		return m.now()
	}
	return c.Now
}

// scopeOf is for whom a memory of a category is, where nobody says; see the package
// comment.
func scopeOf(category turnpolicy.Category, c *phases.Context) itemstore.Scope {
	if category == turnpolicy.Decision || category == turnpolicy.Task || user(c) == "" {
		return itemstore.ScopeWorkspace
	}
	return itemstore.ScopeUser
}

// scopeID is the id that goes with a scope in a turn; false if the turn has none.
func scopeID(scope itemstore.Scope, c *phases.Context) (id string, ok bool) {
	switch scope {
	case itemstore.ScopeThread:
		id = c.Conversation()
	case itemstore.ScopeAgent:
		id = c.AgentID
	case itemstore.ScopeUser:
		id = user(c)
	case itemstore.ScopeWorkspace:
		return "", true
	}
	return id, id != ""
}

// remark is a diagnostic that holds no text of a user.
func remark(code string, severity phases.Severity, message string) phases.Diagnostic {
	return phases.Diagnostic{Code: code, Severity: severity, Message: message, SafeForUser: true}
}

// remarks is an answer that is nothing but diagnostics; nothing for none.
func remarks(list []phases.Diagnostic) []phases.Contribution {
	if len(list) == 0 {
		return nil
	}
	return []phases.Contribution{&phases.Noop{Common: phases.Common{Domain: domain, Diagnostics: list}}}
}

// siblings reports whether two subscriptions are of one plugin: a plugin's name has no
// dot, and what another plugin says in our domain is not ours.
func siblings(a, b string) bool {
	one, _, _ := strings.Cut(a, ".")
	other, _, _ := strings.Cut(b, ".")
	return one == other
}
