package openai_test

import (
	"encoding/json"
	"fmt"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/openai"
)

func ExampleBuild() {
	out, err := compiler.Compile(compiler.Input{
		Host:    compiler.HostTexts{Identity: "You are a test."},
		Profile: "none",
	})
	if err != nil {
		panic(err)
	}
	built, err := openai.Build(providers.Request{
		Model: "gpt-5.6-sol", Prompt: out.Prompt,
		Turn: []history.Entry{{Role: history.RoleUser, Text: "Hello."}},
	}, openai.Options{})
	if err != nil {
		panic(err)
	}
	// built.Params goes to the SDK's client.Responses.New.
	body, err := json.Marshal(built.Params.Input)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(body))
	fmt.Println(built.Params.PromptCacheKey.Value)
	// Output:
	// [{"content":"## Identity\n\nYou are a test.","role":"system"},{"content":"Hello.","role":"user"}]
	// xxh64:e8d0fee42f26e064
}
