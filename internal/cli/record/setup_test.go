package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// fixed are options without chance.
func fixed() Options {
	return Options{Program: "a test", Now: func() time.Time { return noon }, Entropy: bytes.NewReader([]byte("12345678"))}
}

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// samples is one exchange of each kind and shape.
func samples() map[string]*runtime.Exchange {
	base := func(kind runtime.ExchangeKind) runtime.Exchange {
		return runtime.Exchange{
			Kind: kind, Plugin: "guard", Version: "1.2.0", SHA256: "builtin", Start: 3, Generation: 2, Incarnation: 1,
			Subscription: "guard.rule", Begin: noon, TookMS: 1.5,
		}
	}
	dispatch, failed, tool, custom := base(runtime.ExchangeDispatch), base(runtime.ExchangeDispatch), base(runtime.ExchangeTool), base(runtime.ExchangeDispatch)
	context := phases.Context{WorkspaceID: "w", TurnID: "1", Now: noon, Dir: "/w", Flags: map[string]bool{"f": true}, Metadata: map[string]json.RawMessage{"m": json.RawMessage(`{"a":1}`)}}
	left := phases.AnswerBudget{MaxChars: 100, MaxBytes: 4 << 20}
	dispatch.Dispatch = &phases.Dispatch{
		Subscription: "guard.rule", Hook: "rule", Phase: phases.ToolPreCall, Context: context, Attempt: 2, IdempotencyKey: "k/guard.rule", Budget: left,
		Input:    &phases.ToolPreCallInput{Tool: "shell", Arguments: json.RawMessage(`{"withheld":true,"chars":9}`), TouchedPaths: []string{"/w/a"}},
		Withheld: []string{"arguments"}, Policies: []phases.PolicyEntry{{Domain: "d", Key: "k", Value: json.RawMessage(`[1]`), Priority: 5, Owner: "o.h"}},
		Contexts: []phases.ContextEntry{{ContributionID: "c", Content: "<b>", Owner: "o.h", Render: true, SourceRefs: []phases.SourceRef{{Kind: "file", ID: "f"}}}},
		Trace:    phases.Trace{Parent: "00-1"}, Remaining: 250 * time.Millisecond, Generation: 2, Incarnation: 1,
	}
	dispatch.Result = &phases.Result{
		Contributions: []phases.Contribution{&phases.Decision{Verdict: phases.VerdictDeny, Reason: "no \u2028 <shell>", ReasonCode: "r"}, &phases.Noop{}},
		Diagnostics:   []phases.Diagnostic{{Code: "x", Severity: phases.SeverityInfo, Message: "m"}},
	}
	dispatch.HostCalls = []runtime.HostCall{
		{Service: "model", Method: "complete", Params: json.RawMessage(`{"input":"a"}`), Result: json.RawMessage(`{"text":"b"}`), TookMS: 1},
		{Service: "state", Method: "get", Err: &phases.Error{Code: phases.CauseForbidden, Message: "no"}},
	}
	failed.Dispatch = &phases.Dispatch{
		Subscription: "guard.rule", Hook: "rule", Phase: phases.PrePolicy, Attempt: 1,
		Input: &phases.PrePolicyInput{UserText: phases.Text{Withheld: true, Chars: 12}, Model: "m"},
	}
	failed.Err = &phases.Error{Code: phases.CausePluginError, Message: "upstream", PluginCode: "down", Retryable: true}
	tool.ToolCall = &phases.ToolCall{
		Tool: "look", Arguments: json.RawMessage(`{"q":1.50}`), Context: context, OutsideTurn: true, Budget: left, Remaining: time.Second,
		Policies: dispatch.Dispatch.Policies, IdempotencyKey: "k", Trace: phases.Trace{State: "a=b"}, Generation: 2, Incarnation: 1,
	}
	tool.ToolResult = &phases.ToolResult{Content: json.RawMessage(`"found"`), IsError: true}
	custom.Dispatch = &phases.Dispatch{Subscription: "guard.rule", Hook: "rule", Phase: "x.host.point", Input: &phases.CustomInput{Name: "x.host.point", Fields: json.RawMessage(`{"a":[1,2]}`)}}
	custom.Result = &phases.Result{Contributions: phases.Contributions{}}
	start, lone := base(runtime.ExchangeConfigure), base(runtime.ExchangeHost)
	start.Configuration = &runtime.ExchangeConfiguration{
		Instance: "guard", Config: json.RawMessage(`{"token":"***"}`), Secrets: map[string]string{"/token": "TOKEN"}, Services: []string{"state"},
	}
	start.Description = &phases.Description{Name: "own", Version: "1.2.0", Hooks: []phases.Hook{{Name: "rule", Phase: phases.ToolPreCall, Timeout: phases.Duration(time.Second)}}}
	lone.HostCalls = []runtime.HostCall{{Service: "state", Method: "put", Params: json.RawMessage(`{"value":1}`), Result: json.RawMessage(`{}`)}}
	return map[string]*runtime.Exchange{"dispatch": &dispatch, "failed": &failed, "tool": &tool, "custom": &custom, "configure": &start, "host": &lone}
}

// one is any exchange.
func one() *runtime.Exchange { return samples()["tool"] }

// disk is a file that fails when it is told to.
type disk struct {
	bytes.Buffer
	// left is how much fits; negative is without end.
	left   int
	closed bool
}

var errFull = errors.New("no space left on device")

// Write implements io.Writer: what fits is written.
func (d *disk) Write(p []byte) (int, error) {
	n := len(p)
	if d.left >= 0 {
		n = min(n, d.left)
		d.left -= n
	}
	d.Buffer.Write(p[:n])
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

func (d *disk) Close() error {
	d.closed = true
	return nil
}

// writer writes a record into a file that is empty.
func writer(t testing.TB, file *disk, o Options) *Writer {
	t.Helper()
	w, err := newWriter(file, 0, false, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// entries reads all of a record.
func entries(t *testing.T, data []byte) ([]*Entry, *Reader) {
	t.Helper()
	r := NewReader(bytes.NewReader(data))
	var all []*Entry
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, r
		}
		if err != nil {
			t.Fatalf("%v, in:\n%s", err, data)
		}
		all = append(all, e)
	}
}
