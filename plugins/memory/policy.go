package memory

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/internal/toolset"
	"github.com/grapnelhq/grapnel/sdk"
)

const (
	policyKey   = "turn_policy"
	overrideKey = "memory.policy_override" // the host's metadata that overrides the user's words
)

func (m *memory) policy(_ context.Context, call *sdk.Call, in *phases.PrePolicyInput) ([]phases.Contribution, error) {
	var notes []phases.Diagnostic
	if in.UserText.Withheld {
		notes = append(notes, remark("user_text_withheld", phases.SeverityWarning,
			"the user's text is withheld (grants.see: user_text), so no wish is read, nothing is recalled and nothing is stored of the turn"))
	}
	if slices.Contains(call.Withheld, "metadata") {
		notes = append(notes, remark("metadata_withheld", phases.SeverityInfo,
			"the host's metadata is withheld (grants.see: metadata), so a "+overrideKey+" in it has no effect"))
	}
	text := in.UserText.Value
	if !byUser(&call.Context) {
		text = ""
	}
	p := m.rules.Decide(turnpolicy.Input{
		Mode: call.Context.Mode, Override: call.Context.Metadata[overrideKey], Text: text, Default: m.settings.DefaultPolicy,
	})
	value, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return sdk.Reply(&phases.Policy{
		Common: phases.Common{ContributionID: policyKey, Domain: domain, Diagnostics: notes}, Key: policyKey, Value: value,
	})
}

// turnPolicy returns the turn's policy. Without a valid entry it allows nothing.
func turnPolicy(set []phases.PolicyEntry) (p turnpolicy.Policy, ok bool) {
	for i := range set {
		if set[i].Domain == domain && set[i].Key == policyKey {
			p, err := turnpolicy.Parse(set[i].Value)
			return p, err == nil
		}
	}
	return turnpolicy.Policy{}, false
}

// allows returns whether a policy allows a tool.
func allows(p turnpolicy.Policy) func(tool string) bool {
	return func(tool string) bool {
		switch tool {
		case toolset.Remember:
			return p.RememberTool.Allowed()
		case toolset.Forget:
			return p.ForgetTool.Allowed()
		}
		return p.ReadTools.Allowed()
	}
}

// user is the id of the user who caused the turn, if the host says so.
func user(c *phases.Context) string {
	if c.Actor.Kind == "user" {
		return c.Actor.ID
	}
	return ""
}

// byUser reports whether a turn's text comes from a user, not from an agent or the system.
func byUser(c *phases.Context) bool {
	return (c.Actor.Kind == "" || c.Actor.Kind == "user") && c.Mode != phases.ModeSystem
}

func (m *memory) view(c *phases.Context) itemstore.View {
	return itemstore.View{
		WorkspaceID: c.WorkspaceID, ThreadID: c.Conversation(), AgentID: c.AgentID, UserID: user(c),
		UserEverywhere: m.settings.UserScopeEverywhere,
	}
}

func (m *memory) clock(c *phases.Context) time.Time {
	if c.Now.IsZero() {
		return m.now()
	}
	return c.Now
}

// defaultScope is the scope of a memory for which nobody chose one; see the package comment.
func defaultScope(category turnpolicy.Category, c *phases.Context) itemstore.Scope {
	if category == turnpolicy.Decision || category == turnpolicy.Task || user(c) == "" {
		return itemstore.ScopeWorkspace
	}
	return itemstore.ScopeUser
}

func scopeID(scope itemstore.Scope, c *phases.Context) (id string, ok bool) {
	switch scope {
	case itemstore.ScopeThread:
		id = c.Conversation()
	case itemstore.ScopeAgent:
		id = c.AgentID
	case itemstore.ScopeUser:
		id = user(c)
	default: // the store refuses unknown scopes
		return "", true
	}
	return id, id != ""
}

// remark is a diagnostic that contains no user's text.
func remark(code string, severity phases.Severity, message string) phases.Diagnostic {
	return phases.Diagnostic{Code: code, Severity: severity, Message: message, SafeForUser: true}
}

func remarks(list []phases.Diagnostic) []phases.Contribution {
	if len(list) == 0 {
		return nil
	}
	return []phases.Contribution{&phases.Noop{Common: phases.Common{Domain: domain, Diagnostics: list}}}
}
