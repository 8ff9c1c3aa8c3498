package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/backtest"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/cedar"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

// transcriptFlags say which transcripts are read.
type transcriptFlags struct {
	From   []string  `flag:"from"   usage:"only these {AGENTS}, separated by commas or one a flag (default all that are found), or log: what the log has of calls, with manifest.keep_inputs"`
	Since  time.Time `default:"30d" flag:"since"                                                                                                                                              usage:"only calls from this {TIME} on: a date, a time (RFC 3339), or a duration before now such as 7d"`
	Dir    string    `flag:"dir"    usage:"only sessions in this {DIR} or below"`
	Sample int       `flag:"sample" usage:"only {N} of the files, always the same ones"`
}

type backtestFlags struct {
	transcriptFlags

	Against    string   `flag:"against"    usage:"show only what is decided otherwise than by the configuration {FILE}"`
	FailOn     string   `flag:"fail-on"    usage:"exit with code 1 if something would be denied (deny), denied or asked about (ask), or changed at all (any)" words:"deny|ask|any"`
	CSV        bool     `flag:"csv"        usage:"print the calls as CSV"`
	AllowNet   bool     `flag:"allow-net"  usage:"let plugins use the network that they are granted"`
	Unconfined []string `flag:"unconfined" usage:"run the plugin {NAME} as it is declared, also where it can write or keeps data (may be repeated)"`
	Fresh      bool     `flag:"fresh"      usage:"judge everything again, also what an earlier run has judged"`
	Progress   bool     `flag:"progress"   usage:"report the progress as JSON lines on standard error"`
}

// backtesting is a backtest under way.
type backtesting struct {
	*backtestFlags

	from     origin
	found    *backtest.Found
	progress backtest.Progress
	queue    backtest.Queue
	cfg, old *config.Config
	notRun   []backtest.NotRun
	offered  bool // no rules are in force: those that come along judge
}

func (a *app) backtest(ctx context.Context, f *backtestFlags, _ []string) error {
	if f.CSV && a.JSON {
		return usagef("--csv and --json: give one of them")
	}
	if a.LogLevel == "error" {
		a.LogLevel = "off" // failures of hooks are in the report
	}
	t, err := a.newBacktest(f)
	if err != nil {
		return err
	}
	return a.withFiles(ctx, &f.transcriptFlags, func(found *backtest.Found) error {
		t.found = found
		return a.runBacktest(ctx, t)
	})
}

func (a *app) runBacktest(ctx context.Context, t *backtesting) error {
	f := t.backtestFlags
	var tally *backtest.Tally
	err := a.withEngine(ctx, t.cfg, runtime.Options{Queue: &t.queue}, func(ctx context.Context, eng *runtime.Engine) (err error) {
		if t.old == nil {
			tally, err = a.judge(ctx, t, eng, nil)
			return err
		}
		return a.withEngine(ctx, t.old, runtime.Options{Queue: &t.queue}, func(ctx context.Context, old *runtime.Engine) (err error) {
			tally, err = a.judge(ctx, t, eng, old)
			return err
		})
	})
	if err != nil {
		return err
	}
	r := tally.Report(t.found, &t.progress, f.Against)
	if t.offered {
		r.Offered = cedar.Sets()
	}
	r.Config, r.Since, r.NotRun, r.Dropped = t.from.name(), f.Since, t.notRun, int(t.queue.Dropped.Load())
	if r.Judged() == 0 && !r.Partial {
		return unable(t.without(r))
	}
	return a.showBacktest(f, r)
}

// without says why no call was judged.
func (t *backtesting) without(r *backtest.Report) error {
	why := fmt.Sprintf("no calls since %s", clock(t.Since))
	if t.Dir != "" {
		why += " in " + clean(t.Dir) + " or below"
	}
	return errors.New(strings.Join(append([]string{why}, r.Read.Omitted...), "; ") + words.If(t.Dir == "", "; for a longer period give --since 90d"))
}

func (a *app) showBacktest(f *backtestFlags, r *backtest.Report) error {
	if f.CSV {
		a.printCSV(r.Rows)
	} else if err := a.print(r, func() { a.printBacktest(r) }); err != nil {
		return err
	}
	fails := map[string][]backtest.Verdict{
		"deny": {backtest.Deny, backtest.Fail},
		"ask":  {backtest.Deny, backtest.Fail, backtest.Ask},
		"any":  {backtest.Deny, backtest.Fail, backtest.Ask, backtest.Rewrite},
	}
	switch {
	case r.Partial:
		reportf(a.err, "grapnel: interrupted; the same command%s goes on from here\n", words.If(f.Fresh, " without --fresh"))
		return &exitError{code: exitInterrupted}
	case r.Hits(fails[f.FailOn]...):
		return answerNo()
	}
	return nil
}

