package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
	"github.com/grapnelhq/grapnel/runtime"
)

// reach is what a hostile server tries, and what came of it.
type reach struct {
	Secret  string `json:"secret"`
	Beside  string `json:"beside"`
	Address string `json:"address"`
}

type reached struct {
	Read    string `json:"read"`
	Write   string `json:"write"`
	Connect string `json:"connect"`
	Child   int    `json:"child"`
}

// addReach gives a server the tool that tries it all, and leaves a child in a session of its own.
func addReach(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{Name: "reach"}, func(ctx context.Context, _ *mcp.CallToolRequest, in reach) (*mcp.CallToolResult, any, error) {
		result := func(err error) string {
			if err != nil {
				return "refused"
			}
			return "done"
		}
		var got reached
		_, err := os.ReadFile(in.Secret)
		got.Read = result(err)
		got.Write = result(os.WriteFile(in.Beside, nil, 0o600))
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", in.Address)
		if got.Connect = result(err); err == nil {
			_ = conn.Close()
		}
		self, err := os.Executable()
		if err != nil {
			return nil, nil, err
		}
		child := exec.Command(self) //nolint:noctx // it is to outlive everything
		child.Env = append(os.Environ(), modeVariable+"=linger")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			return nil, nil, fmt.Errorf("the child: %w", err)
		}
		got.Child = child.Process.Pid
		text, err := json.Marshal(got)
		return said(string(text)), nil, err
	})
}

// TestSandbox: what a plugin is not granted, a hostile server of it does not get; and nothing that it has started lives
// longer than the plugin. Without a sandbox it gets everything.
func TestSandbox(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ tier, want string }{{"T0", "done"}, {"T1", "refused"}, {"T2", "refused"}} {
		t.Run(test.tier, func(t *testing.T) {
			t.Parallel()

			tier := map[string]sandbox.Tier{"T0": sandbox.T0, "T1": sandbox.T1, "T2": sandbox.T2}[test.tier]
			if err := sandbox.Probe().Reach(tier, sandbox.Policy{}, ""); err != nil {
				t.Skip(err)
			}
			dir := t.TempDir()
			in := reach{Secret: filepath.Join(dir, "secret"), Beside: filepath.Join(dir, "beside")}
			if err := os.WriteFile(in.Secret, []byte("a secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close() //nolint:errcheck // nobody is served
			in.Address = l.Addr().String()
			eng := engine(t, stdio(t, "reach"), "", "    sandbox: "+test.tier+"\n", runtime.Options{})
			of, p := turn(t, eng, "1")
			arguments, err := json.Marshal(in)
			if err != nil {
				t.Fatal(err)
			}
			r := call(t, of, "srv__reach", string(arguments))
			var got reached
			if err := json.Unmarshal([]byte(r.Text), &got); err != nil {
				t.Fatalf("%s, %+v", r.Text, p.Manifest.Diagnostics)
			}
			if got.Read != test.want || got.Write != test.want || got.Connect != test.want || got.Child == 0 {
				t.Errorf("%+v, want all %s", got, test.want)
			}
			if !lives(got.Child) {
				t.Fatal("the child did not live")
			}
			if err := eng.Close(t.Context()); err != nil {
				t.Error(err)
			}
			poll(t, func() bool { return !lives(got.Child) })
		})
	}
}

// lives reports whether a process runs: one that has ended and waits for its parent does not.
func lives(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
