package anthropic_test

import (
	"encoding/json"
	"fmt"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/anthropic"
)

func ExampleBuild() {
	out, err := compiler.Compile(compiler.Input{
		Host:    compiler.HostTexts{Identity: "You are a test."},
		Profile: "none",
	})
	if err != nil {
		panic(err)
	}
	built, err := anthropic.Build(providers.Request{
		Model: "claude-opus-5", MaxTokens: 100, Prompt: out.Prompt, Sections: out.Sections,
		Turn: []history.Entry{{Role: history.RoleUser, Text: "Hello."}},
	}, anthropic.Options{})
	if err != nil {
		panic(err)
	}
	// built.Params goes to the SDK's client.Messages.New.
	body, err := json.MarshalIndent(built.Params.System, "", "  ")
	if err != nil {
		panic(err)
	}
	fmt.Println(string(body))
	// Output:
	// [
	//   {
	//     "text": "## Identity\n\nYou are a test.",
	//     "cache_control": {
	//       "type": "ephemeral"
	//     },
	//     "type": "text"
	//   }
	// ]
}
