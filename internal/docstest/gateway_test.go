package docstest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/gateway/client"
)

// gatewayDocs are documents whose commands call a gateway.
func gatewayDocs() []string { return []string{"docs/GATEWAY.md", "docs/OPERATING.md"} }

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

// TestGatewayConsole runs the commands of the documents about the gateway, and the
// conversations over WebSocket, in order, against a gateway of their own.
func TestGatewayConsole(t *testing.T) {
	t.Parallel()

	if runtime.GOOS != "linux" {
		t.Skip("the documents show Linux")
	}
	for _, name := range gatewayDocs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			doc := document{name, text(t, name)}
			dir := consoleFolder(t, doc)
			w := &walk{dir: dir, url: startGateway(t, dir), doc: doc}
			rewritten := w.try(t)
			if *update {
				if err := os.WriteFile(filepath.Join(root(t), filepath.FromSlash(name)), []byte(rewritten), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// talk is one step of a conversation over WebSocket: '>' sends, '<' comes, '$' is a
// command beside it.
type talk struct {
	way  byte
	text string
}

// talks splits a block into its steps.
func talks(b block) []talk {
	var out []talk
	for line := range strings.Lines(b.text) {
		if line = strings.TrimSpace(line); len(line) > 2 && line[1] == ' ' {
			out = append(out, talk{line[0], line[2:]})
		}
	}
	return out
}

// converse runs a conversation, and returns it as it went.
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
	for _, step := range talks(b) {
		got := step.text
		switch step.way {
		case '$':
			runConsole(t, w.dir, step.text, "URL="+w.url)
		case '>':
			answers <- ask(t, c, step.text)
		case '<':
			from := answers
			if !strings.Contains(step.text, `"id": `) || strings.Contains(step.text, `"method"`) {
				from = notes
			}
			select {
			case got = <-from:
			case <-time.After(10 * time.Second):
				t.Fatalf("%s:%d: nothing came like %s", b.doc, b.line, step.text)
			}
		}
		if normal(got) != normal(step.text) {
			t.Errorf("%s:%d: there came\n%s\nand the document says\n%s", b.doc, b.line, got, step.text)
		}
		fmt.Fprintf(&went, "%c %s\n", step.way, got)
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

// rpcSchema is what "grapnel schema rpc" prints.
type rpcSchema struct {
	Methods map[string]struct {
		Description string     `json:"description"`
		Right       string     `json:"right"`
		Params      rpcMembers `json:"params"`
		Result      rpcMembers `json:"result"`
	} `json:"methods"`
	Notifications map[string]struct {
		Description string     `json:"description"`
		Params      rpcMembers `json:"params"`
	} `json:"notifications"`
	Errors []struct {
		Number      int    `json:"number"`
		Code        string `json:"code"`
		Description string `json:"description"`
	} `json:"errors"`
}

// rpcMembers are the members of an object.
type rpcMembers struct {
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
}

// schemaOutput is what "grapnel schema NAME" prints, decoded.
func schemaOutput(t *testing.T, name string, into any) {
	t.Helper()
	program, err := grapnel()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, "schema", name).Output()
	if err != nil {
		t.Fatalf("grapnel schema %s: %v", name, err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatal(err)
	}
}

// params are the names of an object's members, those that must be there first.
func (m rpcMembers) params() string {
	var names []string
	for _, required := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(m.Properties)) {
			if is := slices.Contains(m.Required, name); is != required || name == "actor" {
				continue
			}
			if !required {
				name += "?"
			}
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "–"
	}
	return strings.Join(names, ", ")
}

// results are methods that answer as a command does, by the name of its schema.
func results() map[string]string {
	return map[string]string{
		"turn/compile": "compile", "phase/dispatch": "dispatch", "turn/dispatch": "dispatch", "turn/end": "dispatch",
		"session/start": "dispatch", "session/resume": "dispatch", "session/end": "dispatch", "manifest/list": "manifest-list", "manifest/get": "manifest",
		"manifest/diff": "manifest-diff", "manifest/verify": "manifest-verify",
	}
}

// methodTable is the document's table of methods, made of the schema.
func methodTable(t *testing.T, s *rpcSchema) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| method | right | params | result | |\n|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(s.Methods)) {
		m := s.Methods[name]
		result := strings.Join(slices.Sorted(maps.Keys(m.Result.Properties)), ", ")
		if other := results()[name]; other != "" {
			var same rpcMembers
			schemaOutput(t, other, &same)
			if got := strings.Join(slices.Sorted(maps.Keys(same.Properties)), ", "); got != result {
				t.Errorf("%s answers with %s, and the schema %s has %s", name, result, other, got)
			}
			result = "as `grapnel schema " + other + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", name, m.Right, m.Params.params(), result, m.Description)
	}
	return b.String()
}

// TestGatewayTables compares the tables of docs/GATEWAY.md with the schema of the
// gateway.
func TestGatewayTables(t *testing.T) {
	// Not parallel: with -update it writes a file that another test writes too.
	var s rpcSchema
	schemaOutput(t, "rpc", &s)
	if len(s.Methods) < 25 || len(s.Notifications) < 2 || len(s.Errors) < 10 {
		t.Fatalf("the schema has %d methods, %d notifications, %d errors", len(s.Methods), len(s.Notifications), len(s.Errors))
	}
	var notes, errs strings.Builder
	notes.WriteString("| notification | params | |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(s.Notifications)) {
		n := s.Notifications[name]
		fmt.Fprintf(&notes, "| `%s` | %s | %s |\n", name, n.Params.params(), n.Description)
	}
	errs.WriteString("| number | code | what it is |\n|---|---|---|\n")
	for _, e := range s.Errors {
		fmt.Fprintf(&errs, "| %d | `%s` | %s |\n", e.Number, e.Code, e.Description)
	}
	const name = "docs/GATEWAY.md"
	doc := text(t, name)
	for mark, want := range map[string]string{"methods": methodTable(t, &s), "notifications": notes.String(), "errors": errs.String()} {
		begin, end := "<!-- "+mark+" -->\n", "<!-- end -->"
		before, rest, found := strings.Cut(doc, begin)
		got, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s has no %s", name, begin)
		}
		if got != want {
			t.Errorf("%s: the table of %s is\n%s\nand has to be\n%s", name, mark, got, want)
			doc = before + begin + want + end + after
		}
	}
	if *update {
		if err := os.WriteFile(filepath.Join(root(t), filepath.FromSlash(name)), []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMetricNames compares the metrics that docs/OPERATING.md explains with those
// that the gateway's source names, and with what one serves that has done something
// of everything: not all there is to count has happened to it.
func TestMetricNames(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	url := startGateway(t, dir)
	c, err := client.Dial(t.Context(), url, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // everything was answered
	told := make(chan struct{}, 64)
	watcher, err := client.Dial(t.Context(), "ws"+strings.TrimPrefix(url, "http"), client.Options{
		OnNotification: func(string, json.RawMessage) { told <- struct{}{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close() //nolint:errcheck // everything was told
	for _, call := range []struct{ method, params string }{
		{"workspace/create", `{"id": "w", "name": "W"}`},
		{"workspace/watch", `{"workspace_id": "w"}`},
		{"thread/agents_doc/save", `{"workspace_id": "w", "content": "x"}`},
		{"turn/compile", `{"turn": {"workspace_id": "w", "thread_id": "t", "turn_id": "1"}}`},
	} {
		on := c
		if call.method == "workspace/watch" {
			on = watcher
		}
		if err := on.Call(t.Context(), call.method, json.RawMessage(call.params), nil); err != nil {
			t.Fatal(err)
		}
	}
	<-told
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	names := func(pattern, text string) []string {
		var list []string
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			list = append(list, m[1])
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	served := names(`(?m)^# HELP (grapnel_\w+) `, string(page))
	explained := names("(?m)^\\| `(grapnel_\\w+)", text(t, "docs/OPERATING.md"))
	var source strings.Builder
	files, err := filepath.Glob(filepath.Join(root(t), "gateway", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(code)
	}
	named := names(`"(grapnel_\w+)"`, source.String())
	if !slices.Equal(named, explained) {
		t.Errorf("docs/OPERATING.md explains %v, and the gateway has %v", explained, named)
	}
	if len(served) < 20 {
		t.Errorf("the gateway serves %v only", served)
	}
	for _, name := range served {
		if !slices.Contains(named, name) {
			t.Errorf("the gateway serves %s, which its source does not name", name)
		}
	}
}
