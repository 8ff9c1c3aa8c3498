// Package pluginfile describes what the agents have in common that load a plugin of ours instead of calling hooks: opencode and
// Amp. Their files send payloads of Claude Code's shape to a gateway's socket (POST /hook/HOST), and do what its answer says.
// Both sides are ours. What the gateway did not decide is refused, where the agent asks; where it only tells, it goes on.
package pluginfile

import (
	_ "embed" // for gateway.ts
	"encoding/json"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

//go:embed gateway.ts
var gateway string // what all of them begin with, with HOST for the agent's name

// File returns the plugin file of an agent, with the socket of its gateway where that is not the usual one (else empty), and
// with the command that starts the MCP server of plugins' tools, if there is one, for an agent that lets a plugin add one. It is
// nil for agents that load no plugin.
func File(a *agent.Agent, socket string, server ...string) []byte {
	if a.Plugin == "" {
		return nil
	}
	text, own := strings.ReplaceAll(gateway, "HOST", a.Name), a.Plugin
	if socket != "" {
		before, rest, _ := strings.Cut(text, "\nconst socket = ")
		_, after, _ := strings.Cut(rest, "\n")
		text = before + "\nconst socket = env.GRAPNEL_SOCKET ?? " + strconv.QuoteToASCII(socket) + "\n" + after
	}
	if command, err := json.Marshal(server); err == nil && len(server) > 0 {
		own = strings.Replace(own, serverList+"[]", serverList+string(command), 1)
	}
	return []byte(text + "\n" + own)
}

// Server returns the command that starts the MCP server by a plugin file, if it has one.
func Server(file string) (command []string) {
	_, list, _ := strings.Cut(file, serverList)
	_ = json.NewDecoder(strings.NewReader(list)).Decode(&command) // there may be none
	return command
}

// Is reports whether a text is the plugin file of an agent, whatever its socket and server are.
func Is(a *agent.Agent, text string) bool {
	_, rest, _ := strings.Cut(text, "\nconst socket = env.GRAPNEL_SOCKET ?? ")
	line, _, _ := strings.Cut(rest, "\n")
	socket, _ := strconv.Unquote(line) // the usual one is an expression
	return text != "" && text == string(File(a, socket, Server(text)...))
}

type payload struct {
	agent.Payload

	TurnID  string       `json:"turn_id"`
	Parent  string       `json:"parent_session_id"`
	IsError bool         `json:"is_error"`
	Error   string       `json:"error"`
	Usage   phases.Usage `json:"usage"`
	sent
}

// sent is a request to the model, in parts of which a plugin file says whose they are.
type sent struct {
	Provider string                   `json:"provider"`
	System   []compiler.RequestPart   `json:"system"`
	Tools    []compiler.RequestPart   `json:"tools"`
	Messages [][]compiler.RequestPart `json:"messages"`
	NotSeen  string                   `json:"not_seen"`
}

func (s *sent) observed(agent string) *compiler.Request {
	r := &compiler.Request{Agent: agent, System: s.System, Tools: s.Tools, History: manifest.History{Entries: len(s.Messages)}}
	for i := range r.System {
		p := &r.System[i]
		if p.Stability != phases.StabilityDynamic {
			p.Stability = phases.StabilityStable
		}
		if !phases.ValidName(p.ID) {
			p.ID = "system"
		}
	}
	for i, parts := range s.Messages {
		for _, p := range parts {
			p.Message = i
			r.Messages = append(r.Messages, p)
		}
	}
	return r
}

// Decode is the [agent.Agent.Decode] of these agents.
func Decode(a *agent.Agent, data []byte) (agent.Event, error) { return agent.Decoder(decode)(a, data) }

func decode(a *agent.Agent, p *payload) (agent.Event, error) {
	e := p.Event(a)
	e.TurnID, e.ParentID, e.IsError = p.TurnID, p.Parent, p.IsError
	if e.Step == agent.StepFailed {
		e.Text = p.Error
	}
	switch e.Step {
	case agent.StepUsage:
		e.Usage = p.Usage
	case agent.StepRequest:
		e.Provider, e.Request, e.Facts = p.Provider, p.observed(a.Name), agent.NotSeen(p.NotSeen)
	default: // it has neither
	}
	return e, nil
}

// answer is what a plugin file does: it refuses, or goes on with what is set.
type answer struct {
	// Deny is why something is refused, or must go on.
	Deny      string          `json:"deny,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    *string         `json:"result,omitempty"`
	Context   string          `json:"context,omitempty"`
}

// Encode is the [agent.Agent.Encode] of these agents.
func Encode(_ *agent.Event, o *agent.Outcome) any {
	switch {
	case o.Verdict != "":
		return answer{Deny: o.DenyAsk().Reason}
	case o.Arguments != nil || o.Result != nil || o.Context != "":
		return answer{Arguments: o.Arguments, Result: o.Result, Context: o.Context}
	}
	return nil
}

// serverList is the list in a plugin of the command that starts the MCP server.
const serverList = "string[] = "

// TakesServer reports whether an agent's plugin adds the MCP server.
func TakesServer(a *agent.Agent) bool { return strings.Contains(a.Plugin, serverList) }
