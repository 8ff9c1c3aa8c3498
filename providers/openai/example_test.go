package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/phases"
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

// A Completer is what runtime.Options.Complete takes: here with a server that
// always says the same.
func ExampleCompleter() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"model": "small-1", "choices": [{"message": {"content": "{\"warm\": true}"}, "finish_reason": "stop"}], "usage": {"completion_tokens": 6}}`)
	}))
	defer server.Close()
	c, err := openai.NewCompleter(openai.CompleterOptions{BaseURL: server.URL + "/v1", Model: "small"})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := c.Complete(context.Background(), phases.CompletionRequest{
		Input:  "Is it warm?",
		Schema: json.RawMessage(`{"type": "object", "properties": {"warm": {"type": "boolean"}}, "required": ["warm"]}`),
	})
	fmt.Println(res.Text, res.Model, res.Stopped, res.Usage.OutputTokens, err)
	// Output: {"warm": true} small-1 end 6 <nil>
}
