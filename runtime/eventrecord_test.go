package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// judging is a plugin that brings a tool, rewrites and allows its calls, would deny them, and denies "rm".
func judging() *hosted {
	h := newHosted(plugin("p",
		on("tools", phases.PreTools, reply(&phases.ToolBundle{BundleID: "b", Tools: []phases.Tool{{Name: "list"}}}), phases.KindToolBundle),
		on("safe", phases.ToolPreCall, func(_ context.Context, _ *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
			if call, ok := in.(*phases.ToolPreCallInput); ok && call.Tool == "rm" {
				return []phases.Contribution{&phases.Decision{Verdict: phases.VerdictDeny, Reason: "words of the plugin", ReasonCode: "destructive"}}, nil
			}
			return []phases.Contribution{
				&phases.Decision{Verdict: phases.VerdictAllow, ReasonCode: "known"},
				&phases.Rewrite{Path: "/depth", Value: raw("1")},
			}, nil
		}, phases.KindDecision, phases.KindRewrite),
		on("strict", phases.ToolPreCall, reply(&phases.Decision{Verdict: phases.VerdictDeny}), phases.KindDecision),
		on("end", phases.PostTurn, reply(), phases.KindNoop),
	))
	h.cfg.Plugins[0].Subscriptions = map[string]phases.Override{"p.strict": {Shadow: new(true)}}
	return h
}

// TestEventRecords: what happens after a prompt is in a record of the same chain, which says who allowed what.
func TestEventRecords(t *testing.T) {
	t.Parallel()

	h, sink := judging(), &memorySink{}
	h.opts.Sink = sink
	eng := h.start(t)
	where := host()
	where.Actor, where.AgentID, where.TaskID = phases.Actor{Kind: "user", ID: "42"}, "agent", "task"
	turn := beginAt(t, eng, where)
	prompted(t)(turn.Compile(t.Context(), runtime.CompileInput{ToolCalling: true}))
	arguments := raw(`{"depth": 9, "path": "."}`)
	outcome(t)(turn.Dispatch(t.Context(), &phases.ToolPreCallInput{Tool: "list", Arguments: arguments}))
	_, _ = turn.CallTool(t.Context(), phases.ToolCall{Tool: "list", Arguments: raw(`{"path":".","depth":1}`), IdempotencyKey: "call-1"})
	outcome(t)(turn.Dispatch(t.Context(), &phases.ToolPreCallInput{Tool: "rm"}))
	_, _ = turn.CallTool(t.Context(), phases.ToolCall{Tool: "gone"})
	for _, tool := range []string{"list", "cat"} { // of a plugin's tool the call before says it
		outcome(t)(turn.Dispatch(t.Context(), &phases.ToolPostCallInput{Tool: tool, Outcome: "error"}))
	}
	outcome(t)(turn.End(t.Context(), nil))
	if len(sink.records) != 2 || sink.last("w", "t").Kind != manifest.KindEvents {
		t.Fatalf("%d records", len(sink.records))
	}
	m := sink.records[1]
	came, went, empty := manifest.HashRaw(arguments, nil), manifest.HashRaw(raw(`{"depth":1,"path":"."}`), nil), manifest.HashRaw(raw("{}"), nil)
	none := manifest.Hash("", nil)
	safe := func(v phases.Verdict, code string) []manifest.Decider {
		return []manifest.Decider{{Subscription: "p.safe", Verdict: v, ReasonCode: code}, {Subscription: "p.strict", Verdict: phases.VerdictDeny, Shadow: true}}
	}
	want := []manifest.Call{
		{Phase: phases.ToolPreCall, Tool: "list", Owner: "p", Came: came, Went: went, Verdict: phases.VerdictAllow, DecidedBy: safe(phases.VerdictAllow, "known"), RewrittenBy: []string{"p.safe"}},
		{Phase: phases.PhaseToolCall, CallID: "call-1", Tool: "list", Owner: "p", Came: went, Went: went, State: phases.StateFailed, Code: string(phases.CausePluginError)},
		{Phase: phases.ToolPreCall, Tool: "rm", Owner: phases.OwnerHost, Came: empty, Went: empty, Verdict: phases.VerdictDeny, DecidedBy: safe(phases.VerdictDeny, "destructive")},
		{Phase: phases.PhaseToolCall, Tool: "gone", Came: empty, Went: empty, State: phases.StateFailed, Code: string(phases.CauseForbidden)},
		{Phase: phases.ToolPostCall, Tool: "cat", Owner: phases.OwnerHost, Came: none, Went: none, State: phases.StateSucceeded, Code: "error"},
	}
	checkSame(t, "calls", m.Calls, want)
	var rows []string
	for _, r := range m.Runs {
		rows = append(rows, string(r.Phase)+" "+r.Hook)
	}
	checkSame(t, "runs since the prompt", rows, []string{"tool.pre_call safe", "tool.pre_call strict", "tool.call list", "tool.pre_call safe", "tool.pre_call strict", "tool.call gone", "turn.post_turn end"})
	if m.Prev != sink.records[0].Hash || !m.TurnEnded || sink.records[0].TurnEnded || m.FingerprintFull != manifest.Fingerprint("", nil) || len(m.Plugins) != 1 || len(m.Sections) != 0 {
		t.Errorf("record %+v", m.Head)
	}
	for _, m := range sink.records {
		if err := manifest.Validate(m); err != nil {
			t.Error(err)
		}
		if m.Actor != "user:42" || m.AgentID != "agent" || m.TaskID != "task" || m.Mode != phases.ModeAgent || m.Build == "" || m.ConfigHash == "" || m.Plugins[0].GrantHash == "" {
			t.Errorf("head %+v, plugins %+v", m.Head, m.Plugins)
		}
		if b, err := json.Marshal(m); err != nil || bytes.Contains(b, []byte("words of the plugin")) {
			t.Errorf("the record has a plugin's words, or %v", err)
		}
	}
}

