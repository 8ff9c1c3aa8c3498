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
	all := map[string]func(*pluginpb.Description){
		"many-hooks":      func(d *pluginpb.Description) { d.Hooks = slices.Repeat(d.GetHooks(), 60_000) },
		"duplicate-hooks": func(d *pluginpb.Description) { d.Hooks = slices.Repeat(d.GetHooks(), 256) },
		"long-name": func(d *pluginpb.Description) {
			d.Name = strings.Repeat("n", 1_000_000)
			d.Hooks[0].Name = d.GetName()
		},
		// For attacks with the tags later.
		"some-tags": func(d *pluginpb.Description) {
			cache := &pluginpb.Cache{}
			for i := range 256 {
				cache.Tags = append(cache.Tags, fmt.Sprintf("tag%d", i))
			}
			d.Hooks[len(d.GetHooks())-1].Cache = cache
		},
		"controls": func(d *pluginpb.Description) { d.Name, d.Version, d.Hooks[0].Doc = "\x1b[2J", "\x07\r\n", "\u009b" },
		"no-name":  func(d *pluginpb.Description) { d.Name, d.Version, d.Hooks[0].Name = "", "", "" },
		"many-tools": func(d *pluginpb.Description) {
			for i := range 30_000 {
				d.Tools = append(d.Tools, &pluginpb.Tool{Name: fmt.Sprintf("t%d", i), InputSchemaJson: []byte("{}")})
			}
		},
		"deep-tool-schema": func(d *pluginpb.Description) {
			d.Tools = []*pluginpb.Tool{{Name: "t", InputSchemaJson: []byte(nestJSON(`{"not":`, 500_000))}}
		},
		"extreme-limits": func(d *pluginpb.Description) {
			d.Limits = &pluginpb.PluginLimits{Concurrency: math.MinInt64}
			h := d.GetHooks()[0]
			h.Priority, h.TimeoutNs, h.Idempotent = math.MinInt64, math.MinInt64, true
			h.Retry = &pluginpb.Retry{Attempts: math.MaxInt64, BackoffNs: math.MinInt64}
			h.Budget, h.Cache = &pluginpb.TextBudget{Chars: math.MinInt64, Tokens: math.MinInt64}, &pluginpb.Cache{TtlNs: math.MinInt64}
		},
		"other-extreme": func(d *pluginpb.Description) {
			d.Limits = &pluginpb.PluginLimits{Concurrency: math.MaxInt64}
			h := d.GetHooks()[0]
			h.Priority, h.TimeoutNs, h.Idempotent = math.MaxInt64, math.MaxInt64, true
			h.Retry = &pluginpb.Retry{Attempts: 10, BackoffNs: math.MaxInt64}
			h.Budget, h.Cache = &pluginpb.TextBudget{Chars: math.MaxInt64, Tokens: math.MaxInt64}, &pluginpb.Cache{TtlNs: math.MaxInt64}
		},
	}
	for name, schema := range costlySchemas() {
		all["schema-"+name] = func(d *pluginpb.Description) { d.ConfigSchemaJson = []byte(schema()) }
	}
	for name, when := range costlyConditions() {
		all["when-"+name] = func(d *pluginpb.Description) { d.Hooks[0].When = when }
	}
	for name, change := range wireLists() {
		all["many-"+name] = func(d *pluginpb.Description) { change(d, d.GetHooks()[0]) }
	}
	return all
}

func nestJSON(open string, depth int) string {
	return strings.Repeat(open, depth) + "{}" + strings.Repeat("}", depth)
}

// manyWords are as many short words as fit into a frame.
func manyWords(format string) []string {
	all := make([]string, 180_000)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	return all
}