// newBacktest decides by what is to be judged.
func (a *app) newBacktest(f *backtestFlags) (*backtesting, error) {
	cfg, from, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	t := &backtesting{backtestFlags: f, from: from, offered: f.Against == "" && !backtest.Judges(cfg)}
	if t.offered {
		if cfg, err = offered(); err != nil {
			return nil, err
		}
	}
	dryness := backtest.Dryness{Net: f.AllowNet, Unconfined: f.Unconfined}
	for _, name := range f.Unconfined {
		if !slices.ContainsFunc(cfg.Plugins, func(p config.Plugin) bool { return p.Name == name }) {
			return nil, usagef("--unconfined %s: there is no such plugin", name)
		}
	}
	t.cfg, t.notRun = backtest.Dry(cfg, dryness)
	if f.Against != "" {
		old, err := config.Load(f.Against)
		if err != nil {
			return nil, err
		}
		t.old, _ = backtest.Dry(old, dryness)
	}
	return t, nil
}

// withFiles finds what there is to read, at least one file, and completes the flags. The log is open while work reads it.
func (a *app) withFiles(ctx context.Context, f *transcriptFlags, work func(*backtest.Found) error) (err error) {
	if f.Since.After(time.Now()) {
		return usagef("--since: %s is in the future", clock(f.Since))
	}
	if f.Dir != "" {
		if f.Dir, err = filepath.Abs(f.Dir); err != nil { // it need not be there any more
			return usagef("--dir: %w", err)
		}
	}
	q := backtest.Query{Env: os.Getenv, Since: f.Since, Sample: f.Sample}
	if q.Home, err = os.UserHomeDir(); err != nil {
		return usagef("transcripts: %w", err)
	}
	names := strings.Split(strings.Join(f.From, ","), ",")
	if slices.Equal(names, []string{backtest.Log}) {
		return a.withStore(ctx, store.Options{ReadOnly: true}, func(s *openedStore) error {
			found := &backtest.Found{}
			if err := found.AddLog(ctx, s.Store, q); err != nil {
				return err
			}
			if len(found.Files) == 0 {
				return unable(fmt.Errorf("%s has no records since %s", clean(s.ref.name), clock(f.Since)))
			}
			return work(found)
		})
	}
	if q.Agents, err = transcribed(names); err != nil {
		return err
	}
	found, err := backtest.Find(ctx, q)
	if err != nil {
		return unable(err)
	}
	if len(found.Files) == 0 {
		return unable(nothing(found, &q))
	}
	return work(found)
}

// nothing says why there are no transcripts.
func nothing(found *backtest.Found, q *backtest.Query) error {
	switch {
	case found.Old > 0:
		return fmt.Errorf("no transcript has changed since %s, and %s older; give --since 90d", clock(q.Since), words.Count(found.Old, "is", "are"))
	case len(found.Unreadable) > 0:
		return fmt.Errorf("transcripts cannot be read: %s: %s", found.Unreadable[0].Path, found.Unreadable[0].Why)
	}
	var names []string
	for _, a := range q.Agents {
		names = append(names, a.Name)
	}
	return fmt.Errorf("there are no transcripts of %s", alternatives(names))
}

// transcribed returns the agents of a list whose transcripts can be read, or all of them.
func transcribed(names []string) (chosen []*agent.Agent, err error) {
	var known []string
	for _, a := range agents.All() {
		if a.Transcripts != nil {
			known = append(known, a.Name)
		}
	}
	if slices.Equal(names, []string{""}) {
		names = known
	}
	for _, name := range names {
		if name == backtest.Log {
			return nil, usagef("--from: the log has calls of agents too, and cannot be combined with them")
		}
		if !slices.Contains(known, name) {
			return nil, usagef("--from %q: transcripts are read of %s%s", name, strings.Join(known, ", "), suggest.DidYouMean(name, known))
		}
		chosen = append(chosen, agents.Lookup(name))
	}
	return chosen, nil
}

