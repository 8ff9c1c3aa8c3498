package runtime_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// project is a directory with a file of secrets.
func project(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("TOKEN=x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// seeing is a hook that notes the facts that it is sent, and denies calls that get at secrets.
func seeing(name string, seen *[]phases.Facts, change func(*sdk.Hook)) *sdk.Plugin {
	h := sdk.Hook{
		Name: "guard", Kinds: []phases.Kind{phases.KindDecision}, Role: phases.RoleValidate, Needs: []string{"facts"},
		ToolPreCall: func(_ context.Context, call *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
			*seen = append(*seen, in.Facts)
			if slices.Contains(call.Withheld, "facts") != (len(in.Facts.Commands) == 0) {
				return sdk.Reply(ask("facts are neither there nor withheld"))
			}
			if len(in.Facts.Secrets) > 0 {
				return sdk.Reply(deny("secrets"))
			}
			return nil, nil
		},
	}
	if change != nil {
		change(&h)
	}
	return plugin(name, h)
}

// TestFactsOfWhatRuns: a guard is sent the facts of the call as it goes, whatever a host or another hook says.
func TestFactsOfWhatRuns(t *testing.T) {
	t.Parallel()
	lied := command("cat .env")
	lied.Facts = phases.Facts{Commands: []phases.Command{{Program: "true"}}}
	accused := command("ls")
	accused.Facts = phases.Facts{Secrets: []string{"/x/.env"}}
	// The path of a rewrite begins in the arguments: one of "/facts" adds a member there.
	to := func(command string, more ...phases.Contribution) []phases.Contribution {
		return append(more, &phases.Rewrite{Path: "/command", Value: json.RawMessage(`"` + command + `"`)})
	}
	for _, test := range []struct {
		name    string
		in      *phases.ToolPreCallInput
		rewrite []phases.Contribution
		when    string
		want    phases.Verdict
		calls   int
	}{
		{"a secret", command("cat .env"), nil, "", phases.VerdictDeny, 1},
		{"none", command("ls"), nil, "", "", 1},
		{"a host that calls it harmless", lied, nil, "", phases.VerdictDeny, 1},
		{"a host that calls it harmful", accused, nil, "", "", 1},
		{"rewritten to a secret", command("ls"), to("cat .env"), "", phases.VerdictDeny, 1},
		{"rewritten from a secret", command("cat .env"), to("ls"), "", "", 1},
		{"a rewrite that poses as facts", command("ls"), to("cat .env", &phases.Rewrite{Path: "/facts", Value: json.RawMessage(`{"commands":[]}`)}), "", phases.VerdictDeny, 1},
		{"a condition that holds", command("cat .env"), nil, `len(call.facts.secrets) > 0`, phases.VerdictDeny, 1},
		{"a condition that does not", command("ls"), nil, `len(call.facts.secrets) > 0`, "", 0},
		{"a condition on what was rewritten", command("ls"), to("rm -rf x && cat .env"), `any(call.facts.commands, .program == "rm" and "-r" in .options)`, phases.VerdictDeny, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var seen []phases.Facts
			rewriter := plugin("rewriter", on("rewrite", phases.ToolPreCall, reply(test.rewrite...), phases.KindRewrite))
			eng := newHosted(rewriter, seeing("house", &seen, func(h *sdk.Hook) { h.When = test.when })).start(t)
			dir := project(t)
			out := outcome(t)(eng.Dispatch(t.Context(), phases.Context{Dir: dir}, test.in))
			if verdictOf(out) != test.want || len(seen) != test.calls {
				t.Fatalf("%q after %d calls, want %q after %d: %+v", verdictOf(out), len(seen), test.want, test.calls, out.Runs)
			}
			if test.want == phases.VerdictDeny && !slices.Equal(seen[0].Secrets, []string{filepath.Join(dir, ".env")}) {
				t.Errorf("seen %+v", seen[0])
			}
			if in, ok := out.Rewritten.(*phases.ToolPreCallInput); !ok || len(in.Facts.Commands)+len(in.Facts.Secrets) > 0 {
				t.Errorf("the host gets facts: %+v", out.Rewritten)
			}
		})
	}
}

// TestFactsByGrant: only who needs facts and is granted them gets them, and what is missing is named.
func TestFactsByGrant(t *testing.T) {
	t.Parallel()
	var granted, reminded, blind []phases.Facts
	reminder := func(h *sdk.Hook) { h.Kinds, h.Role = []phases.Kind{phases.KindReminder}, "" }
	h := newHosted(seeing("granted", &granted, nil), seeing("reminded", &reminded, reminder), seeing("blind", &blind, func(h *sdk.Hook) {
		h.Needs = []string{"arguments"}
		reminder(h)
		tell := h.ToolPreCall
		h.ToolPreCall = func(ctx context.Context, call *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
			if _, err := tell(ctx, call, in); len(call.Withheld) > 0 {
				t.Errorf("withheld %q", call.Withheld)
			} else if err != nil {
				return nil, err
			}
			return nil, nil
		}
	}))
	h.plugin("reminded").Grants.See = []string{"arguments"}
	out := outcome(t)(h.start(t).Dispatch(t.Context(), phases.Context{Dir: project(t)}, command("ls")))
	for _, run := range out.Runs {
		if run.State != phases.StateSucceeded {
			t.Errorf("run %+v", run)
		}
	}
	if len(granted) != 1 || len(granted[0].Commands) != 1 {
		t.Errorf("granted %+v", granted)
	}
	for name, seen := range map[string][]phases.Facts{"reminded": reminded, "blind": blind} {
		if len(seen) != 1 || len(seen[0].Commands) > 0 {
			t.Errorf("%s has seen %+v", name, seen)
		}
	}
}

// TestCachedByFacts: an answer is not used again when the facts of the same arguments are others.
func TestCachedByFacts(t *testing.T) {
	t.Parallel()
	var secrets []int
	h := sdk.Hook{
		Name: "h", Needs: []string{"facts"}, Cache: &phases.Cache{Vary: []string{"input.arguments"}},
		ToolPostCall: func(_ context.Context, _ *sdk.Call, in *phases.ToolPostCallInput) ([]phases.Contribution, error) {
			secrets = append(secrets, len(in.Facts.Secrets))
			return nil, nil
		},
	}
	eng, dir := newHosted(plugin("p", h)).start(t), project(t)
	for i, want := range []phases.RunState{phases.StateSucceeded, phases.StateCached, phases.StateSucceeded} {
		if i == 2 {
			if err := os.Symlink(".env", filepath.Join(dir, "notes")); err != nil {
				t.Skipf("no links here: %v", err)
			}
		}
		out := outcome(t)(eng.Dispatch(t.Context(), phases.Context{Dir: dir}, &phases.ToolPostCallInput{Tool: "shell", Arguments: raw(`{"command":"cat notes"}`)}))
		if run := runOf(t, out, "p.h"); run.State != want {
			t.Errorf("%s, want %s", run.State, want)
		}
	}
	checkSame(t, "secrets seen", secrets, []int{0, 1})
}

// TestFactsThatFail: where a call cannot be looked at, that is a fact.
func TestFactsThatFail(t *testing.T) {
	t.Parallel()
	var seen []phases.Facts
	eng := newHosted(seeing("house", &seen, func(h *sdk.Hook) {
		h.When = "call.facts.unparsed"
		h.ToolPreCall = func(_ context.Context, _ *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
			return sdk.Reply(deny(in.Facts.Why))
		}
	})).start(t)
	if err := runtime.LoseFacts(t.Context(), eng); err != nil {
		t.Fatal(err)
	}
	out := outcome(t)(eng.Dispatch(t.Context(), phases.Context{}, command("ls")))
	if verdictOf(out) != phases.VerdictDeny || !strings.Contains(out.Decision.Reasons[0].Reason, "could not be looked at") {
		t.Errorf("decision %+v", out.Decision)
	}
}

// TestFactsAreRecorded: in words, with a hash, and as they are where texts are kept.
func TestFactsAreRecorded(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, command string
		plugin        *sdk.Plugin
		keep          bool
		want          []string
		hashed        bool
	}{
		{"nobody needs them", "cat .env", noRemove(nil), true, nil, false},
		{"nothing to say", "ls", seeing("house", new([]phases.Facts), nil), true, nil, true},
		{"what there is", "cat .env && rm x && curl https://example.org/a", seeing("house", new([]phases.Facts), nil), false, []string{"hosts", "secrets", "writes"}, true},
		{"kept", "cat .env", seeing("house", new([]phases.Facts), nil), true, []string{"secrets"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h, s := newHosted(test.plugin), &memorySink{}
			h.opts.Sink, h.cfg.Manifest.KeepText = s, test.keep
			turn := openedAt(t, h.start(t), phases.Context{WorkspaceID: "w", ThreadID: "t", Dir: project(t)})
			outcome(t)(turn.Dispatch(t.Context(), command(test.command)))
			outcome(t)(turn.End(t.Context(), &phases.PostTurnInput{}))
			c := s.records[0].Calls[0]
			if !slices.Equal(c.Facts, test.want) || (c.FactsHash != "") != test.hashed {
				t.Fatalf("call %+v", c)
			}
			var kept phases.Facts
			if text := s.texts[c.FactsHash]; (text != "") != (test.hashed && test.keep) {
				t.Errorf("kept: %q", text)
			} else if text != "" && (json.Unmarshal([]byte(text), &kept) != nil || !slices.Equal(kept.Summary(), test.want) || manifest.Hash(text, nil) != c.FactsHash) {
				t.Errorf("kept: %q of %s", text, c.FactsHash)
			}
		})
	}
}
