package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// check is a promise about an agent that grapnel install has put behind a gateway which its hooks start. Each runs in a
// home directory of its own; the table is in checks.go.
type check struct {
	name   string
	agents []string          // those that have this; empty for all
	cold   bool              // about a gateway that the hooks start
	guard  string            // the plugins of the configuration; guarded by default
	does   string            // what guarded does: the name of the working directory; see plugin.go
	files  map[string]string // in the working directory, besides .env with the secret
	prompt string            // userPrompt by default
	before string            // the prompt of a session before, of which the plugin memory keeps what told has
	server bool              // the agent has the MCP server "probe"
	mod    bool              // Grapnel's mod is installed too
	other  string            // the hooks of another mod of the user's
	// answers of the model, which make calls, and those to a subagent. At the end it says "done".
	answers, subanswers [][]call
	// kill are the answers before which the gateway is killed with -9, if one runs. One more than there are is the last.
	kill []int
	// again are further runs, each of which goes on with the session, with files that have another text then.
	again       []map[string]string
	hook        hook          // the one that the agent has, instead of what grapnel install writes
	preset      string        // the agent has no hook; it finds instruction files, and Grapnel has this preset for them
	tour        bool          // there is no configuration, and the steps are those of tour
	mods        bool          // the steps are those of mods
	truth       bool          // the steps are those of truth
	lasts       time.Duration // runTime by default
	uninstalled bool          // grapnel uninstall has taken the hooks out again

	// What is wanted: the files that the calls leave, the texts that the model gets, and the calls on record as
	// "TOOL VERDICT", where SHELL and SERVER are the agent's own names. The secret reaches it only if the check says so.
	ran    []string
	told   []string
	record []string
	secret bool
	// sent says that what hooks can see of requests is on record; see requests.go.
	sent bool
	// noRequest says that nothing reaches the model.
	noRequest bool
	times     map[string]int // how often the last request has a text
}

// coldTimes is how much more often checks of cold starts run: they are about races.
const coldTimes = 3

// runChecks runs the checks count times each, and prints how many passed. Any failure is an error.
func (l *lab) runChecks(ctx context.Context, list []agent, count int, matches *regexp.Regexp) error {
	var rows []*row
	all := checks()
	for i := range list {
		if err := l.get(ctx, &list[i]); err != nil {
			return err
		}
		for j := range all {
			if c := &all[j]; c.isFor(&list[i]) && matches.MatchString(c.name) && (l.contracts || !c.isContract()) {
				times := count
				if c.cold {
					times *= coldTimes
				}
				rows = append(rows, &row{agent: &list[i], check: c, errs: make([]error, times)})
			}
		}
	}
	slots := make(chan struct{}, l.parallel)
	var running sync.WaitGroup
	for i, r := range rows {
		for n := range r.errs {
			running.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				begun := time.Now()
				r.errs[n] = l.try(ctx, r.agent, r.check, filepath.Join(l.work, fmt.Sprintf("check-%02d-%d", i, n)))
				r.lasted = max(r.lasted, time.Since(begun))
			})
		}
	}
	running.Wait()
	failed := 0
	for _, r := range rows {
		if !r.print() {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed; -run NAME -keep keeps their homes in %s", failed, len(rows), l.work)
	}
	return nil
}

// isContract reports whether a check is about hooks that are not ours.
func (c *check) isContract() bool { return c.hook.event != "" || c.preset != "" }

func (c *check) isFor(a *agent) bool {
	return (len(c.agents) == 0 || slices.Contains(c.agents, a.name)) && (!c.cold || !a.noStart)
}

// row is what came of a check with an agent.
type row struct {
	agent  *agent
	check  *check
	errs   []error       // of each try
	lasted time.Duration // the longest
}

// print prints it for people, and reports whether all tries passed.
func (r *row) print() bool {
	passed, problems, word := 0, map[string]int{}, "ok"
	for _, err := range r.errs {
		if err == nil {
			passed++
			continue
		}
		word = "FAILED"
		for line := range strings.Lines(err.Error()) {
			problems[strings.TrimSuffix(line, "\n")]++
		}
	}
	fmt.Printf("%-6s %d of %d  %5.1fs  %s %s  %s\n", word, passed, len(r.errs), r.lasted.Seconds(), r.agent.name, r.agent.version, r.check.name)
	for _, problem := range slices.Sorted(maps.Keys(problems)) {
		fmt.Printf("%10d× %s\n", problems[problem], problem)
	}
	return passed == len(r.errs)
}
