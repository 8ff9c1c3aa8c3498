package runtime_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
)

func ofJob(m *pluginpb.BackgroundJob) *pluginpb.Contribution {
	return &pluginpb.Contribution{Kind: &pluginpb.Contribution_BackgroundJob{BackgroundJob: m}}
}

// frame is a Result frame with the answer.
func (c costly) frame(id, incarnation uint64) []byte {
	all := make([]*pluginpb.Contribution, c.n)
	for i := range all {
		all[i] = c.make(i)
	}
	return resultFrame(id, incarnation, all...)
}

// costly is an answer of n contributions.
type costly struct {
	n    int
	make func(i int) *pluginpb.Contribution
}

// costlyAnswers are results by name. Each fits into a frame.
func costlyAnswers() map[string]costly {
	const most = 256 // contributions of one answer
	text := func(content func() string) costly {
		return costly{1, func(int) *pluginpb.Contribution {
			return ofSection(&pluginpb.PromptSection{SectionId: "bad", Content: content()})
		}}
	}
	repeated := func(s string, n int) func() string { return func() string { return strings.Repeat(s, n) } }
	return map[string]costly{
		"grapheme":    text(func() string { return "a" + strings.Repeat("\u0301", 1_500_000) }),
		"flags":       text(repeated("\U0001F1E9", 900_000)),
		"long-lines":  text(repeated("x", 3<<20)),
		"short-lines": text(repeated("<\n", 1_500_000)),
		"many-sections": {most, func(i int) *pluginpb.Contribution {
			return ofSection(&pluginpb.PromptSection{SectionId: fmt.Sprintf("s%d", i), Content: strings.Repeat("x", 10_000)})
		}},
		"duplicate-ids": {most, func(int) *pluginpb.Contribution {
			c := ofSection(&pluginpb.PromptSection{SectionId: "bad", Content: "x"})
			c.ContributionId = "same"
			return c
		}},
		"many-sources": {1, func(int) *pluginpb.Contribution {
			refs := []*pluginpb.SourceRef{{Kind: "file", Id: "a", Label: strings.Repeat("l", 50)}}
			return ofSection(&pluginpb.PromptSection{SectionId: "bad", Content: "x", SourceRefs: slices.Repeat(refs, 50_000)})
		}},
		"many-remarks": {most, func(int) *pluginpb.Contribution {
			return &pluginpb.Contribution{
				Diagnostics: slices.Repeat([]*pluginpb.Diagnostic{{Code: "c", Severity: "error", Message: "\x1b[2J" + strings.Repeat("m", 60)}}, 150),
				Kind:        &pluginpb.Contribution_Noop{Noop: &pluginpb.Noop{}},
			}
		}},
		"many-audits": {most, func(int) *pluginpb.Contribution {
			return &pluginpb.Contribution{Kind: &pluginpb.Contribution_Audit{Audit: &pluginpb.Audit{EventKind: "e", DetailsJson: []byte(`"` + strings.Repeat("d", 10_000) + `"`), SafeForUser: true}}}
		}},
		"jobs-never-done": {most, func(i int) *pluginpb.Contribution {
			return ofJob(&pluginpb.BackgroundJob{JobKind: "job", IdempotencyKey: strconv.Itoa(i)})
		}},
		"many-jobs": {most, func(i int) *pluginpb.Contribution {
			payload := []byte(`"` + strings.Repeat("p", 10_000) + `"`)
			return ofJob(&pluginpb.BackgroundJob{JobKind: "job", PayloadJson: payload, IdempotencyKey: strconv.Itoa(i)})
		}},
		"jobs-of-other-times": {most, func(i int) *pluginpb.Contribution {
			times := []string{"9999-12-31T23:59:59.999999999-23:59", "0000-01-01T00:00:00+23:59", "0001-01-01T00:00:00Z", "1677-09-21T00:12:43Z", "2262-04-11T23:47:17Z"}
			return ofJob(&pluginpb.BackgroundJob{JobKind: "job", NotBefore: times[i%len(times)]})
		}},
		"many-attributes": {1, func(int) *pluginpb.Contribution {
			attributes := map[string]string{}
			for i := range 50_000 {
				attributes[fmt.Sprintf("a%d", i)] = `"><script>`
			}
			return &pluginpb.Contribution{Kind: &pluginpb.Contribution_Reminder{Reminder: &pluginpb.Reminder{Type: "r", Text: "x", Attributes: attributes}}}
		}},
		"not-declared": {3, func(i int) *pluginpb.Contribution {
			if i > 0 {
				return &pluginpb.Contribution{}
			}
			return &pluginpb.Contribution{Kind: &pluginpb.Contribution_Decision{Decision: &pluginpb.Decision{Verdict: "deny"}}}
		}},
	}
}
