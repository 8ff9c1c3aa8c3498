package scripts

import (
	"bytes"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
)

// Of is a hook of an event as its agent takes answers of it, whatever script it runs. AsHost is set: the agent's own rules
// count.
func Of(a *agent.Agent, event string) *agent.Hook {
	m := meaning(a, event)
	return &agent.Hook{Agent: a, Names: a.Scripts, Event: event, Step: m.ScriptStep(), Rules: m.Script, AsHost: true}
}

// Answer reads what a script said by the rules of its agent. An error is a *[agent.Failure]: an exit code that says nothing,
// or output that the agent would not have taken. An answer that stands in a text, where the agent does not see it, is a failure.
// Where h.AsHost is set, an agent's own rule for a program that is missing counts, if it is stricter than a failure.
func Answer(h *agent.Hook, o *agent.Output, f *agent.Facts) (agent.Answer, error) {
	rules := h.Agent.Scripts
	strict := h.AsHost && rules.BlocksOnExit
	switch {
	case o.Code == 126 && !strict:
		return agent.Answer{}, h.Failed(agent.CodeNotExecutable, "is not executable", o)
	case o.Code == 127 && !strict:
		return agent.Answer{}, h.Failed(agent.CodeNotFound, "was not found, or calls a program that was not", o)
	}
	out := bytes.TrimSpace(o.Stdout)
	if h.AsHost && !rules.KeepsMark { // programs in JavaScript trim it
		out = bytes.TrimSpace(bytes.TrimPrefix(out, []byte("\ufeff")))
	}
	if rules.Text != nil {
		out = rules.Text(o, out)
	}
	a, err := rules.Answer(h, o, out, f)
	if err == nil && o.Code == 0 {
		if agent.IsObject(out) || rules.Lists && bytes.HasPrefix(out, []byte("[")) {
			err = misplaced(h, &a, out)
		} else {
			err = stray(h, out)
		}
		if err != nil && h.AsHost {
			a.Ignored, err = err.Error(), nil
		} else if err != nil {
			err = h.Invalid(o, err)
		}
	}
	switch {
	case err != nil:
		return agent.Answer{}, err
	case h.Silent():
		return agent.Answer{Note: a.Note, Lost: a.Lost}, nil
	}
	return a, nil
}
