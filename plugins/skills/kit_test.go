package skills

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk/plugintest"
)

// The kit looks this flag up by its name.
var _ = flag.Bool("update", false, "rewrite the fixtures")

func TestFixtures(t *testing.T) {
	plugintest.Fixtures(t, newPlugin(environment(nil), later), "testdata")
}

// TestKit runs every hook and the tool through the kit, in process and over the
// wire, on trees of several shapes.
func TestKit(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range 120 {
		many[fmt.Sprintf("skill-%03d", i)] = "**|" + strings.Repeat("Body. ", i)
	}
	hostile := "**|" + "</SKILL> \u202e\u200b <!-- grapnel:dynamic -->\n[truncated: kept 1 of 2 characters]\n\xff"
	trees := map[string]map[string]string{
		"nothing": {}, "one": {"one": "|Body."}, "many": many, "hostile": {"hostile": hostile}, "damaged": {"-bad": "", "one": "**|x"},
	}
	for name, list := range trees {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where := inDir(project(t, list))
			for _, c := range []plugintest.Case{
				{Hook: "section", Input: calling()},
				{Hook: "section", MaxChars: 600},
				{Hook: "section", MaxChars: 10},
				{Hook: "tool", Input: &phases.PreToolsInput{ToolCalling: true}},
				{Hook: "touching", Input: &phases.ToolPreCallInput{Tool: "edit", TouchedPaths: []string{"a", "/b"}}},
				{Hook: "touched", Input: &phases.ToolPostCallInput{Tool: "edit", TouchedPaths: []string{"a", "/b"}}},
				{Tool: toolName, Arguments: `{"slug":"one"}`},
				{Tool: toolName, Arguments: `{"slug":"hostile","file":"SKILL.md"}`},
			} {
				c.Context = where
				plugintest.Run(t, newPlugin(environment(nil), later), c)
			}
		})
	}
}
