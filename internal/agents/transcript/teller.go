package transcript

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
)

// Teller says what a file has as events of the agent's hooks, with the names that these have.
type Teller struct {
	// Now has what the next events share: the session and the subagent, the directory and the model.
	Now agent.Payload
	// Turn, Parent, Version and At are theirs, too.
	Turn, Parent, Version string
	At                    time.Time

	agent   *agent.Agent
	yield   func(*agent.Said, error) bool
	calls   map[string]agent.Payload // without a result
	unknown int
	done    bool
}

// Done reports whether nobody listens any more.
func (t *Teller) Done() bool { return t.done }

// Unknown counts something that was not understood.
func (t *Teller) Unknown() { t.unknown++ }

func (t *Teller) tell(s *agent.Said) {
	s.Unknown, t.unknown = t.unknown, 0
	t.done = t.done || !t.yield(s, nil)
}

// event makes the event of a hook by its name. p has what is not shared.
func (t *Teller) event(name string, p agent.Payload) *agent.Said {
	p.Name, p.SessionID, p.AgentID, p.Dir, p.Model = name, t.Now.SessionID, t.Now.AgentID, t.Now.Dir, t.Now.Model
	e := p.Event(t.agent)
	e.Agent, e.Host, e.TurnID, e.ParentID = t.agent, t.agent.Name, t.Turn, t.Parent
	return &agent.Said{Event: e, Time: t.At, Version: t.Version}
}

// Event tells an event of a hook by its name. It is unknown outside a session.
func (t *Teller) Event(name string, p agent.Payload) {
	if t.Now.SessionID == "" {
		t.unknown++
		return
	}
	t.tell(t.event(name, p))
}

// Call tells a call, and keeps it for its result.
func (t *Teller) Call(name, id, tool string, arguments json.RawMessage) {
	if id == "" || tool == "" {
		t.unknown++
		return
	}
	t.Event(name, agent.Payload{CallID: id, Tool: tool, Arguments: arguments})
	if len(arguments) > mostArguments {
		arguments = nil
	}
	if len(t.calls) == mostOpen {
		clear(t.calls)
	}
	t.calls[id] = agent.Payload{CallID: strings.Clone(id), Tool: strings.Clone(tool), Arguments: arguments}
}

// Result is what came of a call.
type Result struct {
	Text   string
	Became agent.Became
	By     string
	// Failed says that the hook is told of an error.
	Failed bool
}

// IsOpen reports whether a call has no result yet.
func (t *Teller) IsOpen(id string) bool { return t.calls[id].Tool != "" }

// Tool returns the tool of a call without a result.
func (t *Teller) Tool(id string) string { return t.calls[id].Tool }

// Result tells what came of a call. A result without a call is unknown.
func (t *Teller) Result(name, id string, r Result) {
	p, ok := t.calls[id]
	if delete(t.calls, id); !ok || t.Now.SessionID == "" {
		t.unknown++
		return
	}
	s := t.event(name, p)
	s.Event.Step, s.Event.Result, s.Event.IsError, s.Became, s.By = agent.StepToolResult, Cut(r.Text), r.Failed, r.Became, r.By
	t.tell(s)
}

// Cut returns the beginning of a text, up to [MostText].
func Cut(text string) string {
	if len(text) <= MostText {
		return text
	}
	return strings.ToValidUTF8(text[:MostText], "")
}
