package merge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/phases"
)

// BenchmarkAdmitAndMerge is the share of the boundary and of merging in one
// dispatch: so many sections of such a size, each from a plugin of its own.
func BenchmarkAdmitAndMerge(b *testing.B) {
	row, _ := phases.Standard().Lookup(phases.PrePromptCompile)
	for _, size := range []struct{ sections, kib int }{{1, 1}, {16, 4}} {
		b.Run(fmt.Sprintf("%dx%dKiB", size.sections, size.kib), func(b *testing.B) {
			replies := make([]merge.Reply, size.sections)
			given := make([][]phases.Contribution, size.sections)
			line := "A line of plain text with sixty-three characters and newline.\n"
			content := strings.Repeat(line, size.kib*1024/len(line))
			for i := range replies {
				replies[i].Hook = hook(fmt.Sprintf("plugin%02d.prompt", i), phases.KindPromptSection)
				given[i] = []phases.Contribution{&phases.PromptSection{SectionID: fmt.Sprintf("s%d", i), Title: "Title", Content: content}}
			}
			b.ReportAllocs()
			for b.Loop() {
				for i := range replies {
					admitted, err := merge.Admit(row, replies[i].Hook, given[i])
					if err != nil {
						b.Fatal(err)
					}
					replies[i].Entries = admitted.Entries
				}
				if got := merge.Merge(row, replies, merge.State{}, merge.Limits{}); len(got.Merged.Sections) != size.sections {
					b.Fatal(got.Omitted)
				}
			}
		})
	}
}
