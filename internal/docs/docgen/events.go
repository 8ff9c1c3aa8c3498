package main

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/contracts"
)

// eventTable lists the events of all agents in the contracts that were last compared, and what becomes of each.
func eventTable(root string) (string, error) {
	all, err := contracts.Read(filepath.Join(root, contracts.List))
	if err != nil {
		return "", err
	}
	events := map[string]map[string][]string{} // by what becomes of them, and by agent
	for _, c := range all {
		fates := agents.Fates(agents.Lookup(c.Host))
		for _, event := range c.Events {
			fate := fates[event]
			becomes := "omitted"
			if fate.Why == "" {
				becomes = becomesOf(fate.Steps)
			}
			if events[becomes] == nil {
				events[becomes] = map[string][]string{}
			}
			events[becomes][c.Host] = append(events[becomes][c.Host], event)
		}
	}
	var rows [][]string
	for _, becomes := range slices.Sorted(maps.Keys(events)) {
		var of []string
		for _, host := range slices.Sorted(maps.Keys(events[becomes])) {
			of = append(of, host+" "+codes(events[becomes][host]))
		}
		rows = append(rows, []string{becomes, strings.Join(of, "; ")})
	}
	return grid([]string{"here", "events"}, rows), nil
}

// becomesOf says which phases steps are.
func becomesOf(steps []agent.Step) string {
	var words []string
	for _, step := range steps {
		word := phasesOf(step)
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, "; ")
}

func phasesOf(step agent.Step) string {
	switch step {
	case agent.StepPrompt:
		return "`turn.pre_policy` and all others up to the prompt"
	case agent.StepSubagent:
		return "`session.start`, and a prompt of its own"
	case agent.StepUsage:
		return "the usage of the prompt"
	case agent.StepRequest:
		return "on record: the request"
	case agent.StepText:
		return "the text for `turn.pre_end`"
	case agent.StepPermission:
		return "`tool.pre_call`; not registered, since the call was judged before"
	case agent.StepFile:
		return "on record: `files`, `host_events`"
	case agent.StepNote:
		return "on record: `host_events`"
	case agent.StepConfig:
		return "refused if it would take away or alter hooks of Grapnel; on record: `host_events`"
	default:
		var names []string
		for _, p := range step.Phases() {
			names = append(names, string(p))
		}
		return codes(names)
	}
}
