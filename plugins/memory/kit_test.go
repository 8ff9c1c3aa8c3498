package memory

import (
	"encoding/json"
	"testing"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/internal/toolset"
	"github.com/grapnelhq/grapnel/sdk/plugintest"
)

// TestKit runs every hook and every tool through the kit, in process and over the wire.
func TestKit(t *testing.T) {
	t.Parallel()
	dsn := file(t)
	seed(t, dsn, itemstore.Item{Text: "My dog is called Rex"}, itemstore.Item{Text: "Always answer in Dutch", Category: turnpolicy.Instruction})
	const text = "What is my dog called?"
	turn := begin(t, configured(t, dsn, nil, nil), ada("1")).says(text)
	if len(turn.contexts) != 1 {
		t.Fatalf("contexts %+v", turn.contexts)
	}
	const changes = "it changes what it answers from"
	normal, said := turn.policies, phases.T(text)
	forget := []phases.PolicyEntry{{Domain: domain, Key: policyKey, Value: raw(t, turnpolicy.Policy{
		Recall: "disabled", RememberTool: "disabled", ForgetTool: "allow", PostTurnExtraction: "disabled", ActiveRecall: "disabled",
		ReadTools: "allow", Prompt: "forget_only", ReasonCode: "en.forget",
	})}}
	cases := map[string]plugintest.Case{
		"policy":        {Hook: "policy", Input: &phases.PrePolicyInput{UserText: said}},
		"recall":        {Hook: "recall", Input: &phases.PrePromptContextInput{UserText: said}, Policies: normal},
		"active recall": {Hook: "active_recall", Input: &phases.PostPreflightInput{RecallPlan: jsonRaw(`{"queries":["dog"]}`)}, Policies: normal},
		"tools":         {Hook: "tools", Input: &phases.PreToolsInput{ToolCalling: true}, Policies: normal},
		"prompt": {
			Hook: "prompt", Input: &phases.PrePromptCompileInput{ToolCalling: true, AvailableTools: toolset.Names()}, Policies: normal, Contexts: turn.contexts,
		},
		"prompt without room": {
			Hook: "prompt", Input: &phases.PrePromptCompileInput{ToolCalling: true, AvailableTools: toolset.Names()}, Policies: normal, Contexts: turn.contexts, MaxChars: 10,
		},
		"extract": {
			Hook: "extract", Input: &phases.PostTurnInput{Status: phases.TurnSucceeded, UserText: phases.NewPreview("I prefer tabs.", 100)},
			Policies: normal, Contexts: turn.contexts, Volatile: changes,
		},
		"remember":           {Tool: toolset.Remember, Arguments: `{"text":"I prefer tea"}`, Policies: normal, Volatile: changes},
		"forget":             {Tool: toolset.Forget, Arguments: `{"query":"dog"}`, Policies: normal},
		"remember not":       {Tool: toolset.Remember, Arguments: `{"text":"x"}`, Policies: forget},
		"an override, wrong": {Hook: "policy", Context: withOverride(`7`)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.Context.WorkspaceID == "" {
				c.Context = ada("1")
			}
			dsn := dsn
			if c.Volatile != "" {
				dsn = file(t) // the others answer from theirs
			}
			c.Config = string(config(t, dsn, nil))
			// The kit closes no plugin, and sees what it leaves running: the database is
			// open before it comes, and closed behind it.
			plugintest.Run(t, configured(t, dsn, nil, nil), c)
		})
	}
}

// withOverride is a turn whose host decides.
func withOverride(value string) phases.Context {
	c := ada("1")
	c.Metadata = map[string]json.RawMessage{overrideKey: jsonRaw(value)}
	return c
}
