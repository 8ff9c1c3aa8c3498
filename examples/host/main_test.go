package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/sdk/serve"
)

// runMain is set in the environment of the process that is the example.
const runMain = "RUN_EXAMPLE_HOST"

// TestMain makes this test binary three programs: the tests, the example, and
// the plugins that the example starts from its own binary.
func TestMain(m *testing.M) {
	serve.Builtins(shipped()...)
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// want is what the three turns print; sizes and fingerprints are replaced by #,
// because the date is in the prompt.
const want = `turn 1, round 0: 5 sections, # characters, 1 tools, xxh64:#
  identity         stable    from builtin
  safety           stable    from builtin
  agents_md        dynamic   from agentsdoc
  house_rules      dynamic   from house
  extra_system     dynamic   from builtin
  model: I read # characters of instructions.
turn 2, round 0: 5 sections, # characters, 1 tools, xxh64:#
  identity         stable    from builtin
  safety           stable    from builtin
  agents_md        dynamic   from agentsdoc
  house_rules      dynamic   from house
  extra_system     dynamic   from builtin
  tool shell: the call of the tool "shell" was refused by house.guard: no shell here
turn 2, round 1: 5 sections, # characters, 1 tools, xxh64:#
  identity         stable    from builtin
  safety           stable    from builtin
  agents_md        dynamic   from agentsdoc
  house_rules      dynamic   from house
  extra_system     dynamic   from builtin
  model: I may not do that.
turn 3, round 0: 5 sections, # characters, 1 tools, xxh64:#
  identity         stable    from builtin
  safety           stable    from builtin
  agents_md        dynamic   from agentsdoc
  house_rules      dynamic   from house
  extra_system     dynamic   from builtin
  model: I read # characters of instructions.
`

func TestThreeTurns(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte("Answer in whole sentences.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--dir", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), runMain+"=1", "XDG_CONFIG_HOME="+t.TempDir())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("host: %v\n%s", err, &stderr)
	}
	masked := regexp.MustCompile(`\b\d+ characters|xxh64:[0-9a-f]{16}`).ReplaceAllStringFunc(string(out), func(s string) string {
		if strings.HasPrefix(s, "xxh64:") {
			return "xxh64:#"
		}
		return "# characters"
	})
	if diff := cmp.Diff(masked, want); diff != "" {
		t.Errorf("output (-got +want):\n%s", diff)
	}
}
