package openaihttp_test

import (
	"encoding/json"
	"strings"
	"testing"

	anthropicsdk "github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	openaisdk "github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/grapnelhq/grapnel/phases"
)

// sdkScript is a turn with a plugin's call, then one of the client's beside one that is denied, then words.
func sdkScript() func(int, dict) said {
	return script(
		said{text: "I add. ", calls: []call{{"p", "desk_add", `{"n":1}`}}},
		said{text: "I edit.", calls: []call{{"d", "shell", `{}`}, {"e", "edit", `{"path":"/etc"}`}}},
		said{text: "Done."},
	)
}

// wantSDKTurn checks what the API got, and how the turn ended.
func wantSDKTurn(t *testing.T, w *world, path, answer string) {
	t.Helper()
	c := &talk{world: w, path: path}
	got := c.conversation(2)
	for _, line := range []string{
		"user Edit.", `call p desk_add {"n":1}`, `result p the sum of {"n":1}`, "call d shell {}", `result d the call of the tool "shell" was refused`,
		`call e edit {"path":"/safe"}`, "result e edited",
	} {
		if strings.Count(got, line) != 1 {
			t.Errorf("%q is not once in\n%s", line, got)
		}
	}
	if end := w.ended(); end.Status != phases.TurnSucceeded || len(end.ToolEvents) != 3 || answer != "Done." {
		t.Errorf("the client got %q, the turn ended with %+v", answer, end)
	}
}

func TestChatSDK(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sdkScript(), nil)
	client := openaisdk.NewClient(openaioption.WithBaseURL(w.URL+"/v1"), openaioption.WithAPIKey("none"), openaioption.WithHTTPClient(w.Client()))
	params := openaisdk.ChatCompletionNewParams{
		Model:    "m",
		Messages: []openaisdk.ChatCompletionMessageParamUnion{openaisdk.SystemMessage("Yours."), openaisdk.UserMessage("Edit.")},
		Tools:    []openaisdk.ChatCompletionToolUnionParam{openaisdk.ChatCompletionFunctionTool(openaisdk.FunctionDefinitionParam{Name: "edit"})},
	}
	ask := func() *openaisdk.ChatCompletion {
		var acc openaisdk.ChatCompletionAccumulator
		s := client.Chat.Completions.NewStreaming(t.Context(), params)
		for s.Next() {
			if !acc.AddChunk(s.Current()) {
				t.Errorf("a chunk does not fit: %s", s.Current().RawJSON())
			}
		}
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
		return &acc.ChatCompletion
	}
	first := ask().Choices[0]
	if len(first.Message.ToolCalls) != 1 || first.Message.ToolCalls[0].Function.Arguments != `{"path":"/safe"}` || first.FinishReason != "tool_calls" {
		t.Fatalf("the client got %+v", first.Message)
	}
	params.Messages = append(params.Messages, first.Message.ToParam(), openaisdk.ToolMessage("edited", "e"))
	wantSDKTurn(t, w, chatPath, ask().Choices[0].Message.Content)
}

func TestResponsesSDK(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sdkScript(), nil)
	client := openaisdk.NewClient(openaioption.WithBaseURL(w.URL+"/v1"), openaioption.WithAPIKey("none"), openaioption.WithHTTPClient(w.Client()))
	input := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("Edit.", responses.EasyInputMessageRoleUser)}
	params := responses.ResponseNewParams{
		Model: "m", Instructions: openaisdk.String("Yours."),
		Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "edit", Strict: openaisdk.Bool(false)}}},
	}
	ask := func() (done responses.Response, deltas string) {
		params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: input}
		s := client.Responses.NewStreaming(t.Context(), params)
		for s.Next() {
			switch ev := s.Current().AsAny().(type) {
			case responses.ResponseTextDeltaEvent:
				deltas += ev.Delta
			case responses.ResponseFunctionCallArgumentsDoneEvent:
				if ev.Arguments != `{"path":"/safe"}` || ev.ItemID != "fc-e" {
					t.Errorf("the client got %s", ev.RawJSON())
				}
			case responses.ResponseCompletedEvent:
				done = ev.Response
			}
		}
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
		return done, deltas
	}
	first, text := ask()
	if text != "I add. I edit." || len(first.Output) != 3 || first.Output[2].AsFunctionCall().Arguments != `{"path":"/safe"}` {
		t.Fatalf("the client got %q, %s", text, first.RawJSON())
	}
	if first.Instructions.OfString != "Yours." || len(first.Tools) != 1 || first.Tools[0].Name != "edit" {
		t.Errorf("the response repeats %q, %+v", first.Instructions.OfString, first.Tools)
	}
	for i := range first.Output {
		var item responses.ResponseInputItemUnionParam
		if err := json.Unmarshal([]byte(first.Output[i].RawJSON()), &item); err != nil {
			t.Fatal(err)
		}
		input = append(input, item)
	}
	input = append(input, responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &responses.ResponseInputItemFunctionCallOutputParam{
		CallID: openaisdk.String("e"), Output: responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: openaisdk.String("edited")},
	}})
	_, text = ask()
	wantSDKTurn(t, w, responsesPath, text)
}

func TestMessagesSDK(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sdkScript(), nil)
	client := anthropicsdk.NewClient(anthropicoption.WithBaseURL(w.URL), anthropicoption.WithAPIKey("none"), anthropicoption.WithHTTPClient(w.Client()))
	params := anthropicsdk.MessageNewParams{
		Model: "m", MaxTokens: 100, System: []anthropicsdk.TextBlockParam{{Text: "Yours.", CacheControl: anthropicsdk.NewCacheControlEphemeralParam()}},
		Messages: []anthropicsdk.MessageParam{anthropicsdk.NewUserMessage(anthropicsdk.NewTextBlock("Edit."))},
		Tools:    []anthropicsdk.ToolUnionParam{{OfTool: &anthropicsdk.ToolParam{Name: "edit"}}},
	}
	ask := func() *anthropicsdk.Message {
		var m anthropicsdk.Message
		s := client.Messages.NewStreaming(t.Context(), params)
		for s.Next() {
			if err := m.Accumulate(s.Current()); err != nil {
				t.Errorf("%v: %s", err, s.Current().RawJSON())
			}
		}
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
		return &m
	}
	first := ask()
	if len(first.Content) != 3 || string(first.Content[2].Input) != `{"path":"/safe"}` || first.StopReason != "tool_use" {
		t.Fatalf("the client got %s", first.RawJSON())
	}
	// Clients move their mark for the cache from request to request.
	params.Messages[0].Content[0].OfText.CacheControl = anthropicsdk.CacheControlEphemeralParam{TTL: anthropicsdk.CacheControlEphemeralTTLTTL1h}
	params.Messages = append(params.Messages, first.ToParam(), anthropicsdk.NewUserMessage(anthropicsdk.NewToolResultBlock("e", "edited", false)))
	wantSDKTurn(t, w, messagesPath, ask().Content[0].Text)
	system := arr(w.model.request(0)["system"])
	if marked := obj(system[0])["cache_control"] != nil; len(system) != 2 || !marked || obj(system[1])["cache_control"] != nil {
		t.Errorf("the system prompt is %s", show(system))
	}
}
