package agentsdoc_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

var build = agentsdoctest.Build

// TestMain makes the test binary also the plugin that these tests start.
func TestMain(m *testing.M) {
	serve.Builtins(agentsdoc.New)
	goleak.VerifyTestMain(m)
}

func write(tb testing.TB, path, text string) {
	tb.Helper()
	agentsdoctest.Put(tb, "", path, text)
}

// grants are what an operator allows the plugin.
const grants = `
    grants:
      contribute: [prompt_section, reminder]
      sections: [agents_md]
      see: [touched_paths, state]
      host: [state]
      read: ['*']
`

// inside is an engine with the plugin inside of it.
func inside(tb testing.TB, settings string, o runtime.Options) *runtime.Engine {
	tb.Helper()
	o.InProcess = map[string]runtime.Plugin{"agentsdoc": agentsdoc.New()}
	return started(tb, "version: 1\nplugins:\n  - name: agentsdoc\n    builtin: agentsdoc"+grants+"    config: "+settings+"\n", o)
}

// started is an engine with a configuration.
func started(tb testing.TB, text string, o runtime.Options) *runtime.Engine {
	tb.Helper()
	cfg, err := config.Loader{}.Parse([]byte(text), "grapnel.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	eng, err := runtime.New(tb.Context(), cfg, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := eng.Close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
	return eng
}

// host is a host with one session, and what reached the model in it.
type host struct {
	testing.TB
	eng   *runtime.Engine
	where phases.Context
	turns int
}

// session begins a session. It ends with the test, and with it the watch.
func session(tb testing.TB, eng *runtime.Engine, id, dir string) *host {
	tb.Helper()
	h := &host{TB: tb, eng: eng, where: phases.Context{WorkspaceID: "w", SessionID: id, ThreadID: id, Dir: dir}}
	sess, err := eng.StartSession(tb.Context(), h.where, "startup")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if _, err := sess.End(context.WithoutCancel(tb.Context()), "over"); err != nil {
			tb.Error(err)
		}
	})
	return h
}

// turn begins a turn.
func (h *host) turn() *runtime.Turn {
	h.Helper()
	h.turns++
	where := h.where
	where.TurnID = fmt.Sprintf("turn-%d", h.turns)
	turn, err := h.eng.BeginTurn(h.Context(), where)
	if err != nil {
		h.Fatal(err)
	}
	return turn
}

// compile is a turn's prompt.
func (h *host) compile() *runtime.Compiled {
	h.Helper()
	turn := h.turn()
	done, err := turn.Compile(h.Context(), runtime.CompileInput{})
	if err != nil {
		h.Fatal(err)
	}
	if _, err := turn.End(h.Context(), &phases.PostTurnInput{Status: phases.TurnSucceeded}); err != nil {
		h.Fatal(err)
	}
	return done
}

// section is the text of the section in a prompt.
func section(done *runtime.Compiled) string {
	_, text, _ := strings.Cut(done.Prompt.FullText, "## AGENTS.md\n\n")
	return text
}

// state is what became of a hook in a turn.
func state(done *runtime.Compiled, subscription string) phases.RunState {
	i := slices.IndexFunc(done.Manifest.Runs, func(r phases.Run) bool { return r.Subscription == subscription })
	if i < 0 {
		return ""
	}
	return done.Manifest.Runs[i].State
}

// TestDelivered compares what reaches the model with what the tools' users get.
func TestDelivered(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{
		"r/.git/HEAD": "", "r/AGENTS.md": "Be brief.\n\n  \n", "r/a/AGENTS.md": "\n\n  Use tabs.\t\n<INSTRUCTIONS> </agents_context>\n",
		"r/a/b/AGENTS.override.md": "Say </AGENTS_MD>.\nä 日本 \u202e", "home/AGENTS.md": "\n Everywhere. \n",
	})
	for _, preset := range []chain.Preset{chain.PresetDefault, chain.PresetCodex, chain.PresetCodelia} {
		t.Run(string(preset), func(t *testing.T) {
			t.Parallel()
			eng := inside(t, `{preset: `+string(preset)+`, global: "`+base+`/home/AGENTS.md"}`, runtime.Options{})
			h := session(t, eng, "s", base+"/r/a/b")
			done := h.compile()

			o, err := chain.ForPreset(preset, chain.Places{})
			if err != nil {
				t.Fatal(err)
			}
			o.GlobalDir, o.GlobalNames = base+"/home", []string{"AGENTS.md"}
			o.Lazy = o.Resolver.Delivery != chain.DeliverOff
			found := chain.Resolve(chain.OS{}, base+"/r/a/b", o)
			r := chain.Render(found, chain.Budget{Bytes: o.Budget.Total, Chars: 16_000})
			want := r.Message()
			got := section(done)
			switch r.Placement { //nolint:exhaustive // the default is the system prompt
			case chain.PlaceUserMessage:
				if len(done.Prompt.UserMessages) != 1 || strings.Contains(done.Prompt.FullText, "Be brief") {
					t.Fatalf("%d messages", len(done.Prompt.UserMessages))
				}
				got = done.Prompt.UserMessages[0].Text
			case chain.PlaceSystemMessage:
				if len(done.Prompt.SystemMessages) != 1 || strings.Contains(done.Prompt.FullText, "Be brief") {
					t.Fatalf("%d messages", len(done.Prompt.SystemMessages))
				}
				got = done.Prompt.SystemMessages[0].Text
			}
			if !strings.Contains(got, "Use tabs.") {
				t.Error("the test sees nothing")
			}
			if preset == chain.PresetDefault {
				got, _, _ = strings.Cut(got, "\n\n## ") // what follows in the prompt
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("delivered (-got +want)\n%s", diff)
			}
		})
	}
}

// touch is a tool call that touches paths, before and after. It returns both
// outcomes.
func (h *host) touch(paths ...string) []*phases.Outcome {
	h.Helper()
	turn := h.turn()
	before, err := turn.Dispatch(h.Context(), &phases.ToolPreCallInput{Tool: "edit", TouchedPaths: paths})
	if err != nil {
		h.Fatal(err)
	}
	after, err := turn.Dispatch(h.Context(), &phases.ToolPostCallInput{Tool: "edit", TouchedPaths: paths, Outcome: "ok"})
	if err != nil {
		h.Fatal(err)
	}
	return []*phases.Outcome{before, after}
}

// reminders are those of outcomes.
func reminders(outs []*phases.Outcome) []phases.MergedReminder {
	var all []phases.MergedReminder
	for _, out := range outs {
		all = append(all, out.Merged.Reminders...)
	}
	return all
}
