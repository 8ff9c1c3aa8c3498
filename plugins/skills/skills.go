// Package skills is the skills plugin: it lists for the model the skills that apply (directories with a SKILL.md, in
// the open Agent Skills layout), and returns their text when the model asks. It runs nothing: what a skill's text
// says is for the model, under the host's rules for tools. Package skillset finds and reads skills.
//
// The hook "tool" offers read_skill where tools can be called and there are skills; the tool is always the same
// bytes, because it stands first in what providers cache. The hook "section" writes the section skills_runtime: a
// line with slug and description per skill, sorted, and then the full text of up to max_active_bodies skills whose
// paths match what the session works on. The hooks "touching" and "touched" remember touched paths for that.
//
// The list depends only on the files and the text budget, and full texts are appended in the order of their first
// match: an unchanged session gives the same bytes turn after turn, and a newly touched file changes only the end of
// the section.
//
// Stability: experimental until 1.0.
package skills

import (
	"context"
	_ "embed" // for the schema
	"os"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// priority is below the instructions of the tree (600): a skill can still be read when its line is cut.
const priority = 400

// configSchema is the JSON Schema of [config].
//
//go:embed schema.json
var configSchema []byte

// New returns the plugin. It reads the machine's files, and the variable HOME.
func New() *sdk.Plugin { return newPlugin(os.Getenv, time.Now) }

// newPlugin is New with its powers as values. The clock is compared only with the times of files.
func newPlugin(getenv func(string) string, now func() time.Time) *sdk.Plugin {
	return &sdk.Plugin{
		Name:         "skills",
		Version:      "0.1.0",
		Doc:          "Lists the skills of the working directory, and lets the model read them.",
		ConfigSchema: configSchema,
		OnConfigure: func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
			cfg, err := parseConfig(c.Config)
			if err != nil {
				return sdk.Setup{}, err
			}
			options, err := cfg.options(getenv)
			if err != nil {
				return sdk.Setup{}, err
			}
			given := func(agent string) []string { return cfg.given(agent, getenv) }
			s := &skills{config: cfg, library: library{options: options, given: given, now: now}}
			return sdk.Setup{Hooks: s.hooks(), Tools: []sdk.Tool{{Tool: toolDefinition(), Call: s.read}}}, nil
		},
	}
}

// skills is the plugin under one configuration. It is safe for concurrent use.
type skills struct {
	config  config
	library library
	trails  trails
}

// hooks are the subscriptions. None of them fails a phase.
func (s *skills) hooks() []sdk.Hook {
	hooks := []sdk.Hook{
		{
			Name: "tool", Doc: "offers read_skill where there are skills",
			Kinds: []phases.Kind{phases.KindToolBundle}, Needs: []string{"tool_calling"}, PreTools: s.offer,
		},
		{
			Name: "section", Doc: "lists the skills, with the full text of those whose paths match",
			Kinds: []phases.Kind{phases.KindPromptSection}, Priority: priority, Needs: []string{"tool_calling", "available_tools"},
			Budget: phases.TextBudget{Chars: s.config.MaxChars}, PrePromptCompile: s.answer,
		},
		{
			Name: "touching", Doc: "remembers the paths that a tool call is about", Needs: []string{"touched_paths"},
			ToolPreCall: func(_ context.Context, call *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
				s.trails.add(&call.Context, in.TouchedPaths)
				return nil, nil
			},
		},
		{
			Name: "touched", Doc: "remembers the paths that a tool call has touched", Needs: []string{"touched_paths"},
			ToolPostCall: func(_ context.Context, call *sdk.Call, in *phases.ToolPostCallInput) ([]phases.Contribution, error) {
				s.trails.add(&call.Context, in.TouchedPaths)
				return nil, nil
			},
		},
	}
	if s.config.MaxActiveBodies == 0 {
		hooks = hooks[:2] // nothing depends on what is touched
	}
	for i := range hooks {
		hooks[i].Idempotent, hooks[i].Visibility = true, phases.VisibilityUserAudit
	}
	return hooks
}

// active reports whether the prompt has a place for skills: profiles below full omit the section.
func active(c *phases.Context) bool {
	return c.Profile != phases.ProfileMinimal && c.Profile != phases.ProfileNone
}