// TestRunsAreCountedOnce: what stats count over the records of turns, with several prompts, records of events, blocked
// prompts and an id that comes again, is what the hooks themselves have counted.
func TestRunsAreCountedOnce(t *testing.T) {
	t.Parallel()

	want := manifest.OwnerStats{Owner: "p"}
	counting := func(p phases.Phase, kinds ...phases.Kind) sdk.Hook {
		return on(strings.ReplaceAll(string(p), ".", "_"), p, func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) {
			want.Runs++
			switch {
			case want.Runs%5 == 0:
				want.Failed++
				return nil, errors.New("no")
			case want.Runs%7 == 0 && len(kinds) > 0:
				want.Denied++
				return []phases.Contribution{&phases.Decision{Verdict: phases.VerdictDeny}}, nil
			}
			return nil, nil
		}, kinds...)
	}
	h, sink := newHosted(plugin("p", counting(phases.PrePromptCompile), counting(phases.ToolPreCall, phases.KindDecision),
		counting(phases.PostPromptCompile, phases.KindDecision), counting(phases.PostCompaction))), &memorySink{}
	h.opts.Sink = sink
	eng := h.start(t)
	for range 3 {
		turn, epoch := begin(t, eng), 0
		for i := range 20 {
			_, _ = turn.Compile(t.Context(), runtime.CompileInput{})
			if last := sink.last("w", "t"); last.Epoch != epoch {
				t.Fatalf("the epoch is %d, want %d", last.Epoch, epoch)
			}
			_, _ = turn.Dispatch(t.Context(), &phases.ToolPreCallInput{Tool: "list"})
			if i%3 == 0 && turn.Keep(t.Context()) != nil {
				t.Fatal("the events were not kept")
			}
			if _, err := turn.Dispatch(t.Context(), &phases.PostCompactionInput{Lost: []string{"a", "\xff"}[:1+i%2]}); err == nil { // every other one is refused
				epoch++
			}
		}
		_, _ = turn.End(t.Context(), nil)
	}
	if want.Failed == 0 || want.Denied == 0 {
		t.Fatalf("%+v", want)
	}
	c := manifest.NewCounter()
	for _, m := range sink.records {
		c.AddRecord(m)
	}
	if diff := cmp.Diff(c.Stats().Owners[1:], []manifest.OwnerStats{want}); diff != "" { // behind "builtin"
		t.Errorf("over %d records (-got +want):\n%s", len(sink.records), diff)
	}
}

// TestEventsOutsideOfTurns: a dispatch outside of a turn leaves a record if something was decided.
func TestEventsOutsideOfTurns(t *testing.T) {
	t.Parallel()

	h, sink := judging(), &memorySink{}
	h.opts.Sink = sink
	eng := h.start(t)
	dispatch(t, eng, &phases.PostTurnInput{})
	waitBackground(t, eng)
	if len(sink.records) != 0 {
		t.Fatalf("a dispatch that decides nothing left %d records", len(sink.records))
	}
	dispatch(t, eng, &phases.ToolPreCallInput{Tool: "rm"})
	if len(sink.records) != 1 || len(sink.records[0].Calls) != 1 || sink.records[0].Calls[0].Verdict != phases.VerdictDeny || sink.records[0].TurnEnded || len(sink.records[0].Runs) != 2 {
		t.Errorf("records %+v", sink.records)
	}
	prompted(t)(eng.CompileTurn(t.Context(), host(), runtime.CompileInput{}))
	if last := sink.last("w", "t"); last.Kind != manifest.KindPrompt || !last.TurnEnded {
		t.Errorf("the record of a turn that ends with its prompt: %+v", last.Head)
	}
}

