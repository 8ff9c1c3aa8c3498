package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/mcp/internal/mcpclient"
)

// What became of a definition.
type status string

const (
	statusAccepted   status = "accepted"   // by the configuration
	statusRemembered status = "remembered" // the one that was seen first
	statusChanged    status = "changed"
	statusUnknown    status = "unknown"
)

// instructionsName stands for a server's instructions among its tools; no tool can have it.
const instructionsName = "(instructions)"

// The codes of diagnostics about trust.
const (
	codeChanged       = "mcp_tool_changed"
	codeUnknown       = "mcp_tool_unknown"
	codeNotRemembered = "mcp_not_remembered"
	codeName          = "mcp_tool_name_taken"
)

// judged is a tool, or a server's instructions, with what is known of its definition.
type judged struct {
	tool   phases.Tool // under the name that the model sees
	own    string      // the server's name of it
	hash   string
	status status
	known  string // the hash that a changed definition should have
}

// offered reports whether the definition may reach a model.
func (j *judged) offered(c *config) bool {
	return j.status == statusAccepted || j.status == statusRemembered || j.status == statusChanged && c.Changed == warn
}

// verdict is what a server's listing comes to. It is not changed.
type verdict struct {
	of           *mcpclient.Listing
	tools        []judged
	instructions *judged
	diagnostics  []phases.Diagnostic
}

// judge compares a listing with what was accepted and what was seen first. It returns what is to be remembered from now
// on; nil if that is nothing new.
func judge(name string, c *config, l *mcpclient.Listing, seen map[string]string) (*verdict, map[string]string) {
	v := &verdict{of: l}
	s := c.Servers[name]
	for i := range l.Problems {
		v.warn(name, l.Problems[i].Code, l.Problems[i].Message)
	}
	now := maps.Clone(seen)
	if now == nil {
		now = map[string]string{}
	}
	taken, lost := map[string]string{}, []string{} // taken has the server's names by what the model sees
	for i := range l.Tools {
		t := &l.Tools[i]
		j := judged{own: t.Name, tool: phases.Tool{Name: exposed(name, t.Name), Description: t.Description, InputSchema: t.Schema}}
		switch first := taken[j.tool.Name]; {
		case first != "":
			lost = append(lost, fmt.Sprintf("%s (%s is %s)", t.Name, j.tool.Name, first))
			continue
		case len(j.tool.Name) > maxToolName:
			lost = append(lost, t.Name)
			continue
		}
		taken[j.tool.Name] = t.Name
		j.hash = hashOf(j.tool)
		if len(l.Tools) > *s.HideAbove {
			j.tool.HiddenDomain = name
		}
		j.settle(normal(t.Name), c, s, now)
		v.tools = append(v.tools, j)
	}
	if s.Instructions && l.Instructions != "" {
		v.instructions = &judged{own: instructionsName, tool: phases.Tool{Description: l.Instructions}, hash: hashOf(l.Instructions)}
		v.instructions.settle(instructionsName, c, s, now)
	}
	v.report(name, c)
	if len(lost) > 0 {
		v.warn(name, codeName, fmt.Sprintf(
			"%s withheld: the name NAME%sTOOL that the model sees has more than %d characters, or is that of an earlier tool: %s", mcpclient.Tools(len(lost)), separator, maxToolName, mcpclient.First(lost)))
	}
	if maps.Equal(now, seen) {
		now = nil
	}
	return v, now
}

// settle gives a definition its status by what is known under its normal name. One that is seen for the first time is
// remembered in seen.
func (j *judged) settle(name string, c *config, s *serverConfig, seen map[string]string) {
	accepted, first := s.Accept[name], seen[name]
	switch {
	case accepted != "" && accepted == j.hash:
		j.status = statusAccepted
	case accepted != "":
		j.status, j.known = statusChanged, accepted
	case first == j.hash:
		j.status = statusRemembered
	case first != "":
		j.status, j.known = statusChanged, first
	case c.Unknown == remember:
		seen[name], j.status = j.hash, statusRemembered
	default:
		j.status = statusUnknown
	}
}

// report makes one diagnostic of all changed definitions, and one of all unknown ones.
func (v *verdict) report(server string, c *config) {
	var changed, unknown []string
	for _, j := range v.all() {
		line := fmt.Sprintf("%s (%s)", j.own, j.hash)
		switch j.status {
		case statusChanged:
			changed = append(changed, line)
		case statusUnknown:
			unknown = append(unknown, line)
		case statusAccepted, statusRemembered:
		}
	}
	done := "withheld"
	if c.Changed == warn {
		done = "offered all the same (changed: warn)"
	}
	if len(changed) > 0 {
		v.warn(server, codeChanged, fmt.Sprintf(
			"the definition has changed since it was accepted or first seen, and is %s: %s. Read it (grapnel plugin call PLUGIN %s), then put the hash into servers.%s.accept", done, mcpclient.First(changed), toolsTool, server))
	}
	if len(unknown) > 0 {
		v.warn(server, codeUnknown, fmt.Sprintf(
			"nobody has accepted the definition, and it is withheld (unknown: withhold): %s. Read it (grapnel plugin call PLUGIN %s), then put the hash into servers.%s.accept", mcpclient.First(unknown), toolsTool, server))
	}
}

func (v *verdict) all() []*judged {
	var list []*judged
	for i := range v.tools {
		list = append(list, &v.tools[i])
	}
	if v.instructions != nil {
		list = append(list, v.instructions)
	}
	return list
}

func (v *verdict) warn(server, code, message string) {
	v.diagnostics = append(v.diagnostics, problem(server, code, message))
}

func problem(server, code, message string) phases.Diagnostic {
	return phases.Diagnostic{Code: code, Severity: phases.SeverityWarning, Message: "server " + server + ": " + message, SafeForUser: true}
}

// hashOf is the hash of manifests without a key, so that both can be compared.
func hashOf(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "" // a schema is JSON
	}
	return manifest.HashRaw(raw, nil)
}

// exposed is the name of a tool for models, which take letters, digits, _ and - only.
func exposed(server, tool string) string {
	return server + separator + normal(tool)
}

// normal makes one name of those of a server's tools that a model cannot tell apart. What is known of a tool is known
// under it.
func normal(tool string) string { return strings.NewReplacer(".", "_", "/", "_").Replace(tool) }

// memory is what was seen first, by server and name. The host keeps it, where no server can change it.
type memory struct{ host phases.Host }

// place names a value of the host's state. It is the same in all workspaces and sessions: a server is, too.
type place struct {
	WorkspaceID string            `json:"workspace_id"`
	SessionID   string            `json:"session_id"`
	Value       map[string]string `json:"value,omitempty"`
}

func placeOf(server string, value map[string]string) place {
	return place{WorkspaceID: "mcp", SessionID: "server/" + server, Value: value}
}

func (m memory) get(ctx context.Context, server string) (map[string]string, error) {
	params, err := json.Marshal(placeOf(server, nil))
	if err != nil {
		return nil, err
	}
	raw, err := m.host.Call(ctx, "state", "get", params)
	if err != nil {
		return nil, err
	}
	var answer place
	return answer.Value, json.Unmarshal(raw, &answer)
}

func (m memory) put(ctx context.Context, server string, value map[string]string) error {
	params, err := json.Marshal(placeOf(server, value))
	if err != nil {
		return err
	}
	_, err = m.host.Call(ctx, "state", "put", params)
	return err
}
