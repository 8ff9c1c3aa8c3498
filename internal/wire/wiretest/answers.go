package wiretest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
)

// Answers lists what [Answer] makes.
func Answers() []string { return slices.Sorted(maps.Keys(answers())) }

// Answer is a Result of many contributions, or of one, that costs its reader much.
func Answer(name string, id, incarnation uint64) []byte {
	return result(id, incarnation, answers()[name]()...)
}

// answers are results by name. Each fits into a frame.
func answers() map[string]func() []*pluginpb.Contribution {
	all := texts()
	maps.Copy(all, records())
	return all
}

// texts are results of sections.
func texts() map[string]func() []*pluginpb.Contribution {
	section := func(id, content string) *pluginpb.Contribution {
		return &pluginpb.Contribution{Kind: &pluginpb.Contribution_PromptSection{PromptSection: &pluginpb.PromptSection{SectionId: id, Content: content}}}
	}
	return map[string]func() []*pluginpb.Contribution{
		"grapheme": func() []*pluginpb.Contribution {
			return []*pluginpb.Contribution{section("bad", "a"+strings.Repeat("\u0301", 1_500_000))}
		},
		"flags": func() []*pluginpb.Contribution {
			return []*pluginpb.Contribution{section("bad", strings.Repeat("\U0001F1E9", 900_000))}
		},
		"long-lines": func() []*pluginpb.Contribution {
			return []*pluginpb.Contribution{section("bad", strings.Repeat("x", 3<<20))}
		},
		"short-lines": func() []*pluginpb.Contribution {
			return []*pluginpb.Contribution{section("bad", strings.Repeat("<\n", 1_500_000))}
		},
		"many-sections": many(func(i int) *pluginpb.Contribution { return section(fmt.Sprintf("s%d", i), strings.Repeat("x", 10_000)) }),
		"twin-ids": many(func(int) *pluginpb.Contribution {
			c := section("bad", "x")
			c.ContributionId = "twin"
			return c
		}),
	}
}

// records are results of what a host keeps.
func records() map[string]func() []*pluginpb.Contribution {
	return map[string]func() []*pluginpb.Contribution{
		"many-sources": func() []*pluginpb.Contribution {
			c := &pluginpb.Contribution{Kind: &pluginpb.Contribution_PromptSection{PromptSection: &pluginpb.PromptSection{SectionId: "bad", Content: "x"}}}
			c.GetPromptSection().SourceRefs = slices.Repeat([]*pluginpb.SourceRef{{Kind: "file", Id: "a", Label: strings.Repeat("l", 50)}}, 50_000)
			return []*pluginpb.Contribution{c}
		},
		"many-remarks": many(func(int) *pluginpb.Contribution {
			return &pluginpb.Contribution{
				Diagnostics: slices.Repeat([]*pluginpb.Diagnostic{{Code: "c", Severity: "error", Message: "\x1b[2J" + strings.Repeat("m", 60)}}, 150),
				Kind:        &pluginpb.Contribution_Noop{Noop: &pluginpb.Noop{}},
			}
		}),
		"many-audits": many(func(int) *pluginpb.Contribution {
			return &pluginpb.Contribution{Kind: &pluginpb.Contribution_Audit{Audit: &pluginpb.Audit{
				EventKind: "e", DetailsJson: []byte(`"` + strings.Repeat("d", 10_000) + `"`), SafeForUser: true,
			}}}
		}),
		"jobs-never-done": many(func(i int) *pluginpb.Contribution {
			return &pluginpb.Contribution{Kind: &pluginpb.Contribution_BackgroundJob{BackgroundJob: &pluginpb.BackgroundJob{JobKind: "job", IdempotencyKey: strconv.Itoa(i)}}}
		}),
		"many-jobs": many(func(i int) *pluginpb.Contribution {
			return &pluginpb.Contribution{Kind: &pluginpb.Contribution_BackgroundJob{BackgroundJob: &pluginpb.BackgroundJob{
				JobKind: "job", PayloadJson: []byte(`"` + strings.Repeat("p", 10_000) + `"`), IdempotencyKey: strconv.Itoa(i),
			}}}
		}),
		"jobs-of-other-times": many(func(i int) *pluginpb.Contribution {
			times := []string{"9999-12-31T23:59:59.999999999-23:59", "0000-01-01T00:00:00+23:59", "0001-01-01T00:00:00Z", "1677-09-21T00:12:43Z", "2262-04-11T23:47:17Z"}
			return &pluginpb.Contribution{Kind: &pluginpb.Contribution_BackgroundJob{BackgroundJob: &pluginpb.BackgroundJob{
				JobKind: "job", NotBefore: times[i%len(times)],
			}}}
		}),
		"many-attributes": func() []*pluginpb.Contribution {
			attributes := map[string]string{}
			for i := range 50_000 {
				attributes[fmt.Sprintf("a%d", i)] = `"><script>`
			}
			return []*pluginpb.Contribution{{Kind: &pluginpb.Contribution_Reminder{Reminder: &pluginpb.Reminder{Type: "r", Text: "x", Attributes: attributes}}}}
		},
		"not-declared": func() []*pluginpb.Contribution {
			return []*pluginpb.Contribution{{Kind: &pluginpb.Contribution_Decision{Decision: &pluginpb.Decision{Verdict: "deny"}}}, {}, {}}
		},
	}
}

// many are as many contributions as one answer may have.
func many(one func(i int) *pluginpb.Contribution) func() []*pluginpb.Contribution {
	return func() []*pluginpb.Contribution {
		all := make([]*pluginpb.Contribution, 256)
		for i := range all {
			all[i] = one(i)
		}
		return all
	}
}
