package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/builtin"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc"
	"github.com/grapnelhq/grapnel/plugins/scripted"
)

const runMain = "RUN_EXAMPLE"

// TestMain makes this test binary three programs: the tests, the example, and its plugins.
func TestMain(m *testing.M) {
	builtin.Main(agentsdoc.New, scripted.New)
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestExample(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	if err := os.WriteFile(dir+"/AGENTS.md", []byte("Answer in whole sentences.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Dir, cmd.Env = dir, append(os.Environ(), runMain+"=1")
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"section agents_md", "from agentsdoc", "tool.pre_call shell: deny", "used 310 tokens", "model: I was told: the call of the tool \"shell\" was refused by house.guard: no shell here"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, the output lacks %q:\n%s", err, want, out)
		}
	}
}
