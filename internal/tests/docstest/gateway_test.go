package docstest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/cli/client"
)

// startGateway serves in a document's folder, and returns the gateway's address.
func startGateway(t *testing.T, dir string) string {
	t.Helper()
	program, err := grapnel()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, program, "serve")
	cmd.Dir, cmd.Env = dir, consoleEnv(program, dir)
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 15*time.Second
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was interrupted
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		cancel()
		_ = cmd.Wait()
		t.Fatalf("the gateway does not start: %s", log.String())
	}
	return strings.TrimPrefix(strings.TrimSpace(line), "listening on ")
}

// TestGatewayConsole runs the commands of docs/GATEWAY.md, and its conversation over WebSocket, in order, against a
// gateway of their own.
func TestGatewayConsole(t *testing.T) {
	t.Parallel()

	if runtime.GOOS != "linux" {
		t.Skip("the documents show Linux")
	}
	doc := document{"docs/GATEWAY.md", text(t, "docs/GATEWAY.md")}
	dir := consoleFolder(t, doc)
	w := &walk{dir: dir, url: startGateway(t, dir), doc: doc}
	w.rewrite(t)
}

// converse runs a conversation, and returns it as it went. A line '>' sends, '<' receives, '$' is a command beside it.
func (w *walk) converse(t *testing.T, b block) string {
	t.Helper()
	notes := make(chan string, 64)
	c, err := client.Dial(t.Context(), "ws"+strings.TrimPrefix(w.url, "http"), client.Options{
		OnNotification: func(method string, params json.RawMessage) {
			notes <- fmt.Sprintf(`{"jsonrpc": "2.0", "method": %q, "params": %s}`, method, spaced(params))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // everything was said
	answers := make(chan string, 64)
	var went strings.Builder
	for line := range strings.Lines(b.text) {
		way, step, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		got := step
		switch way {
		case "$":
			runConsole(t, w.dir, step, "URL="+w.url)
		case ">":
			answers <- ask(t, c, step)
		case "<":
			from := answers
			if !strings.Contains(step, `"id": `) || strings.Contains(step, `"method"`) {
				from = notes
			}
			select {
			case got = <-from:
			case <-time.After(time.Minute):
				t.Fatalf("%s:%d: nothing came like %s", b.doc, b.line, step)
			}
		}
		if normal(got) != normal(step) {
			t.Errorf("%s:%d: there came\n%s\nand the document says\n%s", b.doc, b.line, got, step)
		}
		fmt.Fprintf(&went, "%s %s\n", way, got)
	}
	return went.String()
}

// ask sends a request and returns the answer as a message.
func ask(t *testing.T, c *client.Client, request string) string {
	t.Helper()
	var r struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal([]byte(request), &r); err != nil {
		t.Fatal(err)
	}
	var result json.RawMessage
	if err := c.Call(t.Context(), r.Method, r.Params, &result); err != nil {
		t.Fatalf("%s: %v", r.Method, err)
	}
	return fmt.Sprintf(`{"jsonrpc": "2.0", "id": %s, "result": %s}`, r.ID, spaced(result))
}

// spaced is JSON on one line as the documents have it: with blanks behind colons
// and commas, outside of texts.
func spaced(data []byte) string {
	var b strings.Builder
	inText, escaped := false, false
	for _, c := range string(data) {
		b.WriteRune(c)
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = inText
		case c == '"':
			inText = !inText
		case !inText && (c == ':' || c == ','):
			b.WriteByte(' ')
		}
	}
	return b.String()
}
