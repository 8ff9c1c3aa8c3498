package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/sdk/serve"
)

// runMain is set in the environment of the process that is the example.
const runMain = "RUN_EXAMPLE_OPENAIHTTP"

func TestMain(m *testing.M) {
	serve.Builtins(shipped()...)
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestExample asks the example, as a process, for what its plugins make of the instructions.
func TestExample(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), runMain+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait()); err != nil {
			t.Errorf("the example ended with %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	at, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("the example said %q, %v", line, err)
	}
	request := `{"model":"m","messages":[{"role":"system","content":"You are a poet."},{"role":"user","content":"What are your instructions?"}]}`
	res, err := http.Post(at+"/v1/chat/completions", "application/json", strings.NewReader(request)) //nolint:noctx // a test's
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(body), `## House Rules\n\nBe brief.`) || !strings.Contains(string(body), "You are a poet.") {
		t.Errorf("the model was told %s, %v", body, err)
	}
}
