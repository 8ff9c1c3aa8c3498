package openaihttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/adapters/openaihttp"
	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The APIs, by their paths.
const (
	chatPath, responsesPath, messagesPath = "/v1/chat/completions", "/v1/responses", "/v1/messages"
)

type (
	dict = map[string]any
	list = []any
)

// call is a call that the fake model makes, or that a client gets.
type call struct{ id, name, args string }

// said is an answer of the fake model's, or what a client has of one.
type said struct {
	text   string
	calls  []call
	status int    // 0 is 200
	body   string // in place of an answer
	tail   string // a text behind the calls (not Chat Completions)
}

// decode keeps numbers as they are.
func decode(raw []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(v)
}

// world is a proxy with plugins before a fake model.
type world struct {
	*httptest.Server

	t     *testing.T
	model *model
	sink  *looptest.Sink
	proxy *openaihttp.Proxy
	desk  *desk
	ends  chan *phases.PostTurnInput
}

// desk is the plugin of these tests.
type desk struct {
	ends   chan *phases.PostTurnInput
	remind sync.Map // ids of turns whose next prompt reminds
	// slow, if set, is called by the tool that is slow.
	slow func(ctx context.Context)
}

const (
	rulesText = "House rules: be kind."
	// bigNumber has no float64.
	bigNumber = "12345678901234567890123456789"
)

func tool(name string) phases.Tool {
	return phases.Tool{Name: name, Description: "A tool of the desk's.", InputSchema: json.RawMessage(`{"type":"object"}`)}
}

func (d *desk) plugin() *sdk.Plugin {
	decide := func(verdict phases.Verdict, reason string) ([]phases.Contribution, error) {
		return sdk.Reply(&phases.Decision{Verdict: verdict, Reason: reason})
	}
	adds := tool("desk.add")
	return &sdk.Plugin{
		Name: "desk", Version: "1.0.0", Doc: "Is there for tests.",
		Hooks: []sdk.Hook{
			{Name: "judge", Kinds: []phases.Kind{phases.KindDecision}, PrePolicy: func(_ context.Context, c *sdk.Call, in *phases.PrePolicyInput) ([]phases.Contribution, error) {
				if strings.Contains(in.UserText.Value, "remind") {
					d.remind.Store(c.Context.TurnID, true)
				}
				if strings.Contains(in.UserText.Value, "forbidden") {
					return decide(phases.VerdictDeny, "not here")
				}
				return nil, nil
			}},
			{Name: "offer", Kinds: []phases.Kind{phases.KindToolBundle}, PreTools: func(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.ToolBundle{BundleID: "desk", Tools: []phases.Tool{adds, tool("slow"), tool("panics"), tool("huge")}})
			}},
			{Name: "rules", Kinds: []phases.Kind{phases.KindPromptSection}, PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.PromptSection{SectionID: "rules", Title: "Rules", Content: rulesText})
			}},
			{Name: "remind", Kinds: []phases.Kind{phases.KindReminder}, PrePromptCompile: func(_ context.Context, c *sdk.Call, _ *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
				if _, ok := d.remind.LoadAndDelete(c.Context.TurnID); ok {
					return sdk.Reply(&phases.Reminder{Type: "note", Text: "Do not forget."})
				}
				return nil, nil
			}},
			{Name: "guard", Kinds: []phases.Kind{phases.KindDecision, phases.KindRewrite}, ToolPreCall: func(_ context.Context, _ *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
				switch in.Tool {
				case "shell":
					return decide(phases.VerdictDeny, "no shell here")
				case "edit":
					return sdk.Reply(&phases.Rewrite{Path: "/path", Value: json.RawMessage(`"/safe"`)})
				case "fails":
					return nil, errors.New("the guard is out of order")
				}
				return nil, nil
			}},
			{Name: "redact", Kinds: []phases.Kind{phases.KindRewrite}, ToolPostCall: func(_ context.Context, _ *sdk.Call, in *phases.ToolPostCallInput) ([]phases.Contribution, error) {
				if strings.Contains(in.Result.Text, "secret") {
					return sdk.Reply(&phases.Rewrite{Path: "", Value: json.RawMessage(`"[redacted]"`)})
				}
				return nil, nil
			}},
			{Name: "end", PostTurn: func(_ context.Context, _ *sdk.Call, in *phases.PostTurnInput) ([]phases.Contribution, error) {
				d.ends <- in
				return nil, nil
			}},
		},
		Tools: []sdk.Tool{
			{Tool: adds, Call: func(_ context.Context, c *sdk.ToolCall) (*phases.ToolResult, error) {
				return sdk.Text("the sum of " + string(c.Arguments)), nil
			}},
			{Tool: tool("slow"), Call: func(ctx context.Context, _ *sdk.ToolCall) (*phases.ToolResult, error) {
				d.slow(ctx)
				return sdk.Text("at last"), nil
			}},
			{Tool: tool("panics"), Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) { panic("a tool that panics") }},
			{Tool: tool("huge"), Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) {
				return sdk.Text(strings.Repeat("x", 100_000)), nil
			}},
		},
	}
}

func newWorld(t *testing.T, script func(int, dict) said, change func(*openaihttp.Options)) *world {
	t.Helper()
	ends := make(chan *phases.PostTurnInput, 1000)
	w := &world{t: t, model: newModel(t, script), sink: &looptest.Sink{}, desk: &desk{ends: ends}, ends: ends}
	eng := looptest.Host(t, w.sink, w.desk.plugin())
	upstream, err := url.Parse(w.model.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	o := openaihttp.Options{Engine: eng, Upstream: upstream, Transport: transport, MaxResultChars: 50_000}
	if change != nil {
		change(&o)
	}
	if w.proxy, err = openaihttp.New(o); err != nil {
		t.Fatal(err)
	}
	w.Server = httptest.NewServer(w.proxy)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		w.Close()
		w.proxy.Close(ctx)
		transport.CloseIdleConnections()
	})
	return w
}

// ended waits for the end of a turn.
func (w *world) ended() *phases.PostTurnInput {
	w.t.Helper()
	select {
	case in := <-w.ends:
		return in
	case <-time.After(20 * time.Second):
		w.t.Fatal("no turn has ended")
		return nil
	}
}

// obj, arr, str and number read decoded JSON; what is something else is empty.
func obj(v any) dict {
	o, _ := v.(dict)
	return o
}

func arr(v any) list {
	l, _ := v.(list)
	return l
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

// raw is JSON.
func raw(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func number(v any) int {
	n, _ := v.(json.Number)
	i, _ := n.Int64()
	return int(i)
}

// show is JSON for messages of tests.
func show(v any) string { return string(raw(v)) }
