package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agents"
)

// TestContracts: each event of the list is mapped or omitted with a reason, and no other is known. An event that is new, or
// gone, is named.
func TestContracts(t *testing.T) {
	t.Parallel()

	kept, err := readList(filepath.Base(list))
	if err != nil {
		t.Fatal(err)
	}
	if err := compare(kept); err != nil {
		t.Error(err)
	}
	for _, a := range agents.All() {
		for event, m := range a.Events {
			if (m.Step == "") != (m.Why != "") {
				t.Errorf("%s, %s: %+v", a.Name, event, m)
			}
		}
	}
	kept[0].Events = append(slices.Clone(kept[0].Events[1:]), "Tomorrow")
	err = compare(kept)
	for _, want := range []string{kept[0].Host + ": ", "has the event Tomorrow", "the event ConfigChange, which is in none"} {
		if kept[0].Host == "claude-code" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("a new event and one that is gone: %v", err)
		}
	}
}

// TestNames: the names are found as the packages write them.
func TestNames(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ agent, text, want string }{
		{"claude-code", "export declare const HOOK_EVENTS: readonly ['PreToolUse', \"Stop\"];\n['Other']", "PreToolUse Stop"},
		{"codex", `{"$ref":"#/definitions/HookEventName","definitions":{"HookEventName":{"enum":["preToolUse","stop"],"type":"string"}}}`, "PreToolUse Stop"},
		{"codex", `[`, ""},
		{"gemini", "export declare enum HookEventName {\n    BeforeTool = \"BeforeTool\",\n    A = \"AfterTool\"\n}\nenum Other { C = \"C\" }", "AfterTool BeforeTool"},
		{"copilot", "interface SessionHooks {\n    /** onThis?: */\n    onAgentStop?: A;\n    onUserPromptTransformed?: B;\n    onPreToolUse?: C;\n}\n", "PreToolUse Stop userPromptTransformed"},
		{"cursor", `x={beforeShellExecution:"beforeShellExecution",stop:"stop"},y={a:"b"}`, "beforeShellExecution stop"},
		{"opencode", "export interface Hooks {\n    dispose?: () => Promise<void>;\n    event?: (input: {\n        event: Event;\n    }) => Promise<void>;\n    \"tool.execute.before\"?: (input: {\n        tool: string;\n    }) => Promise<void>;\n}\n    other?: x", "dispose event tool.execute.before"},
		{"amp", "interface PluginEventMap {\n\t'tool.call': A\n\t'agent.end': B\n}\n'x': 1", "agent.end tool.call"},
	} {
		if got := strings.Join(namesIn([]byte(tt.text), agents.Lookup(tt.agent).Contract), " "); got != tt.want {
			t.Errorf("%.40s: %q, want %q", tt.text, got, tt.want)
		}
	}
}
