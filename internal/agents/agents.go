// Package agents lists the agents that Grapnel works with, and reads and writes their payloads and answers.
//
// [Decode] reads the payload of an agent's event, and [Encode] writes the agent's own answer. Both are pure. An encoder writes
// only fields that the agent's schema has and the answer needs: some agents take an answer with one unknown field for a failed
// hook, and run the tool.
//
// Each agent is a package below this one, which describes it in the words of package agent. Stability: internal.
package agents

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/amp"
	"github.com/grapnelhq/grapnel/internal/agents/claudecode"
	"github.com/grapnelhq/grapnel/internal/agents/codex"
	"github.com/grapnelhq/grapnel/internal/agents/copilot"
	"github.com/grapnelhq/grapnel/internal/agents/cursor"
	"github.com/grapnelhq/grapnel/internal/agents/gemini"
	"github.com/grapnelhq/grapnel/internal/agents/opencode"
	"github.com/grapnelhq/grapnel/internal/agents/vscode"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

//nolint:gochecknoglobals // an immutable list
var all = []*agent.Agent{
	amp.Agent(), claudecode.Agent(), codex.Agent(), copilot.Agent(), cursor.Agent(), gemini.Agent(), opencode.Agent(), vscode.Agent(),
}

// All returns the agents, by their names. They must not be changed.
func All() []*agent.Agent { return slices.Clone(all) }

// Names returns the names of the agents, sorted.
func Names() (names []string) {
	for _, a := range all {
		names = append(names, a.Name)
	}
	return names
}

