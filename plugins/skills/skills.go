package skills

import (
	"context"
	_ "embed" // for the schema
	"os"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/skills/skillset"
	"github.com/grapnelhq/grapnel/sdk"
)

// priority is what the plugin proposes for its section: below the instructions
// of the tree (600), because a skill can still be read when its line is cut.
const priority = 400

// configSchema is the JSON Schema of [Config].
//
//go:embed schema.json
var configSchema []byte

// New returns the plugin. It reads the machine's files and, for folders below
// "~/", the process's environment.
func New() *sdk.Plugin { return newPlugin(os.Getenv, time.Now) }

// newPlugin is New with its powers given as values. The clock is compared with
// the times of files and with nothing else.
func newPlugin(getenv func(string) string, now func() time.Time) *sdk.Plugin {
	return &sdk.Plugin{
		Name:         "skills",
		Version:      "0.1.0",
		Doc:          "Lists the skills of the working folder, and lets the model read them.",
		ConfigSchema: configSchema,
		OnConfigure: func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
			cfg, err := ParseConfig(c.Config)
			if err != nil {
				return sdk.Setup{}, err
			}
			settings, err := cfg.Settings(getenv)
			if err != nil {
				return sdk.Setup{}, err
			}
			s := &skills{library: newLibrary(skillset.OS{}, settings.Options, now), settings: settings}
			return sdk.Setup{Hooks: s.hooks(), Tools: []sdk.Tool{{Tool: toolDefinition(), Call: s.read}}}, nil
		},
	}
}

// skills is the plugin under one configuration. It is safe for concurrent use.
type skills struct {
	library  *library
	settings Settings
	trails   trails
}

// hooks are the subscriptions. Nothing is lost for good when one of them fails,
// so none fails a phase.
func (s *skills) hooks() []sdk.Hook {
	hooks := []sdk.Hook{
		{
			Name:       "tool",
			Visibility: phases.VisibilityUserAudit,
			Doc:        "offers read_skill where there are skills",
			Kinds:      []phases.Kind{phases.KindToolBundle},
			Idempotent: true,
			Needs:      []string{"tool_calling"},
			PreTools:   s.offer,
		},
		{
			Name:             "section",
			Visibility:       phases.VisibilityUserAudit,
			Doc:              "lists the skills, with the full text of those whose paths match",
			Kinds:            []phases.Kind{phases.KindPromptSection},
			Priority:         priority,
			Idempotent:       true,
			Needs:            []string{"tool_calling", "available_tools"},
			Budget:           phases.TextBudget{Chars: s.settings.MaxChars},
			PrePromptCompile: s.answer,
		},
	}
	if s.settings.MaxActiveBodies == 0 {
		return hooks // then nothing depends on what is touched
	}
	return append(hooks,
		sdk.Hook{
			Name: "touching", Doc: "remembers the paths that a tool call is about", Idempotent: true, Visibility: phases.VisibilityUserAudit, Needs: []string{"touched_paths"},
			ToolPreCall: func(_ context.Context, call *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
				s.trails.add(&call.Context, in.TouchedPaths)
				return nil, nil
			},
		},
		sdk.Hook{
			Name: "touched", Doc: "remembers the paths that a tool call has touched", Idempotent: true, Visibility: phases.VisibilityUserAudit, Needs: []string{"touched_paths"},
			ToolPostCall: func(_ context.Context, call *sdk.Call, in *phases.ToolPostCallInput) ([]phases.Contribution, error) {
				s.trails.add(&call.Context, in.TouchedPaths)
				return nil, nil
			},
		},
	)
}

// active reports whether the context's prompt has a place for skills: profiles
// below full leave the section out, and a tool without its list helps nobody.
func active(c *phases.Context) bool {
	return c.Profile != phases.ProfileMinimal && c.Profile != phases.ProfileNone
}
