package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
)

// TestScaffold makes a guard in Go and in Python (with [longSwitch] each kind of plugin in each language) and runs the commands of its README: its tests, and the
// real engine with its own grapnel.yaml, in the sandbox T1 where this machine has it.
func TestScaffold(t *testing.T) {
	skipShort(t)
	t.Parallel()

	if err := sandbox.Probe().Check(sandbox.Policy{}); err != nil {
		t.Logf("the plugins run without the sandbox T1: %v", err)
	}
	shown := map[string]string{"guard": "decision: deny", "section": "Answer in whole sentences.", "tool": "2 words", "observer": "audit"}
	for _, lang := range []string{"go", "python", "ts"}[:rounds(3, 2)] {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()

			root := t.TempDir()
			sdk, prepare := kitFor(t, lang, root)
			for _, kind := range []string{"guard", "section", "tool", "observer"}[:rounds(4, 1)] {
				t.Run(kind, func(t *testing.T) {
					name := lang + "-" + kind
					shell(t, root, "grapnel plugin new "+name+" --lang "+lang+" --kind "+kind+" --sdk '"+sdk+"'")
					dir := filepath.Join(root, name)
					shell(t, dir, prepare)
					var said []string
					for _, command := range readmeCommands(t, dir) {
						said = append(said, shell(t, dir, command))
					}
					seen := strings.Join(said, "")
					if !strings.Contains(seen, shown[kind]) {
						t.Errorf("nothing shows %q:\n%s", shown[kind], seen)
					}
					seen = shell(t, dir, "grapnel plugin list --strict --config grapnel.yaml")
					if sandbox.Probe().Check(sandbox.Policy{}) == nil && !strings.Contains(seen, " T1 ") {
						t.Errorf("it does not run in T1:\n%s", seen)
					}
				})
			}
		})
	}
}

// kitFor returns a checkout with the kit of a language, and the command that prepares a new plugin in place of getting
// packages.
func kitFor(t *testing.T, lang, root string) (sdk, prepare string) {
	t.Helper()
	repo := must(filepath.Abs(filepath.Join("..", "..")))(t)
	skipUnless := func(script string) {
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput(); err != nil {
			t.Skipf("%s: %v\n%s", script, err, out)
		}
	}
	switch lang {
	case "python":
		skipUnless(`python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'`)
	case "ts": // the kit is built once, in a copy, and has the packages that plugins need too
		skipUnless(`npm --version && node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)'`)
		kit := filepath.Join(root, "checkout", "sdks", "typescript")
		shell(t, root, "mkdir -p checkout/sdks && cp -R '"+repo+"/sdks/typescript' checkout/sdks/ && rm -rf '"+kit+"/node_modules' '"+kit+"/dist'")
		skipUnless("cd '" + kit + "' && npm ci --no-fund --no-audit")
		shell(t, kit, "npm run build")
		return filepath.Join(root, "checkout"),
			"mkdir -p node_modules/@grapnel && cd node_modules && ln -s '" + kit + "' @grapnel/sdk && ln -s '" + kit + "'/node_modules/* '" + kit + "'/node_modules/.bin ."
	case "go": // "go mod tidy" asks for modules that no build needs
		return repo, "cp '" + repo + "/go.sum' . && go vet -mod=mod . && go build && test -z \"$(gofmt -l .)\""
	}
	return repo, "true"
}

// readmeCommands are the commands of a new plugin's README, except those that get packages, and those that this
// command line does not have.
func readmeCommands(t *testing.T, dir string) []string {
	t.Helper()
	text := must(os.ReadFile(filepath.Join(dir, "README.md")))(t)
	var commands []string
	for line := range strings.Lines(string(text)) {
		command, ok := strings.CutPrefix(line, "    ")
		switch {
		case !ok, strings.HasPrefix(command, "npm install"), strings.HasPrefix(command, "go mod tidy"):
		case strings.Contains(command, "grapnel plugin check") && !hasCommand("plugin", "check"):
		default:
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	if len(commands) < 2 {
		t.Fatalf("the README has the commands %q", commands)
	}
	return commands
}

func hasCommand(words ...string) bool {
	c, _, err := (&app{}).root().Find(words)
	return err == nil && c.Name() == words[len(words)-1]
}

// shell runs a command in a directory, as a person would. A denied call is exit code 1.
func shell(t *testing.T, dir, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	denied := strings.Contains(string(out), "decision: deny")
	exit, ended := errors.AsType[*exec.ExitError](err)
	if err != nil && (!denied || !ended || exit.ExitCode() != exitNo) {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}