// judge runs the files through one engine, or through two.
func (a *app) judge(ctx context.Context, t *backtesting, eng, old *runtime.Engine) (*backtest.Tally, error) {
	rows := eng.Plugins()
	if plan := eng.Plan(phases.ToolPreCall).Phases[0]; len(plan.Stages) == 0 && len(plan.Off) > 0 && old == nil {
		return nil, usagef("this configuration judges no tool calls: %s is off (%s)", plan.Off[0].Subscription, plan.Off[0].Reason)
	} else if len(plan.Stages) == 0 && old == nil {
		return nil, usagef("this configuration judges no tool calls: add rules with: grapnel rules add secrets")
	}
	o := backtest.Options{Engine: eng, Since: t.Since, Dir: t.Dir, Now: time.Now, Progress: &t.progress}
	key := []any{manifest.Build(version), t.Dir, t.AllowNet, t.Unconfined}
	cfgs := []*config.Config{t.cfg}
	if old != nil {
		o.Against, rows, cfgs = old, append(rows, old.Plugins()...), append(cfgs, t.old)
	}
	if err := downError(rows); err != nil {
		return nil, unable(errors.Unwrap(err))
	}
	settled, dir := true, filepath.Dir(t.from.Path)
	for _, cfg := range cfgs {
		k, whole := backtest.Key(cfg, dir)
		key, settled = append(key, k), settled && whole
	}
	if dir, err := userDir("XDG_CACHE_HOME", ".cache"); err == nil {
		if o.Kept, err = backtest.OpenKept(filepath.Join(dir, "backtest"), fmt.Sprint(append(key, versionsOf(rows))...), t.Fresh); err != nil {
			reportf(a.err, "grapnel: an interrupted run would begin again: %v\n", err)
		}
	}
	ctx, interrupt := context.WithCancel(ctx)
	defer interrupt()
	stop := a.showProgress(t, interrupt)
	tally := backtest.Run(ctx, t.found.Files, o)
	stop()
	if !settled && !tally.Partial {
		_ = o.Kept.Remove() // the next run tries again
	}
	return tally, nil
}

// versionsOf says which programs judge.
func versionsOf(rows []phases.PluginRow) (versions []string) {
	for i := range rows {
		versions = append(versions, rows[i].Plugin, rows[i].Version, rows[i].SHA256)
	}
	if self, err := os.Executable(); err == nil {
		if info, err := os.Stat(self); err == nil {
			versions = append(versions, fmt.Sprint(info.Size(), info.ModTime().UnixNano()))
		}
	}
	return versions
}

// showProgress shows how far a run is until stop is called. It calls unread where it is to be read by a program that is gone.
func (a *app) showProgress(t *backtesting, unread func()) (stop func()) {
	begun := time.Now()
	pace := func() backtest.Pace { return t.progress.Pace(time.Since(begun)) }
	if t.Progress {
		return reportProgress(a.err, func() any { return pace() }, unread)
	}
	return a.startProgress(func() string { return paceLine("judging", pace()) })
}

// paceLine is the progress in a line, with a rate and an estimate.
func paceLine(doing string, p backtest.Pace) string {
	s := fmt.Sprintf("%s: %s, %s a second, %d of %d files", doing, words.Count(int(p.Calls), "call", "calls"), text.Thousands(int(p.Rate)), p.Files, p.AllFiles)
	if p.LeftMS > 0 {
		s += fmt.Sprintf(", about %s left", time.Duration(p.LeftMS*float64(time.Millisecond)).Round(time.Second))
	}
	return s
}

const shownRows = 20

