package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/store"
)

// house is a plugin that brings a text and a tool, denies turns that ask for it, fails
// when told to, and asks the host for documents.
func house() *sdk.Plugin {
	return &sdk.Plugin{
		Name: "house", Version: "1.0.0",
		Tools: []sdk.Tool{{Tool: measure(), Call: func(_ context.Context, c *sdk.ToolCall) (*phases.ToolResult, error) {
			return sdk.Text(c.Context.ThreadID + string(c.Arguments)), nil
		}}},
		Hooks: []sdk.Hook{
			{
				Name: "rules", Kinds: []phases.Kind{phases.KindPromptSection}, OnFailure: phases.OnFailure{Default: phases.FailClosed},
				PrePromptCompile: func(ctx context.Context, c *sdk.Call, _ *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
					text, err := documentFor(ctx, c)
					if err != nil {
						return nil, err
					}
					return sdk.Reply(&phases.PromptSection{SectionID: "house_rules", Title: "House Rules", Content: text})
				},
			},
			{
				Name: "tools", Kinds: []phases.Kind{phases.KindToolBundle},
				PreTools: func(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
					return sdk.Reply(&phases.ToolBundle{BundleID: "house", Tools: []phases.Tool{measure()}})
				},
			},
			{
				Name: "guard", Kinds: []phases.Kind{phases.KindDecision}, Role: phases.RoleValidate,
				PrePolicy: func(_ context.Context, _ *sdk.Call, in *phases.PrePolicyInput) ([]phases.Contribution, error) {
					if in.UserText.Value == "deny me" {
						return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "as you like", ReasonCode: "house"})
					}
					return nil, nil
				},
			},
			{
				Name: "end", Kinds: []phases.Kind{phases.KindDecision}, PreEnd: func(context.Context, *sdk.Call, *phases.PreEndInput) ([]phases.Contribution, error) {
					return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "not yet"})
				},
			},
		},
	}
}

func measure() phases.Tool {
	return phases.Tool{Name: "measure", InputSchema: json.RawMessage(`{"type":"object"}`)}
}

// documentFor is what the tree says for the turn, as a plugin learns it.
func documentFor(ctx context.Context, c *sdk.Call) (string, error) {
	raw, err := c.Host.Call(ctx, ServiceDocuments, "resolve_for_thread", nil)
	if err != nil {
		return "", err
	}
	var answer documentAnswer
	if err := json.Unmarshal(raw, &answer); err != nil {
		return "", err
	}
	if answer.Effective == nil {
		return "Be brief.", nil
	}
	if answer.Effective.Doc.Content == "fail" {
		return "", errors.New("as the document says")
	}
	return answer.Effective.Doc.Content, nil
}

// sick is a plugin whose first start fails for a reason that no restart cures.
func sick() *sdk.Plugin {
	var starts atomic.Int32
	return &sdk.Plugin{Name: "sick", Version: "1.0.0", OnConfigure: func(context.Context, *phases.Configuration) (sdk.Setup, error) {
		if starts.Add(1) == 1 {
			return sdk.Setup{}, phases.Errorf(phases.CauseVersionMismatch, "it is too old")
		}
		return sdk.Setup{}, nil
	}}
}

// engine runs the plugin inside this process, over a tree and a sink.
func engine(tb testing.TB, t tree.Store, sink runtime.Sink, more ...*sdk.Plugin) *runtime.Engine {
	tb.Helper()
	return engineWith(tb, t, sink, time.Now, house(), more...)
}

// engineWith is engine with a clock, and another house.
func engineWith(tb testing.TB, t tree.Store, sink runtime.Sink, now func() time.Time, first *sdk.Plugin, more ...*sdk.Plugin) *runtime.Engine {
	tb.Helper()
	all := []string{"*"}
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "house", Grants: phases.Grants{Contribute: all, Sections: all, StableSections: all, Tools: all, Host: all, See: all}}}}
	inside := map[string]runtime.Plugin{"house": first}
	for _, p := range more {
		cfg.Plugins = append(cfg.Plugins, config.Plugin{Name: p.Name, OnFailure: config.FailOpen, Grants: phases.Grants{Contribute: []string{"decision"}}})
		inside[p.Name] = p
	}
	eng := must(runtime.New(tb.Context(), cfg, runtime.Options{
		InProcess: inside,
		Services:  map[string]runtime.Service{ServiceDocuments: Documents(t)},
		Sink:      sink,
		Now:       now,
	}))(tb)
	tb.Cleanup(func() {
		if err := eng.Close(context.Background()); err != nil {
			tb.Errorf("close of the engine: %v", err)
		}
	})
	return eng
}

// logStore is a real log in a file of the test's own.
func logStore(t *testing.T) *store.Store {
	t.Helper()
	s := must(store.Open(t.Context(), storetest.SQLite(t), store.Options{}))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close of the store: %v", err)
		}
	})
	return s
}
