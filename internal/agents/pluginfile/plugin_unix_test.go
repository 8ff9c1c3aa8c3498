//go:build unix

package pluginfile_test

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/pluginfile"
)

// TestFiles: a socket takes the place of the usual one.
func TestFiles(t *testing.T) {
	t.Parallel()

	for _, host := range []string{"opencode", "amp"} {
		own := string(pluginfile.File(agents.Lookup(host), `/run/a "b"/s`))
		if !strings.Contains(own, `const socket = env.GRAPNEL_SOCKET ?? "/run/a \"b\"/s"`+"\n") || strings.Contains(own, "hook.sock") {
			t.Errorf("%s with a socket:\n%s", host, own)
		}
	}
}

// TestPlugins runs each file in Node.js in a host that is made up, with a gateway that is made up, too: they do what the
// gateway answers, and refuse what it does not.
func TestPlugins(t *testing.T) {
	t.Parallel()

	for host, want := range map[string]struct{ out, events string }{
		"opencode": {
			`{"deny":"no","system":["yours","Be kind."],"args":{"command":"ls -l"},"denied":"no rm","result":"***\n\nlint",` +
				`"prompts":[{"path":{"id":"s"},"body":{"parts":[{"type":"text","text":"go on","synthetic":true}]}}],"closed":"Grapnel decided nothing: who are you"}`,
			strings.Repeat("UserPromptSubmit ", 2) + strings.Repeat("PreToolUse ", 2) + "PostToolUse Usage Stop",
		},
		"amp": {
			`{"deny":{"message":{"content":"A hook refused the user's message: no\nTell the user so, and do nothing else."}},"prompt":{"message":{"content":"Be kind."}},` +
				`"call":{"action":"modify","input":{"command":"ls -l"}},"denied":{"action":"reject-and-continue","message":"no rm"},"result":{"status":"done","output":"***\n\nlint"},` +
				`"end":{"action":"continue","userMessage":"go on"},"closed":{"action":"reject-and-continue","message":"Error: Grapnel decided nothing: who are you"}}`,
			"SessionStart " + strings.Repeat("UserPromptSubmit ", 2) + strings.Repeat("PreToolUse ", 2) + "PostToolUse Stop",
		},
	} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()

			g := serve(t, host)
			out := drive(t, host+".mjs", host, write(t, host), "HOME="+filepath.Dir(g.socket), "GRAPNEL_SOCKET="+g.socket, "GRAPNEL_TOKEN=secret")
			var got, wanted any
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatalf("%s: %v", out, err)
			}
			if err := json.Unmarshal([]byte(want.out), &wanted); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, wanted); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			if events := strings.Join(g.events, " "); events != want.events {
				t.Errorf("the events were %q, want %q", events, want.events)
			}
		})
	}
}

// javascript is a plugin file without its types: by Node.js itself, or by the TypeScript of the kit.
func javascript(t *testing.T, host string) []byte {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("there is no Node.js to run the plugin files in")
	}
	const strip = `
const text = require("fs").readFileSync(0, "utf8"), m = require("module")
if (m.stripTypeScriptTypes) process.stdout.write(m.stripTypeScriptTypes(text))
else {
  const ts = require(process.argv[1])
  process.stdout.write(ts.transpileModule(text, { compilerOptions: { module: "esnext", target: "es2022" } }).outputText)
}`
	kit := os.Getenv("GRAPNEL_TYPESCRIPT")
	if kit == "" {
		kit = filepath.Join("..", "..", "..", "sdks", "typescript", "node_modules", "typescript")
	}
	kit, err := filepath.Abs(kit)
	if err != nil {
		t.Fatal(err)
	}
	text := pluginfile.File(agents.Lookup(host), "")
	cmd := exec.CommandContext(t.Context(), "node", "-e", strip, kit)
	cmd.Stdin = strings.NewReader(string(text))
	out, err := cmd.Output()
	if err != nil {
		t.Skip("this Node.js does not strip types, and TypeScript is not installed: run npm ci in sdks/typescript, or set GRAPNEL_TYPESCRIPT to its directory")
	}
	return out
}

// gateway is a gateway that is made up.
type gateway struct {
	socket string

	mu     sync.Mutex
	events []string
}

func serve(t *testing.T, host string) *gateway {
	t.Helper()
	g := &gateway{socket: filepath.Join(place(t), "s")}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", g.socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hook/"+host, g.answer)
	srv := &http.Server{Handler: mux}
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(l) })
	t.Cleanup(func() {
		_ = srv.Close()
		serving.Wait()
	})
	return g
}

func (g *gateway) answer(w http.ResponseWriter, r *http.Request) {
	var e struct {
		Event  string `json:"hook_event_name"`
		ID     string `json:"session_id"`
		Prompt string `json:"prompt"`
		Tool   string `json:"tool_name"`
	}
	if r.Header.Get("Authorization") != "Bearer secret" {
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil || e.ID != "s" {
		http.Error(w, "no event", http.StatusUnprocessableEntity)
		return
	}
	g.mu.Lock()
	g.events = append(g.events, e.Event)
	g.mu.Unlock()
	answers := map[string]string{
		"UserPromptSubmit hi": `{"context":"Be kind."}`, "UserPromptSubmit deny me": `{"deny":"no"}`, "PreToolUse bash": `{"arguments":{"command":"ls -l"}}`,
		"PreToolUse rm": `{"deny":"no rm"}`, "PostToolUse bash": `{"result":"***","context":"lint"}`, "Stop ": `{"deny":"go on"}`,
	}
	_, _ = w.Write([]byte(answers[e.Event+" "+e.Prompt+e.Tool]))
}
