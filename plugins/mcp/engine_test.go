package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	sdkmcp "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/hostservice"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/mcp"
	"github.com/grapnelhq/grapnel/plugins/scripted"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// TestMain makes the test binary also the plugins that these tests start, and the servers that those start.
func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVariable); mode != "" {
		serveMode(mode)
		return
	}
	serve.Builtins(mcp.New, scripted.New)
	os.Exit(m.Run())
}

// stdio is the configuration of a server of this binary.
func stdio(t *testing.T, mode string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`command: [%q], env: {%s: %s}`, self, modeVariable, mode)
}

// engine starts the plugin as a process, with one server and more keys of its configuration and of the file.
func engine(t *testing.T, server, keys, file string, opts runtime.Options) *runtime.Engine {
	t.Helper()
	launches, err := serve.Plugins{mcp.New, scripted.New}.Launches()
	if err != nil {
		t.Fatal(err)
	}
	text := "version: 1\nplugins:\n  - name: mcp\n    builtin: mcp\n" +
		"    grants: {contribute: [tool_bundle, prompt_section], tools: ['*'], sections: [mcp_srv], host: [state]}\n" +
		"    config: {servers: {srv: {" + server + "}}" + keys + "}\n" + file
	cfg, err := config.Loader{}.Parse([]byte(text), "grapnel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	opts.Builtins = launches
	eng, err := runtime.New(t.Context(), cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		for _, launch := range launches {
			_ = launch.File.Close() // one file, open for all of them
		}
	})
	return eng
}

var place = phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", SessionID: "s"}

