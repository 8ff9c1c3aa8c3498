package transcript

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
)

// most bounds the calls without a result, and the keys of [Teller.First]; mostArguments, in bytes, the arguments that are said
// again with a result, and names.
const (
	most          = 1024
	mostArguments = 4 << 10
)

// Teller says what a file has as events of the agent's hooks.
type Teller struct {
	// Now, Turn, Parent, Version and At are what the next events share: the session, the subagent, the directory and the model;
	// the turn; the parent session; the agent's version; the time.
	Now                   agent.Payload
	Turn, Parent, Version string
	At                    time.Time
	// Last is what the model said last in the turn.
	Last string
	// Done says that nobody listens any more.
	Done bool

	agent   *agent.Agent
	yield   func(*agent.Said, error) bool
	calls   map[string]agent.Call // without a result
	seen    map[string]bool
	unknown int
}

// Tell returns what read tells, and its error at the end.
func Tell(a *agent.Agent, read func(t *Teller) error) iter.Seq2[*agent.Said, error] {
	return func(yield func(*agent.Said, error) bool) {
		t := &Teller{agent: a, yield: yield, calls: map[string]agent.Call{}, seen: map[string]bool{}}
		err := read(t)
		if t.unknown > 0 {
			t.Say(&agent.Said{Version: t.Version})
		}
		if !t.Done && err != nil {
			yield(nil, err)
		}
	}
}

// Say tells something. An event outside a session is unknown.
func (t *Teller) Say(s *agent.Said) {
	if s.Event.Step != agent.StepNone && s.Event.SessionID == "" {
		t.unknown++
		return
	}
	if s.Unknown, t.unknown = t.unknown, 0; !t.Done {
		t.Done = !t.yield(s, nil)
	}
}

// First reports whether a key is seen for the first time.
func (t *Teller) First(key string) bool {
	if key = key[:min(len(key), mostArguments)]; t.seen[key] {
		return false
	}
	if len(t.seen) == most {
		clear(t.seen)
	}
	t.seen[strings.Clone(key)] = true
	return true
}

// Unknown counts something that was not understood.
func (t *Teller) Unknown() { t.unknown++ }

// said makes an event by the name of its hook. p has what is not shared.
func (t *Teller) said(name string, p agent.Payload) *agent.Said {
	p.Name, p.SessionID, p.AgentID, p.Dir, p.Model = name, t.Now.SessionID, t.Now.AgentID, t.Now.Dir, t.Now.Model
	e := p.Event(t.agent)
	e.Agent, e.Host, e.TurnID, e.ParentID = t.agent, t.agent.Name, t.Turn, t.Parent
	return &agent.Said{Event: e, Time: t.At, Version: t.Version}
}

// Event tells an event by the name of its hook.
func (t *Teller) Event(name string, p agent.Payload) { t.Say(t.said(name, p)) }

// Begin tells that the session or the subagent begins, once for each.
func (t *Teller) Begin() {
	switch {
	case !t.First(t.Now.SessionID + "\x00" + t.Now.AgentID):
	case t.Now.AgentID != "":
		t.step("SubagentStart", agent.StepSubagent, "")
	default:
		t.Event("SessionStart", agent.Payload{Source: "startup"})
	}
}

// Stop tells that the turn ends, by the name of the hook, or the subagent.
func (t *Teller) Stop(name, last string) {
	if t.Now.AgentID != "" {
		name = "SubagentStop"
	}
	t.step(name, agent.StepStop, last)
}

// End tells that the turn ends, as Stop does, if the model has said something last.
func (t *Teller) End(name string) {
	if t.Last != "" {
		t.Stop(name, t.Last)
	}
	t.Last = ""
}

// step tells an event of a step also for an agent without such a hook.
func (t *Teller) step(name string, step agent.Step, last string) {
	s := t.said(name, agent.Payload{})
	s.Event.Step, s.Event.Text = step, Cut(last)
	t.Say(s)
}

// Clock sets the time as agents write it; it is zero if it is not one.
func (t *Teller) Clock(text Value) { t.At, _ = time.Parse(time.RFC3339Nano, text.String()) }

// Call tells a call, and keeps it for its result. Without a tool, or with arguments that are not JSON, it
// is unknown.
func (t *Teller) Call(name, id, tool string, arguments []byte) {
	if tool == "" || len(id)+len(tool) > mostArguments || !json.Valid(arguments) {
		t.unknown++
		return
	}
	s := t.said(name, agent.Payload{CallID: id, Tool: tool, Arguments: slices.Clone(arguments)})
	if len(t.calls) == most {
		clear(t.calls)
	}
	if t.calls[id] = s.Event.Call; len(arguments) > mostArguments {
		t.calls[id] = agent.Call{ID: id, Tool: tool}
	}
	t.Say(s)
}

// Tool returns the tool of a call without a result; empty if there is none.
func (t *Teller) Tool(id string) string { return t.calls[id].Tool }

// Result is what came of a call. Failed says that the hook is told of an error.
type Result struct {
	Text   string
	Became agent.Became
	By     string
	Failed bool
}

// Refusal sets what became of a call by the first of the texts that its result has, each with who refused it. It reports whether
// there is one.
func (r *Result) Refusal(texts [][2]string) bool {
	head := r.Text[:min(len(r.Text), most)]
	for _, text := range texts {
		if strings.Contains(head, text[0]) {
			r.Became, r.By = agent.Refused, text[1]
			return true
		}
	}
	return false
}

// Result tells what came of a call. Without the call it is unknown.
func (t *Teller) Result(name, id string, r Result) {
	call, ok := t.calls[id]
	if delete(t.calls, id); !ok {
		t.unknown++
		return
	}
	s := t.said(name, agent.Payload{})
	s.Became, s.By, s.Event.Call, s.Event.Result, s.Event.IsError = r.Became, r.By, call, Cut(r.Text), s.Event.IsError || r.Failed
	t.Say(s)
}

// Cut returns the beginning of a text, up to [MostText].
func Cut(text string) string {
	if len(text) <= MostText {
		return text
	}
	return strings.ToValidUTF8(text[:MostText], "")
}
