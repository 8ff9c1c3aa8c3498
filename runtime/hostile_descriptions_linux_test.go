package runtime_test

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
)

// wireDescriptions change a description with good hooks; each still fits into a frame.
func wireDescriptions() map[string]func(*pluginpb.Description) {
	return map[string]func(*pluginpb.Description){
		"many-hooks": func(d *pluginpb.Description) { d.Hooks = slices.Repeat(d.GetHooks(), 60_000) },
		"long-name": func(d *pluginpb.Description) {
			d.Name = strings.Repeat("n", 1_000_000)
			d.Hooks[0].Name = d.GetName()
		},
		"some-tags": func(d *pluginpb.Description) { last(d).Cache = &pluginpb.Cache{Tags: manyWords("tag%d", 256)} }, // for attacks with them later
		"controls":  func(d *pluginpb.Description) { d.Name, d.Version, d.Hooks[0].Doc = "\x1b[2J", "\x07\r\n", "\u009b" },
		"no-name":   func(d *pluginpb.Description) { d.Name, d.Version, d.Hooks[0].Name = "", "", "" },
		"many-tools": func(d *pluginpb.Description) {
			for _, name := range manyWords("t%d", 30_000) {
				d.Tools = append(d.Tools, &pluginpb.Tool{Name: name, InputSchemaJson: []byte("{}")})
			}
		},
		"deep-tool-schema": func(d *pluginpb.Description) {
			d.Tools = []*pluginpb.Tool{{Name: "t", InputSchemaJson: []byte(nestJSON(`{"not":`, 500_000))}}
		},
		"least-limits": func(d *pluginpb.Description) { setLimits(d, math.MinInt64) },
		"most-limits":  func(d *pluginpb.Description) { setLimits(d, math.MaxInt64) },
		"many-after":   func(d *pluginpb.Description) { d.Hooks[0].After = manyWords("bad.h%d", 180_000) },
		"many-needs":   func(d *pluginpb.Description) { d.Hooks[0].Needs = manyWords("section%d", 180_000) },
		"many-tags":    func(d *pluginpb.Description) { last(d).Cache = &pluginpb.Cache{Tags: manyWords("tag%d", 180_000)} },
		"many-causes": func(d *pluginpb.Description) {
			causes := map[string]string{}
			for _, w := range manyWords("timeou%d", 60_000) {
				causes[w] = "best_effort"
			}
			d.Hooks[0].OnFailure = &pluginpb.OnFailure{ByCause: causes}
		},
		"many-fallbacks": func(d *pluginpb.Description) {
			d.Hooks[0].OnFailure = &pluginpb.OnFailure{Default: "fallback"}
			d.Hooks[0].Fallback = slices.Repeat([]*pluginpb.Contribution{ofSection(&pluginpb.PromptSection{SectionId: "bad", Content: "x"})}, 30_000)
		},
		// What costs more than it is long; internal/configschema and internal/cond know more of it.
		"schema-patterns": func(d *pluginpb.Description) {
			d.ConfigSchemaJson = []byte(`{"oneOf":[` + strings.Repeat(`{"pattern":"\\pL{1000}"},`, 100_000) + `{}]}`)
		},
		"schema-cycle": func(d *pluginpb.Description) {
			d.ConfigSchemaJson = []byte(`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`)
		},
		"when-loops": func(d *pluginpb.Description) { d.Hooks[0].When = `all(1..1000, any(1..1000, all(1..1000, true)))` },
	}
}

// last is the hook "sections".
func last(d *pluginpb.Description) *pluginpb.Hook { return d.GetHooks()[len(d.GetHooks())-1] }

// setLimits puts a number in each place that has one.
func setLimits(d *pluginpb.Description, n int64) {
	d.Limits = &pluginpb.PluginLimits{Concurrency: n}
	h := d.GetHooks()[0]
	h.Priority, h.TimeoutNs, h.Idempotent = n, n, true
	h.Retry = &pluginpb.Retry{Attempts: n, BackoffNs: n}
	h.Budget, h.Cache = &pluginpb.TextBudget{Chars: n, Tokens: n}, &pluginpb.Cache{TtlNs: n}
}

func nestJSON(open string, depth int) string {
	return strings.Repeat(open, depth) + "{}" + strings.Repeat("}", depth)
}

func manyWords(format string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	return all
}
