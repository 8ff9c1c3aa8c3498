package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"
)

// mcpCommands are the commands of scripts about agents that take tools over MCP.
func mcpCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){"agent": cmdAgent, "gatewayleft": cmdGatewayLeft}
}

// cmdAgent is "agent TOOL ARGUMENTS COMMAND [ARG]...": it starts the command as an agent does, with the official SDK, lists
// its tools and calls one. What came is in the file out, as server, tools and result.
func cmdAgent(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	path, err := exec.LookPath(args[2])
	ts.Check(err)
	cmd := exec.CommandContext(ctx, path, args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "XDG_RUNTIME_DIR", "PATH", "GORACE", "GOCOVERDIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		ts.Fatalf("connect: %v: %s", err, errs.String())
	}
	defer session.Close() //nolint:errcheck // it may end with an error, which is not what is tested
	tools, err := session.ListTools(ctx, nil)
	ts.Check(err)
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: args[0], Arguments: json.RawMessage(args[1])})
	ts.Check(err)
	data, err := json.Marshal(map[string]any{"server": session.InitializeResult().ServerInfo, "tools": tools.Tools, "result": result})
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("out"), data, 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("err"), errs.Bytes(), 0o600))
}

// cmdGatewayLeft is "gatewayleft": gateways that commands of the script start and leave running end with the script.
func cmdGatewayLeft(ts *testscript.TestScript, _ bool, _ []string) {
	dir := ts.Getenv("XDG_RUNTIME_DIR")
	ts.Defer(func() {
		notes, err := filepath.Glob(filepath.Join(dir, "grapnel", "gateway-*.json"))
		ts.Check(err)
		for _, path := range notes {
			var n note
			ts.Check(json.Unmarshal([]byte(ts.ReadFile(path)), &n))
			if p, err := os.FindProcess(n.PID); err == nil {
				_ = p.Signal(syscall.SIGKILL) // it may be gone
			}
		}
	})
}
