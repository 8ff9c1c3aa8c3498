//go:build unix

package commandhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// places are where each agent has a project's hooks.
func place(format string) string {
	return map[string]string{
		"claude": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json",
		"copilot": ".github/hooks/guard.json", "cursor": ".cursor/hooks.json",
	}[format]
}

// one is a hooks file with one hook, in the shape of its agent.
func one(t *testing.T, format, event, command string, more map[string]any) string {
	t.Helper()
	h := map[string]any{"type": "command", "command": command}
	maps.Copy(h, more)
	var entry any = h
	if format != "copilot" && format != "cursor" {
		entry = map[string]any{"hooks": []any{h}}
	}
	data, err := json.Marshal(map[string]any{"version": 1, "hooks": map[string]any{event: []any{entry}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// project is a project with a hooks file, and the plugin that runs its scripts.
type project struct {
	plugin *sdk.Plugin
	hooks  []phases.Hook
	dir    string
}

// newProject configures the plugin for a hooks file. Where cfg has rewrites, the file's first hook may rewrite.
func newProject(t testing.TB, format, content string, cfg map[string]any) *project {
	t.Helper()
	p := &project{plugin: New(), dir: t.TempDir()}
	file := filepath.Join(p.dir, place(format))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
	all := map[string]any{"format": format, "files": []string{file}}
	if maps.Copy(all, cfg); all["rewrites"] != nil {
		parsed, err := readFile(format, file)
		if err != nil {
			t.Fatal(err)
		}
		all["rewrites"] = []string{parsed.Hooks[0].ID}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	d, err := p.plugin.Configure(t.Context(), &phases.Configuration{Instance: "commandhooks", Config: raw})
	if err != nil {
		t.Fatal(err)
	}
	p.hooks = d.Hooks
	t.Cleanup(func() {
		if err := p.plugin.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestNothingIsLeft: the file that stands for a transcript ends with the plugin.
func TestNothingIsLeft(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p := newProject(t, "claude", `{"hooks":{}}`, nil)
	files := func() int { list, _ := os.ReadDir(os.Getenv("TMPDIR")); return len(list) }
	before := files()
	if err := p.plugin.Close(t.Context()); err != nil || before != 1 || files() != 0 {
		t.Errorf("%d files before Close, %d after it: %v", before, files(), err)
	}
}

// dispatch calls the hook of a phase; there is one.
func (p *project) dispatch(ctx context.Context, t testing.TB, in phases.Input) ([]phases.Contribution, error) {
	t.Helper()
	for _, h := range p.hooks {
		if h.Phase != phases.PhaseOf(in) {
			continue
		}
		res, err := p.plugin.Dispatch(ctx, &phases.Dispatch{
			Subscription: "commandhooks." + h.Name, Hook: h.Name, Phase: h.Phase, Input: in, IdempotencyKey: "k",
			Context: phases.Context{WorkspaceID: "w", SessionID: "s", TurnID: "t", Dir: p.dir, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		})
		if err != nil {
			return nil, err
		}
		return res.Contributions, nil
	}
	t.Fatalf("no hook of %s in %+v", phases.PhaseOf(in), p.hooks)
	return nil, nil
}

// shown dispatches, and shows what came of it.
func (p *project) shown(t testing.TB, in phases.Input) string {
	t.Helper()
	return shown(p.dispatch(t.Context(), t, in))
}

// shown is an answer in one line: "deny no rm", "context …", "failure CODE".
func shown(cs []phases.Contribution, err error) string {
	if failure, ok := errors.AsType[*phases.Error](err); ok {
		return "failure " + failure.PluginCode
	}
	if err != nil {
		return "error " + err.Error()
	}
	var words []string
	for _, c := range cs {
		switch c := c.(type) {
		case *phases.Decision:
			words = append(words, strings.TrimSpace(fmt.Sprintf("%s %s", c.Verdict, c.Reason)))
		case *phases.Rewrite:
			words = append(words, "rewrite "+string(c.Value))
		case *phases.Reminder:
			words = append(words, "reminder "+c.Text)
		case *phases.PromptContext:
			words = append(words, "context "+c.Content)
		case *phases.ManifestDiagnostic:
			words = append(words, c.Code+" "+c.Message)
		default:
			words = append(words, fmt.Sprintf("%T", c))
		}
	}
	return strings.Join(words, " | ")
}

// inputs of phases, as an agent's events give them.
func bash(command string) *phases.ToolPreCallInput {
	return &phases.ToolPreCallInput{Tool: "Bash", Arguments: json.RawMessage(fmt.Sprintf(`{"command":%q}`, command))}
}

func ran(result string) *phases.ToolPostCallInput {
	return &phases.ToolPostCallInput{Tool: "Bash", Arguments: json.RawMessage(`{"command":"make"}`), Result: phases.NewPreview(result, 1000), Outcome: "ok"}
}

func said(text string) *phases.PrePolicyInput {
	return &phases.PrePolicyInput{UserText: phases.T(text)}
}

func finished(text string, forced int) *phases.PreEndInput {
	return &phases.PreEndInput{Text: phases.T(text), Forced: forced}
}
