package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/grapnelhq/grapnel/internal/cli/client"
)

// serveCommands are the commands of scripts about the gateway.
func serveCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"gateway": cmdGateway,
		"rpc":     cmdRPC,
		"nul":     cmdNUL,
	}
}

// cmdGateway is "gateway [ARG]...": it starts "grapnel serve" with the arguments,
// sets $URL, and ends it with the script.
func cmdGateway(ts *testscript.TestScript, _ bool, args []string) {
	path, err := exec.LookPath("grapnel")
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	cmd := exec.CommandContext(ctx, path, append([]string{"serve"}, args...)...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "XDG_RUNTIME_DIR", "PATH", "GORACE", "GOCOVERDIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		cancel()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		ts.Fatalf("it does not serve: %s", errs.String())
	}
	ts.Setenv("URL", strings.TrimPrefix(strings.TrimSpace(line), "listening on "))
}

// cmdRPC is "rpc METHOD PARAMS": it calls the gateway at $URL. Its result is in the
// file out; with "!" it must be refused, and the error is there.
func cmdRPC(ts *testscript.TestScript, neg bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	// Where the gateway has made a token there is one; elsewhere none is needed.
	token, _ := os.ReadFile(filepath.Join(ts.Getenv("HOME"), ".local", "share", "grapnel", "token"))
	c, err := client.Dial(ctx, ts.Getenv("URL"), client.Options{Token: strings.TrimSpace(string(token))})
	ts.Check(err)
	defer c.Close() //nolint:errcheck // everything was answered
	var result json.RawMessage
	err = c.Call(ctx, args[0], json.RawMessage(args[1]), &result)
	if (err != nil) != neg {
		ts.Fatalf("%s: %v", args[0], err)
	}
	if err != nil {
		result = json.RawMessage(err.Error())
	}
	ts.Check(os.WriteFile(ts.MkAbs("out"), result, 0o600))
}

// cmdNUL is "nul FILE": it puts a NUL into a file, which no archive can have.
func cmdNUL(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte("a\x00b"), 0o600))
}