func wireLists() map[string]func(*pluginpb.Description, *pluginpb.Hook) {
	return map[string]func(*pluginpb.Description, *pluginpb.Hook){
		"after":    func(_ *pluginpb.Description, h *pluginpb.Hook) { h.After = manyWords("bad.h%d") },
		"optional": func(_ *pluginpb.Description, h *pluginpb.Hook) { h.Before = manyWords("bad.h%d?") },
		"kinds":    func(_ *pluginpb.Description, h *pluginpb.Hook) { h.Kinds = manyWords("prompt_%d") },
		"needs":    func(_ *pluginpb.Description, h *pluginpb.Hook) { h.Needs = manyWords("section%d") },
		"requires": func(d *pluginpb.Description, _ *pluginpb.Hook) { d.Requires = manyWords("tool%d") },
		"vary": func(d *pluginpb.Description, _ *pluginpb.Hook) {
			d.Hooks[len(d.GetHooks())-1].Cache = &pluginpb.Cache{Vary: manyWords("thread_i%d")}
		},
		"tags": func(d *pluginpb.Description, _ *pluginpb.Hook) {
			d.Hooks[len(d.GetHooks())-1].Cache = &pluginpb.Cache{Tags: manyWords("tag%d")}
		},
		"causes": func(_ *pluginpb.Description, h *pluginpb.Hook) {
			h.OnFailure = &pluginpb.OnFailure{ByCause: map[string]string{}}
			for _, w := range manyWords("timeou%d")[:60_000] {
				h.OnFailure.ByCause[w] = "best_effort"
			}
		},
		"fallbacks": func(_ *pluginpb.Description, h *pluginpb.Hook) {
			h.OnFailure = &pluginpb.OnFailure{Default: "fallback"}
			h.Fallback = slices.Repeat([]*pluginpb.Contribution{{Kind: &pluginpb.Contribution_PromptSection{
				PromptSection: &pluginpb.PromptSection{SectionId: "bad", Content: "x"},
			}}}, 30_000)
		},
	}
}

// costlySchemas are JSON Schemas that cost far more than they are long.
func costlySchemas() map[string]func() string {
	list := func(head, item string, n int) func() string {
		return func() string { return head + strings.Repeat(item+",", n) + item + "]}" }
	}
	return map[string]func() string{
		"deep":              func() string { return nestJSON(`{"not":`, 500_000) },
		"wide":              list(`{"anyOf":[`, `{}`, 1_000_000),
		"enum":              list(`{"enum":[`, `0`, 1_500_000),
		"patterns":          list(`{"oneOf":[`, `{"pattern":"\\pL{1000}"}`, 6_000),
		"patterns-in-frame": list(`{"oneOf":[`, `{"pattern":"\\pL{1000}"}`, 100_000),
		"long-patterns":     list(`{"oneOf":[`, `{"pattern":"(`+strings.Repeat("[a-z0-9]", 2000)+`){1000}"}`, 14),
		"cycle": func() string {
			return `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`
		},
		"itself": func() string { return `{"allOf":[{"$ref":"#"}]}` },
		"chain": func() string {
			var b strings.Builder
			b.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
			for i := range 60_000 {
				fmt.Fprintf(&b, `"a%d":{"$ref":"#/$defs/a%d"},`, i, i+1)
			}
			return b.String() + `"a60000":{}}}`
		},
		"doubling": func() string {
			var b strings.Builder
			b.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
			for i := range 60 {
				fmt.Fprintf(&b, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
			}
			return b.String() + `"a60":{}}}`
		},
		"elsewhere": func() string { return `{"$ref":"file:///etc/passwd"}` },
		"not-json":  func() string { return "{" },
	}
}

// costlyConditions cost more than they are long.
func costlyConditions() map[string]string {
	return map[string]string{
		"long":   strings.Repeat("true && ", 100_000) + "true",
		"deep":   strings.Repeat("(", 2000) + "true" + strings.Repeat(")", 2000),
		"not":    strings.Repeat("!", 4000) + "true",
		"regexp": `mode matches "(` + strings.Repeat("[a-z]", 500) + `){1000}"`,
		"loops":  `all(1..1000, any(1..1000, all(1..1000, true)))`,
		"power":  `2 ** 2 ** 2 ** 2 ** 2 ** 2 > 0`,
		"repeat": `len(repeat("x", 1000000000)) > 0`,
	}
}
