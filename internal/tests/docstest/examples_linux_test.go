package docstest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// systemPath is where scripts in the sandbox find their interpreters without a grant.
const systemPath = "/usr/local/bin:/usr/bin:/bin"

// TestExamplesConfined runs the example of each language in the sandbox T1: a section in the prompt, a denied call, and
// a tool that is called.
func TestExamplesConfined(t *testing.T) {
	t.Parallel()

	if err := sandbox.Probe().Check(sandbox.Policy{}); err != nil {
		t.Skip(err)
	}
	tests := []struct {
		name        string
		interpreter string // what its first line looks for
		needs       string // a program that this machine may lack
		get, build  string // get needs the network and may fail without it
		read        []string
		denied      phases.ToolPreCallInput
		section     string
		tool, tells string
		arguments   string
	}{
		{
			name: "plugin-go", needs: "go", build: `cd "$REPO/examples/plugin-go" && go build -o "$OLDPWD/examples/plugin-go/freeze" .`,
			denied: phases.ToolPreCallInput{Tool: "deploy"}, section: "No changes until", tool: "freeze_status", tells: "No changes until",
		},
		{
			name: "plugin-python", needs: "python3", interpreter: "python3", build: "true", read: []string{".", "../../sdks/python/src"},
			denied:  phases.ToolPreCallInput{Tool: "shell", Arguments: json.RawMessage(`{"command": "sudo ls"}`)},
			section: "Ask before you delete.", tool: "word_count", arguments: `{"text": "two words"}`, tells: "2 words",
		},
		{
			name: "plugin-ts", needs: "npm", interpreter: "node", get: "cd sdks/typescript && npm ci --no-fund --no-audit",
			build: "(cd sdks/typescript && npm run build) && cd examples/plugin-ts && mkdir -p node_modules/@grapnel && cd node_modules && " +
				"ln -s ../../../../sdks/typescript @grapnel/sdk && ln -s ../../../sdks/typescript/node_modules/* ../../../sdks/typescript/node_modules/.bin . && cd .. && npm run build",
			read:    []string{".", "../../sdks/typescript"},
			denied:  phases.ToolPreCallInput{Tool: "shell", Arguments: json.RawMessage(`{"command": "rm -rf /"}`)},
			section: "House rules", tool: "word_count", arguments: `{"text": "two words"}`, tells: "2",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if _, err := exec.LookPath(tt.needs); err != nil || tt.needs == "npm" && !storetest.Long() {
				t.Skip("there is no such program, or it builds the kit of TypeScript, with GRAPNEL_LONG=1: ", tt.needs, err)
			}
			if tt.interpreter != "" && !slices.ContainsFunc(filepath.SplitList(systemPath), func(dir string) bool {
				_, err := os.Stat(filepath.Join(dir, tt.interpreter))
				return err == nil
			}) {
				t.Skipf("%s is not in %s, which the sandbox lets through", tt.interpreter, systemPath)
			}
			dir := t.TempDir()
			sh := func(script string) ([]byte, error) {
				cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
				cmd.Dir = dir
				cmd.Env = append(cmd.Environ(), "REPO="+root(t), "GOFLAGS=-buildvcs=false")
				return cmd.CombinedOutput()
			}
			if out, err := sh(`mkdir examples sdks && cp -R "$REPO/examples/` + tt.name + `" examples && cp -R "$REPO"/sdks/* sdks && rm -rf */*/node_modules */*/dist`); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if out, err := sh(tt.get); err != nil {
				t.Skipf("%s: %v\n%s", tt.get, err, out)
			}
			if out, err := sh(tt.build); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			eng := newEngine(t, confined(t, filepath.Join(dir, "examples", tt.name), tt.read), runtime.Options{})
			row := eng.Plugins()[0]
			if row.State != phases.PluginReady || row.Tier != "T1" {
				t.Fatalf("the plugin is %+v", row)
			}
			turn, err := eng.BeginTurn(t.Context(), phases.Context{ThreadID: "t", TurnID: "1"})
			if err != nil {
				t.Fatal(err)
			}
			done, err := turn.Compile(t.Context(), runtime.CompileInput{ToolCalling: true})
			if err != nil || !strings.Contains(done.Prompt.FullText, tt.section) {
				t.Errorf("the prompt lacks %q: %+v, %v", tt.section, done, err)
			}
			out, err := turn.Dispatch(t.Context(), &tt.denied)
			if err != nil || out.Decision == nil || out.Decision.Verdict != phases.VerdictDeny {
				t.Errorf("decision %+v, %v; want a deny", out, err)
			}
			res, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: tt.tool, Arguments: json.RawMessage(tt.arguments)})
			if err != nil || res.IsError || !strings.Contains(res.Text(), tt.tells) {
				t.Errorf("tool: %+v, %v; want %q", res, err, tt.tells)
			}
		})
	}
}

// confined is the configuration of an example, in the sandbox T1 with grants to read.
func confined(t *testing.T, dir string, read []string) *config.Config {
	t.Helper()
	var lines strings.Builder
	lines.WriteString("    sandbox: T1\n")
	if len(read) > 0 {
		lines.WriteString("    env: {set: {PATH: '" + systemPath + "', PYTHONPATH: " + filepath.Join(dir, "..", "..", "sdks", "python", "src") + "}}\n")
	}
	text := fileText(t, filepath.Join(dir, "grapnel.yaml"))
	text = strings.Replace(text, "    env:\n      pass: [PATH] # its first line finds node there\n", "", 1)
	text = strings.Replace(text, "    grants:\n", lines.String()+"    grants:\n      read: ["+strings.Join(read, ", ")+"]\n", 1)
	writeFile(t, filepath.Join(dir, "grapnel.yaml"), text)
	cfg, err := config.Load(filepath.Join(dir, "grapnel.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
