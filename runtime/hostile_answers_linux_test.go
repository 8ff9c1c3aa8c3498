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
	return map[string]costly{
		"grapheme": {1, func(int) *pluginpb.Contribution {
			return ofSection(&pluginpb.PromptSection{SectionId: "bad", Content: "a" + strings.Repeat("\u0301", 1_500_000)})
		}},
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
		"jobs-never-done": {most, func(i int) *pluginpb.Contribution {
			return ofJob(&pluginpb.BackgroundJob{JobKind: "job", IdempotencyKey: strconv.Itoa(i)})
		}},
		"many-jobs": {most, func(i int) *pluginpb.Contribution {
			payload := []byte(`"` + strings.Repeat("p", 10_000) + `"`)
			return ofJob(&pluginpb.BackgroundJob{JobKind: "job", PayloadJson: payload, IdempotencyKey: strconv.Itoa(i)})
		}},
	}
}
