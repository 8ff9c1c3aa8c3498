package main

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

type findFlags struct {
	listFlags
	periodFlags
	termFlags

	Text string `flag:"text" usage:"only manifests with a section, or a whole prompt, that has the hash of the text in the {FILE}, or -; texts need not be kept"`
}

// periodFlags bound the time of records.
type periodFlags struct {
	Since time.Time `flag:"since" usage:"only manifests from this {TIME} on: a date, a time (RFC 3339), or a duration before now such as 7d"`
	Until time.Time `flag:"until" usage:"only manifests from before this {TIME}"`
}

// termFlags are the terms of records, each by a flag with the name of its kind.
type termFlags struct {
	Section    []string `flag:"section"    usage:"only manifests that have the section, or left it out ({ID}; may be repeated, all must hold)"`
	Owner      []string `flag:"owner"      usage:"only manifests to which this plugin, host or builtin contributed text ({NAME}; may be repeated, all must hold)"`
	Plugin     []string `flag:"plugin"     usage:"only manifests made while this plugin was there ({NAME[@VERSION]}; may be repeated, all must hold)"`
	Tool       []string `flag:"tool"       usage:"only manifests that offered the tool, or in whose turn it was called ({NAME}; may be repeated, all must hold)"`
	Hash       []string `flag:"hash"       usage:"only manifests that have this hash or fingerprint anywhere ({HASH}; may be repeated, all must hold)"`
	Model      []string `flag:"model"      usage:"only manifests for this model ({NAME}; may be repeated, all must hold)"`
	Provider   []string `flag:"provider"   usage:"only manifests for this provider ({NAME}; may be repeated, all must hold)"`
	Actor      []string `flag:"actor"      usage:"only manifests made for this person or program: KIND:ID, such as user:ada ({PERSON}; may be repeated, all must hold)"`
	Agent      []string `flag:"agent"      usage:"only manifests of this agent ({ID}; may be repeated, all must hold)"`
	Session    []string `flag:"session"    usage:"only manifests of this session ({ID}; may be repeated, all must hold)"`
	Turn       []string `flag:"turn"       usage:"only manifests of this turn ({ID}; may be repeated, all must hold)"`
	Diagnostic []string `flag:"diagnostic" usage:"only manifests with this diagnostic, or a run that failed with it ({CODE}; may be repeated, all must hold)"`
	Verdict    []string `flag:"verdict"    usage:"only manifests in which a hook decided so: allow, deny, ask ({VERDICT}; may be repeated, all must hold)"`
	Cause      []string `flag:"cause"      usage:"only manifests whose prompt broke the prefix that the provider keeps by this cause (see blame) ({CAUSE}; may be repeated, all must hold)"`
	Kind       []string `flag:"kind"       usage:"only manifests of this kind: prompt, events, erasure ({KIND}; may be repeated, all must hold)"`
}

func (f *termFlags) terms() (list []manifest.Term) {
	fields := reflect.ValueOf(f).Elem()
	for i := range fields.NumField() {
		for j := range fields.Field(i).Len() {
			list = append(list, manifest.Term{Kind: manifest.TermKind(fields.Type().Field(i).Tag.Get("flag")), Value: fields.Field(i).Index(j).String()})
		}
	}
	return list
}

// check refuses values that no record has, which would look like an answer.
func (f *termFlags) check() error {
	for _, c := range []struct {
		flag           string
		given, allowed []string
	}{
		{"verdict", f.Verdict, []string{"allow", "deny", "ask"}},
		{"kind", f.Kind, []string{"prompt", "events", "erasure"}},
	} {
		for _, value := range c.given {
			if !slices.Contains(c.allowed, value) {
				return usagef("--%s %q: want %s", c.flag, value, strings.Join(c.allowed, ", "))
			}
		}
	}
	return nil
}

func (a *app) query(f *findFlags, args []string) (store.Query, error) {
	if err := f.check(); err != nil {
		return store.Query{}, err
	}
	q := store.Query{Filter: f.filter(), Terms: f.terms(), Since: f.Since, Until: f.Until}
	q.Limit = f.Limit
	if len(args) == 1 {
		q.Sentence = args[0]
	}
	data, err := a.readInput("text", f.Text)
	if f.Text != "" {
		q.Text = strings.TrimRight(string(data), "\r\n")
	}
	if err == nil && len(q.Terms) == 0 && q.Sentence+q.Text+f.Thread+f.Workspace == "" && f.periodFlags == (periodFlags{}) {
		return q, usagef("find needs a SENTENCE or a flag that says what to look for; see: grapnel manifest find --help")
	}
	return q, err
}

func (a *app) manifestFind(ctx context.Context, f *findFlags, args []string) error {
	q, err := a.query(f, args)
	if err != nil {
		return err
	}
	return a.withStore(ctx, store.Options{ReadOnly: true}, func(s *openedStore) error {
		found, err := s.Search(ctx, q)
		if err != nil {
			return err
		}
		return a.answer(found.Total > 0, found, func() { a.printMatches(&found, &q, f) })
	})
}

func (a *app) printMatches(r *store.SearchResult, q *store.Query, f *findFlags) {
	if r.Total == 0 {
		a.printf("no such manifest%s\n", api.About(f.filter()))
		if q.Sentence != "" {
			a.println("a sentence is found, letter by letter, in the texts that were kept (manifest: {keep_text: true}); --text FILE finds a whole section without them")
		}
		return
	}
	a.printf("%s, the first %s, the last %s\n", manifests(r.Total), clock(r.First.CreatedAt), clock(r.Last.CreatedAt))
	printList(a, "who wrote it", "section|from|>texts|the newest", r.Texts, func(t *store.FoundText) cells {
		return cells{t.SectionID, strings.Join(t.Owners, ", "), t.Texts, t.Fingerprint}
	})
	if r.Incomplete {
		a.println("  older texts were not looked at: bound the search by thread or workspace")
	}
	printList(a, "the newest"+words.If(r.Threads > 0, ", of "+words.Count(r.Threads, "thread", "threads")), "manifest|kind|created|workspace|thread|>seq|turn", r.Records, func(x *manifest.Index) cells {
		return cells{x.ManifestID, x.Kind, clock(x.CreatedAt), x.WorkspaceID, x.ThreadID, x.Seq, x.TurnID}
	})
	a.printOlder(r.Total-len(r.Records), "manifest")
}

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
