package settings_test

import (
	"fmt"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/settings"
)

func Example() {
	config, err := settings.Parse([]byte(`{"fallback_names": ["CLAUDE.md"], "budget": {"total": 65536}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	environment := map[string]string{"HOME": "/u/ada", "GRAPNEL_AGENTS_PRESET": "codex"}
	s, err := settings.New(config, func(name string) string { return environment[name] }, settings.Config{Trust: chain.TrustNone})
	if err != nil {
		fmt.Println(err)
		return
	}
	o := s.Options
	fmt.Println(o.Preset, o.Names, o.FallbackNames, o.GlobalDir, o.Budget.Total, o.Trust)

	_, err = settings.Parse([]byte(`{"preset": "codx"}`))
	fmt.Println(err)
	// Output:
	// codex [AGENTS.override.md AGENTS.md] [CLAUDE.md] /u/ada/.codex 65536 none
	// /preset: unknown word "codx", want one of default, codex, codelia, claude, gemini, opencode, cursor (did you mean "codex"?)
}
