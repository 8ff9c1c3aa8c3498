package memory

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/internal/toolset"
	"github.com/grapnelhq/grapnel/sdk"
)

// at is the time of the tests.
var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// clock stands still.
func clock() time.Time { return at }

// environment is a getenv of a map.
func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// file is a database that is not there yet.
func file(tb testing.TB) string {
	tb.Helper()
	return "sqlite:" + filepath.Join(tb.TempDir(), "memory.db")
}

// config is a configuration with a place.
func config(tb testing.TB, dsn string, more map[string]any) json.RawMessage {
	tb.Helper()
	all := map[string]any{"dsn": dsn}
	maps.Copy(all, more)
	data, err := json.Marshal(all)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// configured is a plugin with a configuration in force, which is closed with the test.
func configured(tb testing.TB, dsn string, more map[string]any, host phases.Host) *sdk.Plugin {
	tb.Helper()
	p := patientPlugin()
	c := &phases.Configuration{Instance: "memory", Config: config(tb, dsn, more), Host: host}
	if host != nil {
		c.Services = []string{"model"}
	}
	if _, err := p.Configure(tb.Context(), c); err != nil {
		tb.Fatal(err)
	}
	closes(tb, p)
	return p
}

// patientPlugin is the plugin, with time to open its database on a busy machine.
func patientPlugin() *sdk.Plugin {
	return newPlugin(&life{getenv: environment(nil), now: clock, openTime: time.Minute})
}

// ada is a turn of a user in a thread.
func ada(turn string) phases.Context {
	return phases.Context{
		WorkspaceID: "w", ThreadID: "t", TurnID: turn, AgentID: "a", Mode: phases.ModeAgent, Now: at, Actor: phases.Actor{Kind: "user", ID: "ada"},
	}
}

// turn plays a host: it hands on what the hooks contribute, as the runtime does.
type turn struct {
	tb      testing.TB
	plugin  *sdk.Plugin
	context phases.Context

	policies []phases.PolicyEntry
	contexts []phases.ContextEntry
	notes    []phases.Diagnostic
	audits   []*phases.Audit
	// withheld goes into each dispatch.
	withheld []string
	// errors are hooks that failed.
	errors []error
}

func begin(tb testing.TB, p *sdk.Plugin, c phases.Context) *turn {
	tb.Helper()
	return &turn{tb: tb, plugin: p, context: c}
}

// dispatch calls a hook and keeps what it contributes.
func (x *turn) dispatch(hook string, in phases.Input) []phases.Contribution {
	x.tb.Helper()
	res, err := x.plugin.Dispatch(x.tb.Context(), &phases.Dispatch{
		Subscription: "memory." + hook, Hook: hook, Phase: phases.PhaseOf(in), Context: x.context, Input: in, Policies: x.policies, Contexts: x.contexts,
		Withheld: x.withheld, IdempotencyKey: x.context.TurnID + "/memory." + hook, Attempt: 1,
	})
	if err != nil {
		x.errors = append(x.errors, err)
		return nil
	}
	for _, c := range res.Contributions {
		row, _ := phases.Standard().Lookup(phases.PhaseOf(in))
		if err := phases.ValidateContribution(c, row); err != nil {
			x.tb.Errorf("%s: %v", hook, err)
		}
		x.notes = append(x.notes, c.Head().Diagnostics...)
		switch c := c.(type) {
		case *phases.Policy:
			x.policies = append(x.policies, phases.PolicyEntry{Domain: c.Domain, Key: c.Key, Value: c.Value, Owner: "memory." + hook})
		case *phases.PromptContext:
			x.contexts = append(x.contexts, phases.ContextEntry{
				ContributionID: c.ContributionID, Domain: c.Domain, Content: c.Content, Owner: "memory." + hook, Render: c.Rendered(), SourceRefs: c.SourceRefs,
			})
		case *phases.Audit:
			x.audits = append(x.audits, c)
		}
	}
	return res.Contributions
}

// says begins the turn with what the user says.
func (x *turn) says(text string) *turn {
	x.tb.Helper()
	x.dispatch("policy", &phases.PrePolicyInput{UserText: phases.T(text)})
	x.dispatch("recall", &phases.PrePromptContextInput{UserText: phases.T(text)})
	return x
}

// policy is the one that the turn has.
func (x *turn) policy() turnpolicy.Policy {
	x.tb.Helper()
	p, ok := turnPolicy(x.policies)
	if !ok {
		x.tb.Fatalf("no policy among %+v", x.policies)
	}
	return p
}

// recalled are the texts that were handed on.
func (x *turn) recalled() []string {
	x.tb.Helper()
	var all []string
	for _, c := range x.contexts {
		s, err := decodeSelection(c.Content)
		if err != nil {
			x.tb.Fatal(err)
		}
		for _, i := range s.Items {
			all = append(all, i.Text)
		}
	}
	return all
}

// offered are the tools that the turn offers the model.
func (x *turn) offered() []string {
	x.tb.Helper()
	var names []string
	for _, c := range x.dispatch("tools", &phases.PreToolsInput{ToolCalling: true}) {
		bundle, ok := c.(*phases.ToolBundle)
		if !ok {
			x.tb.Fatalf("%T", c)
		}
		for _, tool := range bundle.Tools {
			names = append(names, tool.Name)
		}
	}
	return names
}

// section is the prompt's, nil for none.
func (x *turn) section() *phases.PromptSection {
	x.tb.Helper()
	return x.sectionFor(&phases.PrePromptCompileInput{ToolCalling: true, AvailableTools: x.offered()})
}

// sectionFor is the section of an input.
func (x *turn) sectionFor(in *phases.PrePromptCompileInput) *phases.PromptSection {
	x.tb.Helper()
	for _, c := range x.dispatch("prompt", in) {
		if s, ok := c.(*phases.PromptSection); ok {
			return s
		}
	}
	return nil
}

// ends is the end of the turn, with success.
func (x *turn) ends(text string, tools ...phases.ToolEvent) {
	x.tb.Helper()
	x.dispatch("extract", &phases.PostTurnInput{
		Status: phases.TurnSucceeded, UserText: phases.NewPreview(text, phases.MaxTurnText), AssistantText: phases.NewPreview("Done.", 100), ToolEvents: tools,
	})
}

// whole is a turn from beginning to end, with nothing in between.
func (x *turn) whole(text string) *turn {
	x.tb.Helper()
	x.says(text).ends(text)
	x.fine()
	return x
}

// fine fails the test if a hook failed.
func (x *turn) fine() {
	x.tb.Helper()
	for _, err := range x.errors {
		x.tb.Error(err)
	}
}

// codes are those of the remarks.
func (x *turn) codes() []string {
	var all []string
	for _, d := range x.notes {
		all = append(all, d.Code)
	}
	return all
}

// call calls a tool in the turn. The answer is decoded into the given value, unless it
// is a refusal, whose reason is returned.
func (x *turn) call(tool string, args, into any) (reason string) {
	x.tb.Helper()
	return x.toolCall(&phases.ToolCall{Tool: tool, Arguments: raw(x.tb, args), Context: x.context, Policies: x.policies}, into)
}

// person calls a tool outside any turn.
func (x *turn) person(tool string, args, into any) (reason string) {
	x.tb.Helper()
	return x.toolCall(&phases.ToolCall{Tool: tool, Arguments: raw(x.tb, args), Context: x.context, OutsideTurn: true}, into)
}

func (x *turn) toolCall(call *phases.ToolCall, into any) (reason string) {
	x.tb.Helper()
	res, err := x.plugin.CallTool(x.tb.Context(), call)
	if err != nil {
		x.tb.Fatal(err)
	}
	if res.IsError {
		var no toolset.Refusal
		if err := json.Unmarshal(res.Content, &no); err != nil || no.Error == "" {
			x.tb.Fatalf("%s: %v", res.Content, err)
		}
		return no.ReasonCode
	}
	if into != nil {
		if err := json.Unmarshal(res.Content, into); err != nil {
			x.tb.Fatalf("%s: %v", res.Content, err)
		}
	}
	return ""
}

// raw is JSON.
func raw(tb testing.TB, v any) json.RawMessage {
	tb.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// args are the arguments of a tool.
type args map[string]any

// memories are the texts that are remembered, as a person sees them, the latest first.
func memories(tb testing.TB, p *sdk.Plugin) []string {
	tb.Helper()
	var texts []string
	cursor := ""
	for {
		var page toolset.Page
		a := args{"limit": 50}
		if cursor != "" {
			a["cursor"] = cursor
		}
		if no := begin(tb, p, ada("x")).person(toolset.List, a, &page); no != "" {
			tb.Fatal(no)
		}
		for _, i := range page.Items {
			texts = append(texts, string(i.Scope)+"/"+string(i.Category)+": "+i.Text)
		}
		if cursor = page.Next; cursor == "" {
			return texts
		}
	}
}

// seed stores memories of ada's, by the store.
func seed(tb testing.TB, dsn string, items ...itemstore.Item) {
	tb.Helper()
	s, err := itemstore.Open(tb.Context(), dsn, itemstore.Options{Now: clock})
	if err != nil {
		tb.Fatal(err)
	}
	for i := range items {
		n := &items[i]
		if n.Scope == "" {
			n.Scope, n.ScopeID = itemstore.ScopeUser, "ada"
		}
		if n.Category == "" {
			n.Category = turnpolicy.Factual
		}
		if n.Source == "" {
			n.Source = itemstore.SourceTurn
		}
		if _, err := s.Remember(tb.Context(), itemstore.Batch{WorkspaceID: "w", Items: []itemstore.Item{*n}}); err != nil {
			tb.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
}

// contains reports whether one of the texts has a part.
func contains(texts []string, part string) bool {
	return strings.Contains(strings.Join(texts, "\n"), part)
}

// jsonRaw is short for JSON as it is.
type jsonRaw = json.RawMessage
