package agentsdoc

import (
	"flag"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/plugintest"
)

// The kit looks this flag up by its name.
var _ = flag.Bool("update", false, "rewrite the fixtures")

// withoutHome is the plugin in an environment that says nothing.
func withoutHome() *sdk.Plugin { return newPlugin(powers{view: chain.OS{}, getenv: noVariables}) }

func TestFixtures(t *testing.T) {
	plugintest.Fixtures(t, withoutHome(), "testdata")
}

// TestKitOnAllHooks runs each hook through the kit, in process and over the wire.
// What a session was told is not told again, so that equal calls differ.
func TestKitOnAllHooks(t *testing.T) {
	t.Parallel()
	once := "a session is told everything once"
	tests := []struct {
		hook     string
		in       phases.Input
		volatile string
		want     phases.Kind // of the first answer; empty is none
	}{
		{hook: "prompt", want: phases.KindPromptSection},
		{hook: "changed", volatile: once},
		{hook: "start", in: &phases.SessionStartInput{Source: "startup"}},
		{hook: "compacted", in: &phases.PostCompactionInput{}},
		{hook: "end", in: &phases.SessionEndInput{}},
		{hook: "touching", in: &phases.ToolPreCallInput{Tool: "read", TouchedPaths: []string{"a/x", "\x01", "/etc"}}, volatile: once, want: phases.KindReminder},
		{hook: "touched", in: &phases.ToolPostCallInput{Tool: "read", TouchedPaths: []string{"a"}}, volatile: once, want: phases.KindReminder},
		{hook: "resume", in: &phases.SessionResumeInput{State: []byte(`{"schema":1}`)}},
	}
	for _, tt := range tests {
		t.Run(tt.hook, func(t *testing.T) {
			t.Parallel()
			dir := build(t, map[string]string{".git/HEAD": "", "AGENTS.md": "top", "a/AGENTS.md": "deep"})
			host := &plugintest.Host{Services: map[string]plugintest.Service{
				"state/get": plugintest.Reply(`{"value":null}`), "state/put": plugintest.Reply(`{}`),
			}}
			// The watch would end with the session, and the kit has none.
			answer := plugintest.Run(t, withoutHome(), plugintest.Case{
				Hook: tt.hook, Config: `{"global":false,"watch":false}`, Context: inSession("s", dir), Input: tt.in, Host: host, Volatile: tt.volatile,
			})
			if answer.Error != nil {
				t.Fatalf("error %+v", answer.Error)
			}
			for _, c := range answer.Contributions {
				if tt.want == "" {
					t.Errorf("got %s: %v", phases.KindOf(c), codes(c))
				}
			}
			if tt.want == phases.KindPromptSection && len(answer.Contributions) != 1 {
				t.Errorf("%d contributions", len(answer.Contributions))
			}
		})
	}
}
