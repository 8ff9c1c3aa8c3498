package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/bridge"
)

// eventTable lists the events of all agents in the contracts that were last compared, and what becomes of each.
func eventTable(root string) (string, error) {
	data, err := os.ReadFile(filepath.Join(root, "internal", "contracts", "contracts.json"))
	if err != nil {
		return "", err
	}
	var contracts []struct {
		Host    string   `json:"host"`
		Package string   `json:"package"`
		Version string   `json:"version"`
		Source  string   `json:"source"`
		Events  []string `json:"events"`
	}
	if err := json.Unmarshal(data, &contracts); err != nil {
		return "", err
	}
	var rows [][]string
	for _, c := range contracts {
		fates := bridge.Fates(c.Host)
		from := strings.Join(slices.DeleteFunc([]string{c.Package, c.Version}, func(s string) bool { return s == "" }), " ")
		if from == "" {
			from = c.Source
		}
		for _, event := range c.Events {
			fate, known := fates[event]
			if !known {
				return "", fmt.Errorf("%s has the event %s, which is neither mapped nor left out", c.Host, event)
			}
			becomes := "left out: " + fate.Why
			if fate.Why == "" {
				becomes = becomesOf(fate.Steps)
			}
			rows = append(rows, []string{code(c.Host), code(event), becomes, from})
		}
	}
	return grid([]string{"agent", "event", "here", "as of"}, rows), nil
}

// becomesOf says which phases steps are.
func becomesOf(steps []bridge.Step) string {
	var words []string
	for _, step := range steps {
		word := phasesOf(step)
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, "; ")
}

func phasesOf(step bridge.Step) string {
	switch step {
	case bridge.StepPrompt:
		return "`turn.pre_policy` and all others up to the prompt"
	case bridge.StepSubagent:
		return "`session.start`, and a prompt of its own"
	case bridge.StepUsage:
		return "the usage of the prompt"
	case bridge.StepText:
		return "the text for `turn.pre_end`"
	case bridge.StepPermission:
		return "`tool.pre_call`; not registered, since the call was judged before"
	case bridge.StepFile:
		return "on record: `files`, `host_events`"
	case bridge.StepNote:
		return "on record: `host_events`"
	case bridge.StepConfig:
		return "refused if it would take away or alter hooks of Grapnel; on record: `host_events`"
	default:
		var names []string
		for _, p := range step.Phases() {
			names = append(names, string(p))
		}
		return codes(names)
	}
}
