package skills_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/skills"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// TestMain makes the test binary also the plugin that these tests start.
func TestMain(m *testing.M) {
	serve.Builtins(skills.New)
	goleak.VerifyTestMain(m)
}

// documented is the first fenced block of a language in docs/SKILLS.md, so that
// what people copy is what is tested.
func documented(t *testing.T, lang string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "SKILLS.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(data), "\n```"+lang+"\n")
	block, _, closed := strings.Cut(rest, "\n```\n")
	if !found || !closed {
		t.Fatalf("docs/SKILLS.md has no block of %s", lang)
	}
	return block + "\n"
}

// engine starts the plugin as a process.
func engine(t *testing.T, text string) *runtime.Engine {
	t.Helper()
	// A socket needs a short path.
	dir, err := os.MkdirTemp("", "sk") //nolint:usetesting // the test's own directory has a long name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // only litter in a temporary directory
	t.Setenv("XDG_RUNTIME_DIR", dir)
	launches, err := serve.Plugins{skills.New}.Launches()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Loader{}.Parse([]byte(text), "grapnel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	eng, err := runtime.New(t.Context(), cfg, runtime.Options{Builtins: launches})
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

// tree is a project with two skills.
func tree(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		".git/HEAD":                           "",
		".agents/skills/release/SKILL.md":     documented(t, "markdown"),
		".agents/skills/release/steps.md":     "1. Tag.\n",
		".agents/skills/go-style/SKILL.md":    "---\nname: go-style\ndescription: How Go is written here.\npaths: '**/*.go'\n---\nWrite short functions.\n",
		".agents/skills/go-style/scripts/run": "exit 0\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// call calls read_skill in a turn and returns its text.
func call(t *testing.T, turn *runtime.Turn, arguments string) (text string, isError bool) {
	t.Helper()
	res, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "read_skill", Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(res.Content, &text); err != nil {
		t.Fatal(err)
	}
	return text, res.IsError
}

// prompt prepares a turn as a host does and compiles its prompt.
func prompt(t *testing.T, turn *runtime.Turn) *runtime.Compiled {
	t.Helper()
	if _, err := turn.Dispatch(t.Context(), &phases.PreToolsInput{ToolCalling: true}); err != nil {
		t.Fatal(err)
	}
	done, err := turn.Compile(t.Context(), runtime.CompileInput{ToolCalling: true})
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// TestTurns runs two turns of one thread with the plugin as a real process: the
// list and the tool, calls of the tool, and the full text after a touched path.
// Not parallel: engine sets a variable of the environment.
func TestTurns(t *testing.T) {
	eng, dir := engine(t, documented(t, "yaml")), tree(t)
	where := phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", SessionID: "s", Dir: dir}
	turn, err := eng.BeginTurn(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	first := prompt(t, turn)
	if len(first.Tools) != 1 || first.Tools[0].Name != "read_skill" {
		t.Fatalf("tools %+v", first.Tools)
	}
	for _, want := range []string{
		"## Skills Runtime\n\nSkills are", "\n- go-style: How Go is written here.\n- release: Cuts a release of this project. Use when", "call the tool read_skill",
	} {
		if !strings.Contains(first.Prompt.FullText, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, first.Prompt.FullText)
		}
	}
	if text, isError := call(t, turn, `{"slug":"release"}`); isError || !strings.HasSuffix(text, "with the version.") {
		t.Errorf("the skill: %q", text)
	}
	if text, isError := call(t, turn, `{"slug":"release","file":"steps.md"}`); isError || text != "1. Tag.\n" {
		t.Errorf("its file: %q", text)
	}
	if text, isError := call(t, turn, `{"slug":"relase"}`); !isError || !strings.Contains(text, `did you mean "release"?`) {
		t.Errorf("a near miss: %q", text)
	}
	if _, err := turn.Dispatch(t.Context(), &phases.ToolPostCallInput{Tool: "edit", TouchedPaths: []string{"cmd/main.go"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := turn.End(t.Context(), nil); err != nil {
		t.Fatal(err)
	}

	where.TurnID = "2"
	turn, err = eng.BeginTurn(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	second := prompt(t, turn)
	if want := "<SKILL>\nWrite short functions.\n</SKILL>"; !strings.Contains(second.Prompt.FullText, want) || strings.Contains(first.Prompt.FullText, want) {
		t.Errorf("the full text of go-style: in the second prompt only, but it is\n%s", second.Prompt.FullText)
	}
	if first.Manifest.FingerprintTools != second.Manifest.FingerprintTools {
		t.Error("the tools changed")
	}
	for _, s := range second.Manifest.Sections {
		if s.SectionID == "skills_runtime" && (s.Owner != "skills" || len(s.SourceRefs) != 3) {
			t.Errorf("section %+v", s)
		}
	}
	if _, err := turn.End(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if len(second.Diagnostics) > 0 {
		t.Errorf("diagnostics %+v", second.Diagnostics)
	}
}
