package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/bridge"
)

// TestContracts: each event of the list is mapped or left out with a reason, and no other is known. An event that is new,
// or gone, is named.
func TestContracts(t *testing.T) {
	t.Parallel()

	kept, err := readList(filepath.Base(list))
	if err != nil {
		t.Fatal(err)
	}
	if err := compare(kept); err != nil {
		t.Error(err)
	}
	for i, c := range kept {
		if !slices.Contains(bridge.Hosts(), c.Host) {
			t.Errorf("there is no host %s", c.Host)
		}
		more := slices.Clone(kept)
		more[i].Events = append(slices.Clone(c.Events), "Tomorrow")
		if err := compare(more); err == nil || !strings.Contains(err.Error(), c.Host+": ") || !strings.Contains(err.Error(), "has the event Tomorrow") {
			t.Errorf("a new event of %s: %v", c.Host, err)
		}
		fewer := slices.Clone(kept)
		fewer[i].Events = c.Events[1:]
		if err := compare(fewer); err == nil || !strings.Contains(err.Error(), "the event "+c.Events[0]) {
			t.Errorf("an event of %s that is gone: %v", c.Host, err)
		}
	}
	for _, host := range bridge.Hosts() {
		for event, fate := range bridge.Fates(host) {
			if (len(fate.Steps) == 0) != (fate.Why != "") || slices.Contains(fate.Steps, bridge.StepNone) {
				t.Errorf("%s, %s: %+v", host, event, fate)
			}
		}
	}
}

// TestNames: the names are found as the packages write them.
func TestNames(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		names      func([]byte) []string
		text, want string
	}{
		{claudeNames, "export declare const HOOK_EVENTS: readonly ['PreToolUse', \"Stop\"];\n['Other']", "PreToolUse Stop"},
		{codexNames, `{"definitions":{"HookEventName":{"enum":["preToolUse","stop"],"type":"string"}}}`, "PreToolUse Stop"},
		{codexNames, `[`, ""},
		{geminiNames, "export declare enum HookEventName {\n    BeforeTool = \"BeforeTool\",\n    A = \"AfterTool\"\n}\nenum Other { C = \"C\" }", "AfterTool BeforeTool"},
		{copilotNames, "interface SessionHooks {\n    /** onThis?: */\n    onAgentStop?: A;\n    onUserPromptTransformed?: B;\n    onPreToolUse?: C;\n}\n", "PreToolUse Stop userPromptTransformed"},
		{cursorNames, `x={beforeShellExecution:"beforeShellExecution",stop:"stop"},y={a:"b"}`, "beforeShellExecution stop"},
		{opencodeNames, "export interface Hooks {\n    dispose?: () => Promise<void>;\n    event?: (input: {\n        event: Event;\n    }) => Promise<void>;\n    \"tool.execute.before\"?: (input: {\n        tool: string;\n    }) => Promise<void>;\n}\n    other?: x", "dispose event tool.execute.before"},
		{ampNames, "interface PluginEventMap {\n\t'tool.call': A\n\t'agent.end': B\n}\n'x': 1", "agent.end tool.call"},
		{claudeNames, "nothing", ""},
	} {
		if got := strings.Join(tt.names([]byte(tt.text)), " "); got != tt.want {
			t.Errorf("%.40s: %q, want %q", tt.text, got, tt.want)
		}
	}
}