func (a *app) printBacktest(r *backtest.Report) {
	a.println(r.Summary)
	if len(r.Offered) > 0 {
		a.println("no rules are in force: those that come along judged; to put them in force: grapnel rules add " + strings.Join(r.Offered, " "))
	}
	if hint := r.Hint(); hint != "" {
		a.println(hint)
	}
	if r.Partial {
		a.println("this is partial: the rest was not judged")
	}
	t := newTable("", "")
	t.addSome("read", strings.Join(r.Read.Agents, ", "))
	t.addSome("versions", strings.Join(r.Read.Versions, ", "))
	t.addSome("not read", strings.Join(r.Read.Omitted, ", "))
	t.addSome("unknown lines", words.If(r.Read.Unknown > 0, text.Thousands(r.Read.Unknown)))
	t.addSome("judged before", words.If(r.Read.Before > 0, words.Count(r.Read.Before, "file", "files")+"; --fresh judges again"))
	t.addSome("dropped", words.If(r.Dropped > 0, words.Count(r.Dropped, "observation or job", "observations and jobs")))
	a.println()
	a.printTable(t)
	a.printDays(r.Days)
	printList(a, "plugins not run", "plugin|why", r.NotRun, func(n *backtest.NotRun) cells { return cells{n.Plugin, uncut(n.Why)} })
	printList(a, "not readable", "file|why", r.Read.Problems, func(p *backtest.Problem) cells { return cells{p.Path, p.Why} })
	printList(a, "hooks and reasons", "verdict|>calls|hook|why", r.Causes[:min(len(r.Causes), shownRows)], func(c *backtest.CauseCount) cells {
		return cells{c.Verdict, text.Thousands(c.Calls), c.Hook, c.Why}
	})
	printList(a, "commonest shapes", ">calls|shape", r.Shapes, func(s *backtest.ShapeCount) cells { return cells{text.Thousands(s.Calls), s.Shape} })
	for i := range r.Rows[:min(len(r.Rows), shownRows)] {
		a.printRow(&r.Rows[i])
	}
	if more := len(r.Rows) + r.RowsOmitted - shownRows; more > 0 {
		a.printf("\nand %s more; all with --csv or --json\n", text.Thousands(more))
	}
}

func (a *app) printRow(r *backtest.Row) {
	a.heading("\n" + spaced(clock(r.Time), r.Agent, filepath.Base(r.Dir), string(r.Was), string(r.Verdict), string(r.Became), r.Refused))
	a.println("  " + clean(r.Call))
	for i := range r.By {
		a.println("  " + clean(r.By[i].String()))
	}
	if r.Prompt != "" {
		a.println("  prompt: " + clean(r.Prompt))
	}
}

// mostColumns is how many days a plot has; it shows the last ones.
const mostColumns = 60

// printDays plots the calls of each day, and those that would not have been allowed.
func (a *app) printDays(days []backtest.Day) {
	days = slices.DeleteFunc(slices.Clone(days), func(d backtest.Day) bool { return d.Day == "unknown" })
	if len(days) < 2 {
		return
	}
	byDay := map[string]backtest.Day{}
	for _, d := range days {
		byDay[d.Day] = d
	}
	last, _ := time.Parse(time.DateOnly, days[len(days)-1].Day) // it was printed so
	var calls, hits []int
	first := last
	for ; len(calls) < mostColumns && first.Format(time.DateOnly) >= days[0].Day; first = first.AddDate(0, 0, -1) {
		d := byDay[first.Format(time.DateOnly)]
		calls, hits = append(calls, d.Judged), append(hits, d.Hits)
	}
	slices.Reverse(calls)
	slices.Reverse(hits)
	a.printf("\n%s to %s, a column a day\n", first.AddDate(0, 0, 1).Format(time.DateOnly), last.Format(time.DateOnly))
	a.printf("  calls %s up to %s\n", bars(calls), text.Thousands(slices.Max(calls)))
	if slices.Max(hits) > 0 {
		a.printf("  hits  %s up to %s\n", bars(hits), text.Thousands(slices.Max(hits)))
	}
}

// bars are numbers as columns of a plot.
func bars(numbers []int) string {
	levels, most := []rune(" ▁▂▃▄▅▆▇█"), max(1, slices.Max(numbers))
	var b strings.Builder
	for _, n := range numbers {
		b.WriteRune(levels[(n*(len(levels)-1)+most-1)/most])
	}
	return b.String()
}

func (a *app) printCSV(rows []backtest.Row) {
	w := csv.NewWriter(&a.out)
	_ = w.Write([]string{"time", "agent", "session", "dir", "tool", "call", "was", "verdict", "hook", "reason", "code", "prompt", "became", "refused"}) // to memory
	for i := range rows {
		r := &rows[i]
		var d backtest.Decision
		if len(r.By) > 0 {
			d = r.By[0]
		}
		line := []string{r.Time.Format(time.RFC3339), r.Agent, r.Session, r.Dir, r.Tool, r.Call, string(r.Was), string(r.Verdict), d.Hook, d.Reason, d.Code, r.Prompt, string(r.Became), r.Refused}
		for j := range line {
			line[j] = text.Sanitize(line[j], len(line[j]))
			if strings.IndexByte("=+-@\t", (line[j] + " ")[0]) >= 0 {
				line[j] = "'" + line[j] // a spreadsheet would take it for a formula
			}
		}
		_ = w.Write(line) // to memory
	}
	w.Flush()
}
