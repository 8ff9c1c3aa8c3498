package serve_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// modeVar makes the test binary a plugin's program instead of running tests.
const modeVar = "SERVE_TEST_MODE"

// closedVar names the file that a plugin writes when it is closed.
const closedVar = "SERVE_TEST_CLOSED"

func TestMain(m *testing.M) {
	switch os.Getenv(modeVar) {
	case "plugin":
		serve.Main(greeter())
	case "dying":
		serve.Main(dying())
	case "invalid":
		serve.Main(&sdk.Plugin{Name: "greeter"})
	case "serve":
		if err := serve.Serve(greeter()); err != nil {
			fmt.Fprintln(os.Stderr, "Serve returned:", err)
			os.Exit(7)
		}
		os.Exit(8)
	}
	os.Exit(m.Run())
}

// greeter answers with a greeting that names its configuration.
func greeter() *sdk.Plugin {
	return &sdk.Plugin{
		Name: "greeter", Version: "1.0.0",
		OnClose: func(context.Context) error {
			if path := os.Getenv(closedVar); path != "" {
				return os.WriteFile(path, []byte("bye"), 0o600)
			}
			return nil
		},
		OnConfigure: func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
			word := string(c.Config)
			return sdk.Setup{Hooks: []sdk.Hook{{
				Name: "greet", Kinds: []phases.Kind{phases.KindPromptSection},
				PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
					return sdk.Reply(&phases.PromptSection{SectionID: "greeting", Content: word})
				},
			}}}, nil
		},
	}
}

// dying writes a line and ends at once, as it is configured.
func dying() *sdk.Plugin {
	return &sdk.Plugin{
		Name: "dying", Version: "1.0.0",
		OnConfigure: func(context.Context, *phases.Configuration) (sdk.Setup, error) {
			fmt.Fprintln(os.Stderr, "last words")
			os.Exit(3)
			return sdk.Setup{}, nil
		},
	}
}

// program is the test binary in a mode, with variables in its environment.
func program(t *testing.T, mode string, vars ...string) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path)
	cmd.Env = append(append(os.Environ(), modeVar+"="+mode), vars...)
	return cmd
}

const cookie = wire.HandshakeCookieKey + "=" + wire.HandshakeCookieValue

func TestStartedByHand(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, mode string
		vars       []string
		code       int
		want       string
	}{
		{"no cookie", "plugin", nil, 2, "a host starts it"},
		{"another cookie", "plugin", []string{wire.HandshakeCookieKey + "=1"}, 2, "a host starts it"},
		{"invalid literal", "invalid", []string{cookie}, 2, `plugin "greeter": no version`},
		{"Serve returns", "serve", nil, 7, "Serve returned: this program is a Grapnel plugin"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd := program(t, tt.mode, tt.vars...)
			var out, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &stderr
			err := cmd.Run()
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || exit.ExitCode() != tt.code {
				t.Fatalf("ended with %v, want code %d; it says %s", err, tt.code, stderr.String())
			}
			if !strings.Contains(stderr.String(), tt.want) || strings.Count(stderr.String(), "\n") != 1 || out.Len() != 0 {
				t.Errorf("stdout %q, stderr %q, want a line with %q", out.String(), stderr.String(), tt.want)
			}
		})
	}
	if serve.StartedByHost() {
		t.Error("the test itself counts as started by a host")
	}
	if err := serve.Serve(greeter()); !errors.Is(err, serve.ErrNotStartedByHost) {
		t.Errorf("error is %v", err)
	}
}

// client is a host's side of go-plugin, which hands out the connection.
type client struct{ plugin.NetRPCUnsupportedPlugin }

func (client) GRPCServer(*plugin.GRPCBroker, *wire.Server) error { return errors.New("not a server") }

func (client) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *wire.ClientConn) (any, error) {
	return conn, nil
}

// newClient is a host of go-plugin's for a program, which ends with the test.
func newClient(t *testing.T, cmd *exec.Cmd) *plugin.Client {
	t.Helper()
	c := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: wire.ProtocolVersion, MagicCookieKey: wire.HandshakeCookieKey, MagicCookieValue: wire.HandshakeCookieValue,
		},
		Plugins: plugin.PluginSet{wire.PluginName: client{}}, AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Cmd: cmd, GRPCDialOptions: wire.DialOptions(0, nil), Logger: hclog.NewNullLogger(),
	})
	t.Cleanup(c.Kill)
	return c
}

// TestProcess starts a real process and calls it as a host does.
func TestProcess(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(t.TempDir(), "closed")
	c := newClient(t, program(t, "plugin", closedVar+"="+closed))
	protocol, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := protocol.Dispense(wire.PluginName)
	if err != nil {
		t.Fatal(err)
	}
	conn, ok := raw.(*wire.ClientConn)
	if !ok {
		t.Fatalf("dispensed %T", raw)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	session, err := wire.Open(ctx, conn, wire.HostOptions{Incarnation: 1, Instance: "greeter"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if d := session.Description(); d.Name != "greeter" || d.Version != "1.0.0" || len(d.Hooks) != 0 {
		t.Errorf("described %+v", d)
	}
	d, err := session.Configure(ctx, &phases.Configuration{Instance: "greeter", Config: []byte(`"hello"`)})
	if err != nil || len(d.Hooks) != 1 {
		t.Fatalf("described %+v, error %v", d, err)
	}
	res, _, err := session.Dispatch(ctx, &phases.Dispatch{
		Subscription: "greeter.greet", Hook: "greet", Phase: phases.PrePromptCompile, Input: &phases.PrePromptCompileInput{},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(res.Contributions, phases.Contributions{&phases.PromptSection{SectionID: "greeting", Content: `"hello"`}}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	if _, err := os.Stat(closed); err == nil {
		t.Error("it was closed while it served")
	}
	c.Kill() // a regular end, with a grace
	if text, err := os.ReadFile(closed); err != nil || string(text) != "bye" {
		t.Errorf("it was not closed at its end: %q, %v", text, err)
	}
}
