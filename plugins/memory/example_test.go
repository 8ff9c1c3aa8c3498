package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory"
)

// declaration is the plugin with all that it needs of an operator. Without the grant
// host: model.complete the rules alone read what users write.
const declaration = `version: 1
plugins:
  - name: memory
    builtin: memory
    grants:
      contribute: [policy, prompt_context, tool_bundle, prompt_section, audit]
      policies: [memory/turn_policy]
      domains: [memory]
      sections: [memory_recall]
      tools: ['memory_*']
      see: [policy, context, metadata, user_text, assistant_text, recall_plan, tool_calling, available_tools, status, tool_events]
      host: [model.complete]
    env: {pass: [HOME, XDG_DATA_HOME]}
    config:
      default_policy: normal
`

// Example plays a host that hands the hooks of a turn what the ones before have
// contributed. An engine does all this by itself.
func Example() {
	dir, err := os.MkdirTemp("", "memory")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, p := context.Background(), memory.New()
	defer func() { _ = p.Close(ctx) }()
	config := fmt.Sprintf(`{"dsn": %q}`, "sqlite:"+filepath.Join(dir, "memory.db"))
	if _, err := p.Configure(ctx, &phases.Configuration{Instance: "memory", Config: json.RawMessage(config)}); err != nil {
		fmt.Println(err)
		return
	}
	where := phases.Context{WorkspaceID: "w", ThreadID: "t", Actor: phases.Actor{Kind: "user", ID: "ada"}}
	call := func(hook string, in phases.Input, policies []phases.PolicyEntry, contexts []phases.ContextEntry) []phases.Contribution {
		res, err := p.Dispatch(ctx, &phases.Dispatch{
			Subscription: "memory." + hook, Hook: hook, Context: where, Input: in, Policies: policies, Contexts: contexts,
		})
		if err != nil {
			fmt.Println(err)
			return nil
		}
		return res.Contributions
	}
	for _, text := range []string{"Remember that my dog is called Rex.", "What does my dog eat?"} {
		policy, _ := call("policy", &phases.PrePolicyInput{UserText: phases.T(text)}, nil, nil)[0].(*phases.Policy)
		policies := []phases.PolicyEntry{{Domain: policy.Domain, Key: policy.Key, Value: policy.Value, Owner: "memory.policy"}}
		var contexts []phases.ContextEntry
		for _, c := range call("recall", &phases.PrePromptContextInput{UserText: phases.T(text)}, policies, nil) {
			if c, ok := c.(*phases.PromptContext); ok {
				contexts = append(contexts, phases.ContextEntry{ContributionID: c.ContributionID, Domain: c.Domain, Content: c.Content, Owner: "memory.recall"})
			}
		}
		in := &phases.PrePromptCompileInput{ToolCalling: true, AvailableTools: []string{"memory_search"}}
		for _, c := range call("prompt", in, policies, contexts) {
			if s, ok := c.(*phases.PromptSection); ok {
				fmt.Println(s.SectionID + ":")
				fmt.Println(strings.SplitAfter(s.Frame.Open, "\n\n")[1])
				_, memory, _ := strings.Cut(s.Content, ") ") // behind scope, category and date
				fmt.Println(memory)
				fmt.Println(s.Frame.Close)
			}
		}
		call("extract", &phases.PostTurnInput{Status: phases.TurnSucceeded, UserText: phases.NewPreview(text, 4000)}, policies, contexts)
	}
	// Output:
	// memory_recall:
	// <MEMORIES>
	// my dog is called Rex
	// </MEMORIES>
}