// TestReportRequest: what a request had different from its prompt's record is in the turn's next record, within bounds.
func TestReportRequest(t *testing.T) {
	t.Parallel()

	sink := &memorySink{}
	h := newHosted(whole())
	h.opts.Sink = sink
	turn := begin(t, h.start(t))
	if err := turn.ReportRequest(nil); !errors.Is(err, runtime.ErrNothingCompiled) {
		t.Errorf("before anything was compiled: %v", err)
	}
	ids := rounds(t, turn, 1)
	renamed := manifest.RequestChange{Kind: manifest.RequestToolName, ID: "a.b", Manifest: "a.b", Sent: "a_b"}
	if err := turn.ReportRequest([]manifest.RequestChange{renamed}); err != nil {
		t.Fatal(err)
	}
	if err := turn.ReportRequest([]manifest.RequestChange{{Kind: "colour"}}); err == nil || !strings.Contains(err.Error(), `"colour"`) {
		t.Errorf("an unknown kind: %v", err)
	}
	ids = append(ids, rounds(t, turn, 1)...)
	many := slices.Repeat([]manifest.RequestChange{{Kind: manifest.RequestCallID, ID: strings.Repeat("i", 1000), Sent: "\xff"}}, 300)
	for _, changes := range [][]manifest.RequestChange{many, nil} {
		if err := turn.ReportRequest(changes); err != nil {
			t.Fatal(err)
		}
	}
	outcome(t)(turn.End(t.Context(), nil))
	cut := manifest.RequestChange{Kind: manifest.RequestCallID, ID: strings.Repeat("i", phases.MaxIDBytes), Sent: "\uFFFD"}
	want := [][]manifest.Request{
		nil,
		{{ManifestID: ids[0], Changes: []manifest.RequestChange{renamed}}},
		{{ManifestID: ids[1], Changes: slices.Repeat([]manifest.RequestChange{cut}, 256), Omitted: 44}, {ManifestID: ids[1]}},
	}
	var got [][]manifest.Request
	for _, m := range sink.records {
		got = append(got, m.Requests)
		if err := manifest.Validate(m); err != nil {
			t.Error(err)
		}
	}
	checkSame(t, "requests", got, want)
}

// TestOpenTurnsAtClose: what happened in a turn that nobody has ended is recorded when the engine closes, and once.
func TestOpenTurnsAtClose(t *testing.T) {
	t.Parallel()

	var failures journal
	h, sink := judging(), &memorySink{}
	h.opts.Sink, h.opts.OnEvent = sink, failures.events(runtime.EventManifest)
	eng := h.start(t)
	open := func(thread string, called bool) *runtime.Turn {
		where := host()
		where.ThreadID = thread
		turn := beginAt(t, eng, where)
		prompted(t)(turn.Compile(t.Context(), runtime.CompileInput{ToolCalling: true}))
		if called {
			outcome(t)(turn.Dispatch(t.Context(), &phases.ToolPreCallInput{Tool: "rm"}))
		}
		return turn
	}
	turn, quiet, ended := open("called", true), open("quiet", false), open("ended", true)
	outcome(t)(ended.End(t.Context(), nil))
	before := len(sink.records)
	closeEngine(t, eng)
	if len(sink.records) != before+1 {
		t.Fatalf("%d more records", len(sink.records)-before)
	}
	m := sink.records[before]
	if m.ThreadID != "called" || m.Kind != manifest.KindEvents || m.TurnEnded || len(m.Calls) != 1 || m.Calls[0].Verdict != phases.VerdictDeny {
		t.Errorf("record %+v, calls %+v", m.Head, m.Calls)
	}
	for _, turn := range []*runtime.Turn{turn, quiet} {
		if out, err := turn.End(t.Context(), nil); out != nil || !errors.Is(err, runtime.ErrClosed) {
			t.Errorf("End behind Close: %+v, %v", out, err)
		}
	}
	if len(sink.records) != before+1 || len(failures.all()) != 0 {
		t.Errorf("%d records, events %v", len(sink.records), failures.all())
	}
}

// TestManyOpenTurnsAtClose: a slow sink does not keep Close for long, and each turn that was not recorded is reported.
func TestManyOpenTurnsAtClose(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var failures journal
		h, slow := judging(), false
		sink := &memorySink{before: func(context.Context, string) error {
			if slow {
				<-time.After(400 * ms)
			}
			return nil
		}}
		h.opts.Sink, h.opts.OnEvent = sink, failures.events(runtime.EventManifest)
		eng := h.start(t)
		const turns = 20
		var open [turns]*runtime.Turn // a turn that nobody holds is forgotten
		for i := range open {
			open[i] = begin(t, eng)
			outcome(t)(open[i].Dispatch(t.Context(), &phases.ToolPreCallInput{Tool: "rm"}))
		}
		defer goruntime.KeepAlive(&open)
		slow = true
		begun := time.Now()
		closeEngine(t, eng)
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("Close took %v", took)
		}
		if kept := len(sink.records); kept != 5 || len(failures.all()) != turns-kept {
			t.Errorf("%d records, %d failures of %d turns", kept, len(failures.all()), turns)
		}
	})
}
