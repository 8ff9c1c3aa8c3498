package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/backtest"
	"github.com/grapnelhq/grapnel/internal/engine/bounded"
	"github.com/grapnelhq/grapnel/internal/facts"
	"github.com/grapnelhq/grapnel/internal/facts/secret"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/cedar"
)

type rulesSuggested struct {
	Since time.Time     `json:"since"`
	Calls int           `json:"calls"`
	Read  backtest.Read `json:"read"`
	cedar.Suggestions
}

func (a *app) rulesSuggest(ctx context.Context, f *transcriptFlags, _ []string) error {
	return a.withFiles(ctx, f, func(found *backtest.Found) error { return a.suggest(ctx, f, found) })
}

// lookTime bounds the look at names and links in a project, whose file system may hang.
const lookTime = 2 * time.Second

func (a *app) suggest(ctx context.Context, f *transcriptFlags, found *backtest.Found) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return usagef("facts: %w", err)
	}
	scanner, t, begun := secret.New(), &backtesting{}, time.Now()
	s := cedar.NewSuggester(func(name string) bool { return len(scanner.Find(name)) > 0 })
	o := backtest.Options{Since: f.Since, Dir: f.Dir, Now: time.Now, Progress: &t.progress}
	factsOf := bounded.New("a file system", nil)
	o.Calls = func(e *agent.Event, line func() string) {
		ctx, cancel := context.WithTimeout(ctx, lookTime)
		defer cancel()
		known, err := bounded.Call(ctx, factsOf, func() (*phases.Facts, error) {
			return facts.Of(e.Call.Tool, e.Call.Arguments, e.Call.Paths, e.Dir, home), nil
		}, nil)
		if err != nil {
			known = &phases.Facts{Unparsed: true}
		}
		s.Add(known, e.SessionID, line)
	}
	stop := a.startProgress(func() string { return paceLine("reading", t.progress.Pace(time.Since(begun))) })
	tally := backtest.Run(ctx, found.Files, o)
	stop()
	if tally.Partial {
		return &exitError{code: exitInterrupted, err: errors.New("interrupted")}
	}
	r := &rulesSuggested{f.Since, int(t.progress.Calls.Load()), tally.Report(found, &t.progress, "").Read, s.Suggestions()}
	for _, p := range r.Read.Problems {
		reportf(a.err, "grapnel: not readable: %s: %s\n", p.Path, p.Why)
	}
	for _, why := range r.Read.Omitted {
		reportf(a.err, "grapnel: not read: %s\n", why)
	}
	if r.Read.Unknown > 0 {
		reportf(a.err, "grapnel: %s not understood\n", words.Count(r.Read.Unknown, "line was", "lines were"))
	}
	return a.print(r, func() { a.printSuggested(r) })
}

// printSuggested prints a file of rules, each in a line that begins with //@, as no other line does.
func (a *app) printSuggested(r *rulesSuggested) {
	a.printf("// What agents did most in %s of tools since %s, as rules that deny it.\n", words.Count(r.Calls, "call", "calls"), clock(r.Since))
	a.println("// Each line that begins with //@ is a rule: take its slashes away, then run: grapnel rules check FILE")
	section := ""
	for _, s := range r.Rules {
		a.printf("%s", words.If(s.Section != section, "\n// == "+s.Section+" ==\n"))
		a.printf("\n// %s in %s, such as: %s\n//%s\n", words.Count(s.Calls, "call", "calls"), words.Count(s.Sessions, "session", "sessions"), clean(s.Example), s.Rule)
		section = s.Section
	}
	if r.Unparsed > 0 {
		a.printf("\n// A part of %s could not be read. A rule about Action::\"unknown\" decides about such calls.\n", words.Count(r.Unparsed, "call", "calls"))
	}
	if r.LeftOut > 0 {
		a.printf("\n// %s not counted: too many, too long, or secrets themselves.\n", words.Count(r.LeftOut, "name of a file or host was", "names of files and hosts were"))
	}
}