// turn begins a turn, and compiles its prompt.
func turn(t *testing.T, eng *runtime.Engine, id string) (*loop.Turn, *loop.Prompt) {
	t.Helper()
	where := place
	where.TurnID = id
	begun, err := loop.Begin(t.Context(), eng, where, loop.Options{Input: runtime.CompileInput{UserText: "hello", ToolCalling: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = begun.Done(context.WithoutCancel(t.Context()), "", nil) }) // it may have ended
	prompt, err := begun.Prompt(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return begun, prompt
}

func names(p *loop.Prompt) []string {
	list := make([]string, len(p.Tools))
	for i := range p.Tools {
		list[i] = p.Tools[i].Name
	}
	return list
}

// call makes a call as a model would.
func call(t *testing.T, of *loop.Turn, tool, arguments string) loop.Result {
	t.Helper()
	r, err := of.Tool(t.Context(), loop.Call{ID: tool, Tool: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// diagnostic is the message of the one diagnostic with a code in a prompt's record.
func diagnostic(t *testing.T, p *loop.Prompt, code string) string {
	t.Helper()
	var found []string
	for _, d := range p.Manifest.Diagnostics {
		if d.Code == code {
			found = append(found, d.Message)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d diagnostics %s, want 1: %+v", len(found), code, p.Manifest.Diagnostics)
	}
	return found[0]
}

// TestTurn is the whole way: a model sees the tools of a server, a policy denies one call, and the record names tools
// with owner and hash.
func TestTurn(t *testing.T) {
	t.Parallel()
	guard := `  - name: guard
    builtin: scripted
    grants: {contribute: [decision], see: [arguments]}
    config: {hooks: [{id: no, phase: tool.pre_call, role: validate, when: 'input.tool == "srv__fail"', respond: [{kind: decision, verdict: deny, reason: not here}]}]}
`
	eng := engine(t, stdio(t, "plain")+", instructions: true", "", guard, runtime.Options{})
	of, p := turn(t, eng, "1")
	want := []string{"srv__die", "srv__echo", "srv__environment", "srv__fail", "srv__grow", "srv__hang", "srv__image", "srv__long"}
	if got := names(p); !slices.Equal(got, want) {
		t.Fatalf("tools %q, want %q; %+v", got, want, p.Manifest.Diagnostics)
	}
	if r := call(t, of, "srv__echo", `{"text":"hi"}`); r.Text != "hi" || r.IsError {
		t.Errorf("echo: %+v", r)
	}
	if r := call(t, of, "srv__fail", `{}`); r.Refused == nil || r.Refused.Reason != "not here" {
		t.Errorf("a denied call: %+v", r)
	}
	if r := call(t, of, "srv__image", ``); r.Text != "[an image (image/png, 4 bytes) is not shown]\na\ufffdb" {
		t.Errorf("image: %q", r.Text)
	}
	if r := call(t, of, "srv__environment", ``); strings.Contains(r.Text, "HOME=") || !strings.Contains(r.Text, modeVariable) {
		t.Errorf("the server's environment: %q", r.Text)
	}
	if !strings.Contains(p.FullText, "## Tools of srv") || !strings.Contains(p.FullText, "Call echo for each word.") || strings.Count(p.FullText, "</SERVER>") != 1 {
		t.Errorf("instructions: %s", p.FullText)
	}
	// The next prompt's record has what came between.
	second, err := of.Prompt(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range second.Manifest.Tools {
		if tool.Owner != "mcp" || !strings.HasPrefix(tool.Hash, "sha256:") {
			t.Errorf("tool %+v", tool)
		}
	}
	if p.Manifest.FingerprintTools != second.Manifest.FingerprintTools || len(second.Manifest.Tools) != len(want) {
		t.Errorf("the tools changed: %+v", second.Manifest.Tools)
	}
	var denied bool
	for _, c := range second.Manifest.Calls {
		denied = denied || c.Tool == "srv__fail" && c.Owner == "mcp" && c.Verdict == phases.VerdictDeny
	}
	if !denied {
		t.Errorf("the denied call is not on record: %+v", second.Manifest.Calls)
	}
}

// TestHostile: each kind of bad server gives one diagnostic, and harms nothing.
func TestHostile(t *testing.T) {
	t.Parallel()
	tests := []struct{ mode, code, message string }{
		{"crash", "mcp_server_down", "server srv: it has ended with exit status 3: no database at /nowhere; the next attempt is in"},
		{"endless-message", "mcp_server_down", "it sent a message of more than 4 MiB"},
		{"endless-noise", "mcp_server_down", "it wrote more than 16 MiB that is not a message"},
		{"silent", "mcp_server_starting", "it has not answered yet"},
		{"noise", "mcp_stdout_noise", "it writes to its standard output what is not a message (28 bytes are skipped)"},
		{"many", "mcp_too_many_tools", "256 of them are kept"},
		{"names", "mcp_tool_name", "4 tools are withheld for the name"},
		{"names", "mcp_tool_name_taken", "files/read"},
		{"huge-schema", "mcp_tool_too_large", "1 tool is withheld for the size: a schema may have 64 KiB, a description 16 KiB, all of a server 1 MiB: huge"},
	}
	for _, test := range tests {
		t.Run(test.mode+" "+test.code, func(t *testing.T) {
			t.Parallel()
			eng := engine(t, stdio(t, test.mode), "", "", runtime.Options{})
			var of *loop.Turn
			var p *loop.Prompt
			next := 0
			poll(t, func() bool {
				next++
				of, p = turn(t, eng, strconv.Itoa(next))
				return slices.ContainsFunc(p.Manifest.Diagnostics, func(d manifest.Diagnostic) bool { return d.Code == test.code })
			})
			if got := diagnostic(t, p, test.code); !strings.Contains(got, test.message) {
				t.Errorf("got %q, want %q in it", got, test.message)
			}
			if r := call(t, of, "srv__absent", `{}`); !strings.Contains(r.Text, test.message) {
				t.Errorf("a call does not say why there is no tool: %s", r.Text)
			}
			for _, tool := range p.Tools {
				if !phases.ValidName(tool.Name) || len(tool.Name) > 64 {
					t.Errorf("a tool %q", tool.Name)
				}
			}
		})
	}
}

// TestCalls: what goes wrong in a call is an answer, and the plugin lives on.
func TestCalls(t *testing.T) {
	t.Parallel()
	impatient, _ := turn(t, engine(t, stdio(t, "plain")+", timeout: 300ms", "", "", runtime.Options{}), "1")
	if r := call(t, impatient, "srv__hang", `{}`); !r.IsError || r.Text != "the tool srv__hang failed: server srv: it has not answered within 300ms" {
		t.Errorf("hang: %+v", r)
	}
	eng := engine(t, stdio(t, "plain")+", max_result_bytes: 1000", "", "", runtime.Options{})
	of, _ := turn(t, eng, "1")
	for _, test := range []struct{ tool, text string }{
		{"srv__long", "[the result has 2621440 bytes; only the first 1000 are there]"},
		{"srv__fail", "no such file"},
		{"srv__nothing", `no plugin has brought a tool "srv__nothing"`},
		{"srv__die", "it ended during the call, which may have had an effect"},
	} {
		r := call(t, of, test.tool, `{}`)
		if !strings.Contains(r.Text, test.text) || r.IsError != (test.tool != "srv__long") || len(r.Text) > 1200 {
			t.Errorf("%s: %.300q (error %v)", test.tool, r.Text, r.IsError)
		}
	}
	// It is started again, and answers.
	poll(t, func() bool {
		r := call(t, of, "srv__echo", `{"text":"back"}`)
		if r.Text != "back" && !strings.Contains(r.Text, "the server is not there") && !strings.Contains(r.Text, "it ended during the call") && !strings.Contains(r.Text, "the next attempt is in") {
			t.Fatalf("after its end: %q", r.Text)
		}
		return r.Text == "back"
	})
	if row := eng.Plugins()[0]; row.Restarts != 0 {
		t.Errorf("the plugin was restarted: %+v", row)
	}
}

// TestListChanged: a server that says that its tools have changed is asked again.
func TestListChanged(t *testing.T) {
	t.Parallel()
	eng := engine(t, stdio(t, "plain"), "", "", runtime.Options{})
	of, _ := turn(t, eng, "1")
	if r := call(t, of, "srv__grow", `{}`); r.Text != "grown" {
		t.Fatalf("grow: %+v", r)
	}
	next := 1
	poll(t, func() bool {
		next++
		of, p := turn(t, eng, strconv.Itoa(next))
		if !slices.Contains(names(p), "srv__grown") {
			return false
		}
		if r := call(t, of, "srv__grown", `{}`); r.Text != "called grown" {
			t.Errorf("grown: %+v", r)
		}
		return true
	})
}

// poll asks until the answer is yes: what a server does of its own gives no signal here.
func poll(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(patience); !done(); <-tick.C {
		if time.Now().After(until) {
			t.Fatalf("not within %v", patience)
		}
	}
}

// hashOfEcho is that of echo, as an operator reads it.
func hashOfEcho(t *testing.T, eng *runtime.Engine) string {
	t.Helper()
	res, err := eng.CallTool(t.Context(), "mcp", phases.ToolCall{Tool: "mcp_tools"})
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Accept map[string]string `json:"accept"`
	}
	if err := json.Unmarshal(res.Content, &list); err != nil || len(list) != 1 || list[0].Accept["echo"] == "" {
		t.Fatalf("%v: %s", err, res.Content)
	}
	return list[0].Accept["echo"]
}

// TestRugPull: a server that changes what a tool says of itself, after a restart of everything, has it withheld until the
// operator accepts it. Others of its tools stay.
func TestRugPull(t *testing.T) {
	t.Parallel()
	state := hostservice.NewMemoryState()
	opts := runtime.Options{State: state}
	only := ", tools: [echo, fail]"
	first := engine(t, stdio(t, "plain")+only, "", "", opts)
	if _, p := turn(t, first, "1"); !slices.Equal(names(p), []string{"srv__echo", "srv__fail"}) {
		t.Fatalf("at first %q", names(p))
	}
	good := hashOfEcho(t, first)

	changed := engine(t, stdio(t, "changed")+only, "", "", opts)
	of, p := turn(t, changed, "2")
	bad := hashOfEcho(t, changed)
	if got := diagnostic(t, p, "mcp_tool_changed"); !slices.Equal(names(p), []string{"srv__fail"}) || !strings.Contains(got, "echo ("+bad+")") || bad == good {
		t.Errorf("changed: %q %q", names(p), got)
	}
	if r := call(t, of, "srv__echo", `{"text":"x"}`); !r.IsError {
		t.Errorf("a withheld tool was called: %+v", r)
	}

	_, p = turn(t, engine(t, stdio(t, "changed")+only, ", changed: warn", "", opts), "3")
	if got := diagnostic(t, p, "mcp_tool_changed"); len(p.Tools) != 2 || !strings.Contains(got, "offered all the same") {
		t.Errorf("changed: warn: %q %q", names(p), got)
	}

	_, p = turn(t, engine(t, stdio(t, "changed")+only+fmt.Sprintf(", accept: {echo: %q}", bad), "", "", opts), "4")
	if len(p.Tools) != 2 || len(p.Manifest.Diagnostics) != 0 {
		t.Errorf("accepted: %q %+v", names(p), p.Manifest.Diagnostics)
	}
	// What the operator accepted counts, not what was seen first.
	_, p = turn(t, engine(t, stdio(t, "plain")+only+fmt.Sprintf(", accept: {echo: %q}", bad), "", "", opts), "5")
	if got := diagnostic(t, p, "mcp_tool_changed"); len(p.Tools) != 1 || !strings.Contains(got, good) {
		t.Errorf("back: %q %q", names(p), got)
	}
	_, p = turn(t, engine(t, stdio(t, "plain")+only+fmt.Sprintf(", accept: {echo: %q}", good), ", unknown: withhold", "", runtime.Options{}), "6")
	if got := diagnostic(t, p, "mcp_tool_unknown"); !slices.Equal(names(p), []string{"srv__echo"}) || !strings.Contains(got, "fail (") {
		t.Errorf("unknown: withhold: %q %q", names(p), got)
	}
}

// TestOneNameOneTool: what the model sees under one name is one tool, however the server spells it.
func TestOneNameOneTool(t *testing.T) {
	t.Parallel()
	state := hostservice.NewMemoryState()
	opts := runtime.Options{State: state}
	only := ", tools: ['read*']"
	if _, p := turn(t, engine(t, stdio(t, "underscore")+only, "", "", opts), "1"); !slices.Equal(names(p), []string{"srv__read_file"}) {
		t.Fatalf("at first %q", names(p))
	}
	_, p := turn(t, engine(t, stdio(t, "dot")+only, "", "", opts), "2")
	if got := diagnostic(t, p, "mcp_tool_changed"); len(p.Tools) > 0 || !strings.Contains(got, "read.file (sha256:") {
		t.Errorf("another tool took the name that was remembered: %q %q", names(p), got)
	}
	_, p = turn(t, engine(t, stdio(t, "dot-beside")+only, "", "", opts), "3")
	if got := diagnostic(t, p, "mcp_tool_name_taken"); len(p.Tools) > 0 || !strings.Contains(got, "read_file (srv__read_file is read.file)") {
		t.Errorf("two tools of one name: %q %q", names(p), got)
	}
	unknown := fmt.Sprintf(", accept: {read_file: %q}", manifest.Hash("", nil))
	_, p = turn(t, engine(t, stdio(t, "dot")+only+unknown, "", "", runtime.Options{}), "4")
	if diagnostic(t, p, "mcp_tool_changed"); len(p.Tools) > 0 {
		t.Errorf("what was accepted of read_file does not bind read.file: %q", names(p))
	}
}

// TestHTTP: a server at a URL gets its headers, and nobody else does.
func TestHTTP(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect was followed, with the token %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	handler := sdkmcp.NewStreamableHTTPHandler(func(*http.Request) *sdkmcp.Server { return testServer("plain") }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer secret":
			http.Error(w, "who are you", http.StatusUnauthorized)
		case r.URL.Path == "/away":
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(web.Close)
	for _, test := range []struct {
		path, token string
		down        bool
	}{{"/", "secret", false}, {"/", "wrong", true}, {"/away", "secret", true}} {
		t.Run(test.path+" "+test.token, func(t *testing.T) {
			eng := engine(t, fmt.Sprintf(`url: %q, headers: {Authorization: "Bearer %s"}`, web.URL+test.path, test.token), "", "", runtime.Options{})
			of, p := turn(t, eng, "1")
			if test.down {
				if got := diagnostic(t, p, "mcp_server_down"); len(p.Tools) > 0 || strings.Contains(got, test.token) {
					t.Errorf("tools %q, %q", names(p), got)
				}
				return
			}
			if r := call(t, of, "srv__echo", `{"text":"over HTTP"}`); r.Text != "over HTTP" {
				t.Errorf("echo: %+v", r)
			}
		})
	}
}
