package fileguard_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/fileguard"
	"github.com/grapnelhq/grapnel/sdk/plugintest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestKit runs every hook through the kit, in process and over the wire.
func TestKit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("API_KEY=correct-horse-battery\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	call := func(args string) *phases.ToolPreCallInput {
		return &phases.ToolPreCallInput{Tool: "Bash", Arguments: json.RawMessage(args)}
	}
	result := func(text string) *phases.ToolPostCallInput {
		return &phases.ToolPostCallInput{Tool: "Bash", Arguments: json.RawMessage(`{"command":"make"}`), Result: phases.NewPreview(text, 1000)}
	}
	tests := []struct {
		name, hook, config string
		input              phases.Input
		withhold           []string
		want               string // in the one contribution; empty for none
	}{
		{name: "a command", hook: "call", input: call(`{"command":"cat .e*"}`), want: `"deny"`},
		{name: "another command", hook: "call", input: call(`{"command":"make"}`)},
		{name: "an operator's pattern", hook: "call", config: `{"deny":["notes/"]}`, input: call(`{"file_path":"notes/a.md"}`), want: "notes/"},
		{name: "an exception", hook: "call", config: `{"allow":[".env.test"]}`, input: call(`{"file_path":".env.test"}`)},
		{name: "beside the exception", hook: "call", config: `{"allow":[".env.test"]}`, input: call(`{"file_path":".env"}`), want: `"protected_file"`},
		{name: "without defaults", hook: "call", config: `{"defaults":false,"deny":["x"]}`, input: call(`{"file_path":".env"}`)},
		{name: "a withheld call", hook: "call", input: call(`{"command":"make"}`), withhold: []string{"arguments"}, want: `"deny"`},
		{name: "a prompt", hook: "prompt", input: &phases.PrePolicyInput{UserText: phases.T("see @.env")}, want: `"deny"`},
		{name: "another prompt", hook: "prompt", input: &phases.PrePolicyInput{UserText: phases.T("see .env")}},
		{name: "a withheld prompt", hook: "prompt", input: &phases.PrePolicyInput{UserText: phases.T("see .env")}, withhold: []string{"user_text"}, want: "withheld"},
		{name: "a result", hook: "result", input: result("the key is correct-horse-battery."), want: `the key is [removed`},
		{name: "a result that is JSON", hook: "result", input: result(`{"a":"correct-horse-battery"}`), want: `{"a":"[removed`},
		{name: "another result", hook: "result", input: result("done")},
		{name: "values are not wanted", hook: "result", config: `{"redact_values":false,"redact_secrets":false}`, input: result("the key is correct-horse-battery.")},
		{name: "a withheld result", hook: "result", input: result("x"), withhold: []string{"result"}, want: "removed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			answer := plugintest.Run(t, fileguard.New(), plugintest.Case{Hook: tt.hook, Config: tt.config, Context: phases.Context{Dir: dir}, Input: tt.input, Withhold: tt.withhold})
			got, err := json.Marshal(answer.Contributions)
			if err != nil || (len(answer.Contributions) > 0) != (tt.want != "") || !strings.Contains(strings.ReplaceAll(string(got), `\"`, `"`), tt.want) {
				t.Errorf("%s %v", got, err)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for config, pointer := range map[string]string{
		`{"deny":["ok","a[b"]}`: "/deny/1", `{"allow":["*"]}`: "/allow/0", `{"deny":["a/**/b"]}`: "/deny/0", `{"deny":[""]}`: "/deny/0", `{"deny":["/"]}`: "/deny/0", `{"defaults":false}`: "/deny", `{"deny":".env"}`: "/deny",
	} {
		_, err := fileguard.New().Configure(t.Context(), &phases.Configuration{Instance: "guard", Config: json.RawMessage(config)})
		if mistake, ok := errors.AsType[*phases.ConfigError](err); !ok || mistake.Pointer != pointer {
			t.Errorf("%s: %v, want the place %s", config, err, pointer)
		}
	}
}

// TestHooks: all of them fail closed, and say what they need to see.
func TestHooks(t *testing.T) {
	t.Parallel()
	d, err := fileguard.New().Configure(t.Context(), &phases.Configuration{Instance: "guard"})
	if err != nil || len(d.Hooks) != 3 {
		t.Fatalf("%v %v", d, err)
	}
	for _, h := range d.Hooks {
		if h.OnFailure.Default != phases.FailClosed || len(h.Needs) == 0 {
			t.Errorf("%s: %+v", h.Name, h)
		}
	}
}