// Lookup finds an agent by its name; nil if there is none.
func Lookup(name string) *agent.Agent {
	for _, a := range all {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Fate is what becomes of an event in an agent's contract.
type Fate struct {
	// Steps are what the event means here; empty if it is omitted, for the reason Why.
	Steps []agent.Step
	Why   string
}

// Fates returns what becomes of an agent's events, by the names in its own contract.
func Fates(a *agent.Agent) map[string]Fate {
	fates := map[string]Fate{}
	for event, m := range a.Events {
		switch {
		case m.OfMod:
		case m.Step == agent.StepNone:
			fates[event] = Fate{Why: m.Why}
		case m.From == nil:
			fates[event] = Fate{Steps: []agent.Step{m.Step}}
		}
		for _, hook := range m.From {
			steps := append(slices.Clone(fates[hook].Steps), m.Step)
			slices.SortFunc(steps, func(a, b agent.Step) int { return cmp.Compare(a.Rank(), b.Rank()) })
			fates[hook] = Fate{Steps: steps}
		}
	}
	return fates
}

// IsRequest reports whether an event of an agent has a request to its model.
func IsRequest(name, event string) bool {
	a := Lookup(name)
	return a != nil && a.Events[event].Step == agent.StepRequest
}

// Carries reports whether the text of a prompt waits for the answer to an event, since the agent takes none with the prompt.
func Carries(a *agent.Agent, event string) bool {
	for _, m := range a.Events {
		if m.Step == agent.StepPrompt && m.Room.Most > 0 {
			return false
		}
	}
	m := a.Events[event]
	return (m.Step == agent.StepToolResult || m.Step == agent.StepToolFailed) && m.Room.Most > 0
}

// ErrUnknown is the error for an agent that is not described here.
var ErrUnknown = errors.New("the host is unknown")

// mostName bounds the name of an event.
const mostName = 128

// Decode reads the payload of an agent's event. Events without a meaning here have [agent.StepNone]. An error means that the
// agent's contract does not allow the payload.
func Decode(name string, payload []byte) (agent.Event, error) {
	a := Lookup(name)
	if a == nil {
		return agent.Event{}, fmt.Errorf("%w: %q is none of %s", ErrUnknown, name, strings.Join(Names(), ", "))
	}
	payload, replaced := jsonscan.Repair(bytes.TrimPrefix(payload, []byte("\ufeff")))
	e, err := a.Decode(a, payload)
	if err != nil {
		return agent.Event{}, fmt.Errorf("the payload of %s: %w", name, err)
	}
	e.Replaced += replaced
	if e.Agent, e.Host = a, name; e.Name == "" || len(e.Name) > mostName {
		return agent.Event{}, fmt.Errorf("the payload of %s names no event, in hook_event_name with up to %d bytes", name, mostName)
	}
	switch {
	case e.Step == agent.StepNone:
		return e, checkName(&e)
	case e.Step == agent.StepSessionStart && (e.Source == "" || e.Source == "new"), e.Step == agent.StepSubagent:
		e.Source = "startup"
	}
	return e, check(&e)
}

// checkName makes sure that an event without a step is one that the agent has, or a new one, and not a judged event under
// another name.
func checkName(e *agent.Event) error {
	if _, known := e.Agent.Events[e.Name]; known {
		return nil
	}
	var sent []string
	for name, m := range e.Agent.Events {
		if slices.Contains(m.From, e.Name) {
			sent = append(sent, name)
		}
		for _, known := range append(slices.Clone(m.From), name) {
			if known != e.Name && folded(known) == folded(e.Name) {
				return fmt.Errorf("the payload of %s names the event %q, which is written %s", e.Host, e.Name, known)
			}
		}
	}
	if slices.Sort(sent); sent != nil {
		return fmt.Errorf("the payload of %s names the event %s: name what Grapnel's plugin file sends there, %s", e.Host, e.Name, strings.Join(sent, " or "))
	}
	var others []string
	for _, other := range all {
		if other.Events[e.Name].Step.Decides() {
			others = append(others, other.Name)
		}
	}
	if others != nil {
		return fmt.Errorf("the payload of %s names the event %s, which %s have: name the agent that calls the hook", e.Host, e.Name, strings.Join(others, ", "))
	}
	e.Unknown, e.Facts = true, []manifest.HostFact{{Name: "unknown", Value: "no event that this version of Grapnel knows of the agent: no plugin saw it"}}
	return nil
}

// folded is a name without what its spellings differ in.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// check makes sure that an event can be mapped: a missing field must not let a call pass unseen.
func check(e *agent.Event) error {
	var missing string
	switch {
	case e.SessionID == "":
		missing = "session_id"
	case e.Step == agent.StepSubagent && e.AgentID == "":
		missing = "agent_id"
	case e.Call.Tool == "" && e.Step.OfTool():
		missing = "tool_name"
	default:
		return nil
	}
	return fmt.Errorf("the payload of %s for %s has no %s", e.Host, e.Name, missing)
}

const (
	noReason  = "a hook refused this and gave no reason"
	nothing   = "(removed by a hook)"
	notObject = "a hook rewrote the arguments to what is not an object, and this host takes no other"
)

// Encode writes the agent's own answer: one JSON object, or nothing if there is nothing to say.
func Encode(e *agent.Event, o *agent.Outcome) []byte {
	answer := e.Agent.Encode(e, filled(o))
	if answer == nil {
		return nil
	}
	return append(agent.Marshal(answer), '\n')
}

// filled returns an outcome with a text wherever an agent needs one: some take an answer with a blank reason or result for a
// failed hook, and what was refused or erased would go on.
func filled(o *agent.Outcome) *agent.Outcome {
	f := *o
	if f.Verdict == "" && f.Arguments != nil && (!agent.IsObject(bytes.TrimSpace(f.Arguments)) || !json.Valid(f.Arguments)) {
		f.Verdict, f.Reason, f.Arguments = phases.VerdictDeny, notObject, nil
	}
	if f.Verdict != "" && isBlank(f.Reason) {
		f.Reason = noReason
	}
	f.Reason = f.Referring()
	if f.Result != nil && isBlank(*f.Result) {
		f.Result = new(nothing)
	}
	if isBlank(f.Context) {
		f.Context = ""
	}
	return &f
}

// isBlank reports whether an agent takes a text for none; JavaScript trims a byte order mark, too.
func isBlank(text string) bool {
	return strings.TrimSpace(strings.Trim(strings.TrimSpace(text), "\ufeff")) == ""
}
