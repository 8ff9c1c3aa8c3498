package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/words"
	"github.com/grapnelhq/grapnel/manifest"
)

type statsFlags struct {
	filterFlags
	periodFlags
}

func (a *app) manifestStats(ctx context.Context, s *openedStore, f *statsFlags, _ []string) error {
	progress := a.startCount("reading: %s manifests")
	stats, err := s.Stats(ctx, f.filter(), f.Since, f.Until, progress.add)
	progress.stop()
	if err != nil {
		return err
	}
	return a.print(stats, func() { a.printStats(&stats, &f.filterFlags) })
}

func (a *app) printStats(s *manifest.Stats, f *filterFlags) {
	if s.Records == 0 {
		a.printf("there are no manifests%s\n", api.About(f.filter()))
		return
	}
	a.printf("%s, %s sent, %s blocked, from %s to %s\n", words.Count(s.Records, "record", "records"), words.Count(s.Prompts, "prompt", "prompts"),
		words.Count(s.Blocked, "turn", "turns"), clock(s.First), clock(s.Last))
	number := func(n int) string { return words.If(n != 0, text.Thousands(n)) }
	owners, sections := s.Owners, s.Sections
	if s.ToolTokens > 0 {
		owners = append(slices.Clone(owners), manifest.OwnerStats{Owner: "(definitions of tools)", Tokens: s.ToolTokens})
		sections = append(slices.Clone(sections), manifest.SectionStats{SectionID: "(definitions of tools)", Tokens: s.ToolTokens})
	}
	printList(a, "by plugin", "from|>tokens|>runs|>failed|>denied|>cuts|>omitted|>breaks|>tokens lost", owners, func(o *manifest.OwnerStats) cells {
		return cells{o.Owner, number(o.Tokens), number(o.Runs), number(o.Failed), number(o.Denied), number(o.Cuts), number(o.Omitted), number(o.Breaks), number(o.TokensLost)}
	})
	printList(a, "by section", "section|>prompts|>tokens|>cuts|>omitted|>breaks", sections, func(s *manifest.SectionStats) cells {
		return cells{s.SectionID, number(s.Prompts), number(s.Tokens), number(s.Cuts), number(s.Omitted), number(s.Breaks)}
	})
	printList(a, "by day", "day|>prompts|>tokens|>input|>from the cache|>output|>cuts|>failed|>breaks", s.Days, func(d *manifest.DayStats) cells {
		return cells{
			d.Day, number(d.Prompts), number(d.Tokens), number(d.InputTokens), hits(d), number(d.OutputTokens), number(d.Cuts), number(d.Failed), number(d.Breaks),
		}
	})
}

// hits is how many of a day's input tokens came from the provider's cache.
func hits(d *manifest.DayStats) string {
	if d.Reported == 0 || d.InputTokens == 0 {
		return ""
	}
	return fmt.Sprintf("%s (%d %%)", text.Thousands(d.CacheReadTokens), (100*d.CacheReadTokens+d.InputTokens/2)/d.InputTokens)
}
