package telemetry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/telemetry"
)

// kinds are all kinds of events, and one that does not exist.
func kinds() []runtime.EventKind {
	return []runtime.EventKind{
		runtime.EventPlugin, runtime.EventRun, runtime.EventFailOpen, runtime.EventDropped, runtime.EventLog, runtime.EventAudit,
		runtime.EventJob, runtime.EventReload, runtime.EventManifest, runtime.EventDispatch, runtime.EventBreaker, runtime.EventAbandoned, "another",
	}
}

// filled sets every text below v to its own secret sentence, also those of fields
// that will be added one day.
func filled(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("the secret of " + path)
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				filled(v.Field(i), path+"."+field.Name)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			filled(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem(), path)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	default: // times have no parts that are exported
	}
}

// leaks lists the lines of what was exported in which there is a secret.
func leaks(exported, secret string) []string {
	var lines []string
	for line := range strings.Lines(exported) {
		if at := strings.Index(line, secret); at >= 0 {
			lines = append(lines, line[max(0, at-60):min(len(line), at+60)])
		}
	}
	return lines
}

// TestNoContent gives events whose every text is a sentence: none of it is exported,
// whatever field it stands in. Names are no sentences.
func TestNoContent(t *testing.T) {
	t.Parallel()
	r := newRig(t, telemetry.Options{AllRuns: true})
	for _, kind := range kinds() {
		for _, phase := range []phases.Phase{"", phases.PrePromptCompile, phases.PhaseToolCall, phases.PhaseHostCall} {
			var ev runtime.Event
			filled(reflect.ValueOf(&ev).Elem(), "event")
			ev.Kind, ev.Time = kind, noon()
			if phase != "" {
				ev.Run.Phase = phase
			}
			r.OnEvent(ev)
			_, _, end := r.BeginRun(context.Background(), phases.Trace{}, ev.Run)
			end(ev.Run, noon())
		}
	}
	if len(r.spanNames()) == 0 || len(r.names(t)) < 9 {
		t.Fatalf("nothing was exported: %q, %q", r.spanNames(), r.names(t))
	}
	for _, leak := range leaks(r.exported(t), "secret") {
		t.Errorf("exported: …%s…", leak)
	}
}

// TestNoIdentity has the texts look like names, where a plugin or a model has a say in
// them that no configuration bounds.
func TestNoIdentity(t *testing.T) {
	t.Parallel()
	const secret = "alice-iban-DE02"
	run := with(func(r *phases.Run) {
		r.Code, r.State, r.PluginCode, r.CachedFrom = secret, secret, secret, secret
		r.Contributions = []string{secret}
		r.Cut = []phases.Cut{{ContributionID: secret, SectionID: secret, Truncation: phases.Truncation{Limit: secret}}}
	})
	made := tool(secret, 0)
	made.Plugin = secret
	events := []runtime.Event{ran(run), ran(made)}
	for _, kind := range kinds() {
		events = append(events, runtime.Event{Kind: kind, Plugin: "house", Code: secret, Message: secret, Detail: secret, State: secret})
	}
	for _, event := range events {
		r := newRig(t, telemetry.Options{AllRuns: true})
		r.OnEvent(event)
		if event.Run != nil {
			r.tell(*event.Run)
		}
		for _, leak := range leaks(r.exported(t), secret) {
			t.Errorf("exported of an event %s: …%s…", event.Kind, leak)
		}
	}
}

// TestNoContentOfTurns runs plugins whose every text is secret, through a real engine,
// and looks at all that was exported.
func TestNoContentOfTurns(t *testing.T) {
	t.Parallel()
	const secret = "TOP-SECRET"
	r := newRig(t, telemetry.Options{AllRuns: true})
	eng := started(t, r.Telemetry, nil, leaky(secret))
	ctx := t.Context()
	tn, err := eng.BeginTurn(ctx, phases.Context{
		WorkspaceID: "ws" + secret, ThreadID: "th" + secret, TurnID: "tu" + secret, Actor: phases.Actor{ID: secret},
		Metadata: map[string]json.RawMessage{secret: json.RawMessage(`"` + secret + `"`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = tn.Dispatch(ctx, &phases.PrePolicyInput{UserText: phases.T(secret)})
	if err == nil {
		t.Error("the guard has not failed closed")
	}
	if _, err := tn.Compile(ctx, runtime.CompileInput{UserText: secret}); err == nil {
		t.Error("a turn was compiled whose guard has failed closed")
	}
	for _, in := range []phases.Input{&phases.PrePromptContextInput{UserText: phases.T(secret)}, &phases.PrePromptCompileInput{}} {
		if _, err := tn.Dispatch(ctx, in); err != nil {
			t.Errorf("%s: %v", phases.PhaseOf(in), err)
		}
	}
	for _, name := range []string{"tell me the " + secret, "leak"} {
		_, err := eng.CallTool(ctx, "leaky", phases.ToolCall{Tool: name, Arguments: json.RawMessage(`{"q": "` + secret + `"}`)})
		if err == nil {
			t.Errorf("the tool %s has not failed", name)
		}
	}
	if _, err := eng.CallTool(ctx, secret, phases.ToolCall{Tool: secret}); err == nil {
		t.Error("a plugin that there is not was called")
	}
	if _, err := tn.CallTool(ctx, phases.ToolCall{Tool: secret}); err == nil {
		t.Error("a tool that there is not was called")
	}
	if _, err := tn.End(ctx, &phases.PostTurnInput{Status: phases.TurnSucceeded}); err != nil {
		t.Errorf("End: %v", err)
	}
	if err := eng.WaitBackground(ctx); err != nil {
		t.Error(err)
	}
	if got := r.spanNames(); !slices.Contains(got, "execute_tool leak") || !slices.Contains(got, "execute_hook turn.pre_prompt_compile") {
		t.Fatalf("the spans are %q", got)
	}
	for _, leak := range leaks(r.exported(t), secret) {
		t.Errorf("exported: …%s…", leak)
	}
}

// leaky is a plugin that says the secret wherever it may say anything.
func leaky(secret string) *sdk.Plugin {
	fail := sdk.Fail(secret, "the message has "+secret)
	return &sdk.Plugin{
		Name: "leaky", Version: "1.0.0",
		Tools: []sdk.Tool{{
			Tool: phases.Tool{Name: "leak", InputSchema: json.RawMessage(`{"type": "object"}`)},
			Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) { return nil, fail },
		}},
		Hooks: []sdk.Hook{
			{
				Name: "text", Kinds: []phases.Kind{phases.KindPromptSection, phases.KindAudit, phases.KindManifestDiagnostic},
				PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
					return sdk.Reply(
						&phases.PromptSection{Common: phases.Common{ContributionID: secret}, SectionID: "text", Title: secret, Content: strings.Repeat(secret+"\n", 9000)},
						&phases.Audit{EventKind: secret, Details: json.RawMessage(`{"x": "` + secret + `"}`)},
						&phases.ManifestDiagnostic{Code: secret, Message: secret},
					)
				},
			},
			{
				Name: "guard", Kinds: []phases.Kind{phases.KindDecision},
				PrePolicy: func(context.Context, *sdk.Call, *phases.PrePolicyInput) ([]phases.Contribution, error) {
					return nil, fail
				},
			},
			{
				Name: "after",
				PostTurn: func(context.Context, *sdk.Call, *phases.PostTurnInput) ([]phases.Contribution, error) {
					panic(secret)
				},
			},
		},
	}
}
