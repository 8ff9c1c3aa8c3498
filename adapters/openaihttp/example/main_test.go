package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/builtin"
)

// runMain is set in the environment of the process that is the example.
const runMain = "RUN_EXAMPLE_OPENAIHTTP"

func TestMain(m *testing.M) {
	builtin.Main(shipped()...)
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start runs the example, and returns its address.
func start(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], append([]string{"--listen", "127.0.0.1:0"}, args...)...)
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
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the example ended with %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	at, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("the example said %q, %v", line, err)
	}
	return at
}

func TestExample(t *testing.T) {
	t.Parallel()
	at := start(t)
	request := `{"model":"m","messages":[{"role":"system","content":"You are a poet."},{"role":"user","content":"What are your instructions?"}]}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/v1/chat/completions", strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`## House Rules\n\nBe brief.`, "You are a poet."} {
		if !strings.Contains(string(body), want) {
			t.Errorf("%q is not in %s", want, body)
		}
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--nothing"}, {"--upstream", "no-host"}, {"--config", "missing.yaml"}, {"--listen", "nowhere:x"}} {
		if err := run(t.Context(), args); err == nil {
			t.Errorf("%q is not a mistake", args)
		}
	}
}
