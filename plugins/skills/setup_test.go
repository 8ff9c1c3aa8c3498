package skills

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

var build = agentsdoctest.Build

func write(tb testing.TB, path, text string) {
	tb.Helper()
	agentsdoctest.Put(tb, "", path, text)
}

// skill is a SKILL.md with globs, if any, and a body.
func skill(name, paths, body string) string {
	if paths != "" {
		paths = fmt.Sprintf("paths: %q\n", paths)
	}
	return fmt.Sprintf("---\nname: %s\ndescription: About %s.\n%s---\n%s\n", name, name, paths, body)
}

// project is a tree of skills: slug to globs and body, with a "|" between.
func project(tb testing.TB, list map[string]string) string {
	tb.Helper()
	tree := map[string]string{".git/HEAD": ""}
	for slug, text := range list {
		paths, body, _ := strings.Cut(text, "|")
		tree[".agents/skills/"+slug+"/SKILL.md"] = skill(slug, paths, body)
	}
	return build(tb, tree)
}

// later is a clock for which every file is old.
func later() time.Time { return time.Now().Add(time.Hour) }

// environment is a getenv of a map.
func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// configured returns a plugin with a configuration in force.
func configured(tb testing.TB, config string) *sdk.Plugin {
	tb.Helper()
	p := newPlugin(environment(nil), later)
	if _, err := p.Configure(tb.Context(), &phases.Configuration{Instance: "skills", Config: json.RawMessage(config)}); err != nil {
		tb.Fatal(err)
	}
	return p
}

// inDir is a context of a thread in a directory.
func inDir(dir string) phases.Context {
	return phases.Context{WorkspaceID: "w", ThreadID: "t", SessionID: "s", Dir: dir}
}

// calling is the input of a turn whose model can call read_skill.
func calling() *phases.PrePromptCompileInput {
	return &phases.PrePromptCompileInput{ToolCalling: true, AvailableTools: []string{toolName}}
}

// ask dispatches one hook.
func ask(tb testing.TB, p *sdk.Plugin, d phases.Dispatch) []phases.Contribution {
	tb.Helper()
	d.Subscription, d.Phase = "skills."+d.Hook, phases.PhaseOf(d.Input)
	res, err := p.Dispatch(tb.Context(), &d)
	if err != nil {
		tb.Fatal(err)
	}
	return res.Contributions
}

// sections asks for the section's fragments.
func sections(tb testing.TB, p *sdk.Plugin, where phases.Context, room int) []*phases.PromptSection {
	tb.Helper()
	var out []*phases.PromptSection
	for _, c := range ask(tb, p, phases.Dispatch{Hook: "section", Context: where, Input: calling(), Budget: phases.AnswerBudget{MaxChars: room}}) {
		if s, ok := c.(*phases.PromptSection); ok {
			out = append(out, s)
		}
	}
	return out
}

// ids are the ids of contributions.
func ids(list []*phases.PromptSection) []string {
	var out []string
	for _, s := range list {
		out = append(out, s.ContributionID)
	}
	return out
}

// touch reports touched paths as a host does behind a tool call.
func touch(tb testing.TB, p *sdk.Plugin, where phases.Context, paths ...string) {
	tb.Helper()
	if got := ask(tb, p, phases.Dispatch{Hook: "touched", Context: where, Input: &phases.ToolPostCallInput{Tool: "edit", TouchedPaths: paths}}); len(got) > 0 {
		tb.Fatalf("a listener contributes %v", got)
	}
}

// readSkill calls the tool and returns its text.
func readSkill(tb testing.TB, p *sdk.Plugin, where phases.Context, arguments string) (text string, isError bool) {
	tb.Helper()
	res, err := p.CallTool(tb.Context(), &phases.ToolCall{Tool: toolName, Arguments: json.RawMessage(arguments), Context: where})
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(res.Content, &text); err != nil {
		tb.Fatal(err)
	}
	return text, res.IsError
}
