package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/words"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

type findFlags struct {
	filterFlags

	text, since, until string
	terms              map[manifest.TermKind]*[]string
	limit              int
}

func (a *app) manifestFindCommand() *cobra.Command {
	f := findFlags{terms: map[manifest.TermKind]*[]string{}}
	c := newCommand("find [SENTENCE]", "Find the kept manifests whose prompt holds a sentence, or has a section, a plugin, a tool, …",
		cobra.MaximumNArgs(1),
		func(c *cobra.Command, args []string) error {
			q, err := a.query(&f, args)
			if err != nil {
				return err
			}
			return a.withStore(c.Context(), store.Options{ReadOnly: true}, func(s *openedStore) error {
				return a.manifestFind(c.Context(), s, q, &f)
			})
		})
	f.register(c)
	flags := c.Flags()
	for _, row := range []struct {
		kind      manifest.TermKind
		value, of string
	}{
		{manifest.TermSection, "ID", "that have the section, or left it out"},
		{manifest.TermOwner, "NAME", "to which this plugin, host or builtin contributed text"},
		{manifest.TermPlugin, "NAME[@VERSION]", "made while this plugin was there"},
		{manifest.TermTool, "NAME", "that offered the tool, or in whose turn it was called"},
		{manifest.TermHash, "HASH", "that have this hash or fingerprint anywhere"},
		{manifest.TermModel, "NAME", "for this model"},
		{manifest.TermProvider, "NAME", "for this provider"},
		{manifest.TermActor, "PERSON", "made for this person or program: KIND:ID, such as user:ada"},
		{manifest.TermAgent, "ID", "of this agent"},
		{manifest.TermSession, "ID", "of this session"},
		{manifest.TermTurn, "ID", "of this turn"},
		{manifest.TermDiagnostic, "CODE", "with this diagnostic, or a run that failed with it"},
		{manifest.TermVerdict, "VERDICT", "in which a hook decided so: allow, deny, ask"},
		{manifest.TermCause, "CAUSE", "whose prompt broke the prefix that the provider keeps by this cause (see blame)"},
		{manifest.TermKindOf, "KIND", "of this kind: prompt, events, erasure"},
	} {
		f.terms[row.kind] = flags.StringArray(string(row.kind), nil, "only manifests "+row.of+" (`"+row.value+"`; may be repeated, all must hold)")
	}
	flags.StringVar(&f.text, "text", "", "only manifests with a section, or a whole prompt, that has the hash of the text in the `FILE`, or -; texts need not be kept")
	flags.StringVar(&f.since, "since", "", "only manifests from this `TIME` on: a date, a time (RFC 3339), or a duration before now such as 7d")
	flags.StringVar(&f.until, "until", "", "only manifests from before this `TIME`")
	flags.IntVar(&f.limit, "limit", api.ListLimit, "list the newest `N`; 0 lists all")
	return c
}

func (a *app) query(f *findFlags, args []string) (store.Query, error) {
	q := store.Query{Filter: f.filter()}
	if f.limit < 0 {
		return q, usagef("--limit %d: give a number of manifests, or 0 for all", f.limit)
	}
	q.Limit = f.limit
	for _, kind := range []manifest.TermKind{
		manifest.TermSection, manifest.TermOwner, manifest.TermPlugin, manifest.TermTool, manifest.TermHash, manifest.TermModel, manifest.TermProvider, manifest.TermActor,
		manifest.TermAgent, manifest.TermSession, manifest.TermTurn, manifest.TermDiagnostic, manifest.TermVerdict, manifest.TermCause, manifest.TermKindOf,
	} {
		for _, value := range *f.terms[kind] {
			q.Terms = append(q.Terms, manifest.Term{Kind: kind, Value: value})
		}
	}
	if len(args) == 1 {
		q.Sentence = args[0]
	}
	var err error
	if q.Since, err = instant("since", f.since); err != nil {
		return q, err
	}
	if q.Until, err = instant("until", f.until); err != nil {
		return q, err
	}
	data, err := a.readInput("text", f.text)
	if f.text != "" {
		q.Text = strings.TrimRight(string(data), "\r\n")
	}
	if err == nil && len(q.Terms) == 0 && q.Sentence == "" && q.Text == "" && q.Since.IsZero() && q.Until.IsZero() && f.thread == "" && f.workspace == "" {
		return q, usagef("find needs a SENTENCE or a flag that says what to look for; see: grapnel manifest find --help")
	}
	return q, err
}

// instant reads a date, a time, or a duration before now.
func instant(flag, value string) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	if age, err := parseAge(value); err == nil {
		return time.Now().Add(-age), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339, time.DateTime} {
		if at, err := time.Parse(layout, value); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usagef("--%s %q: give a date such as 2026-11-20, a time such as 2026-11-20T09:00:00Z, or a duration such as 7d", flag, value)
}

func (a *app) manifestFind(ctx context.Context, s *openedStore, q store.Query, f *findFlags) error {
	found, err := s.Search(ctx, q)
	if err != nil {
		return err
	}
	printed := a.print(found, func() { a.printMatches(&found, &q, f) })
	if printed == nil && found.Total == 0 {
		return answerNo()
	}
	return printed
}

func (a *app) printMatches(r *store.SearchResult, q *store.Query, f *findFlags) {
	if r.Total == 0 {
		a.printf("no such manifest%s\n", api.About(f.filter()))
		if q.Sentence != "" {
			a.println("a sentence is found in the texts that were kept (manifest: {keep_text: true}); --text FILE finds a whole section without them")
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
