package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/plan"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

type dispatchFlags struct {
	recordFlags

	Dir     string  `flag:"dir"     usage:"working {DIR} (default the current directory)"`
	Input   string  `flag:"input"   usage:"JSON {FILE} with the phase's input, or -"`
	Context string  `flag:"context" usage:"JSON {FILE} with the context, or -"`
	Wait    bool    `flag:"wait"    usage:"wait for background work, and show how it ended"`
	InTurn  *string `flag:"in-turn" usage:"run it in a turn of a user who says {TEXT}, behind the turn's prompt: with policies, contexts and tools"`
}

// dispatchPhase reads the input before the configuration: a mistyped field is reported without starting a plugin.
func (a *app) dispatchPhase(ctx context.Context, f *dispatchFlags, args []string) error {
	in, turn, err := a.dispatchInput(phases.Phase(args[0]), f)
	if err != nil {
		return err
	}
	cfg, _, err := a.loadConfig()
	if err != nil {
		return err
	}
	return a.dispatch(ctx, cfg, turn, in, f, nil)
}

// dispatch runs one phase and prints its outcome. ready, if set, may refuse the engine first.
func (a *app) dispatch(ctx context.Context, cfg *config.Config, turn phases.Context, in phases.Input, f *dispatchFlags, ready func(*runtime.Engine) error) error {
	a.record = f.recordFlags
	var out *phases.Outcome
	err := a.withEngine(ctx, cfg, runtime.Options{}, func(ctx context.Context, eng *runtime.Engine) error {
		if ready != nil {
			if err := ready(eng); err != nil {
				return err
			}
		}
		return background(ctx, eng, f.Wait, &out, func(ctx context.Context) (err error) {
			if f.InTurn != nil {
				out, err = dispatchInTurn(ctx, eng, turn, in, *f.InTurn)
			} else {
				out, err = eng.Dispatch(ctx, turn, in)
			}
			if phases.CodeOf(err) == phases.CauseTurnNeeded {
				return usagef("%w: give --in-turn TEXT, with what the user says in that turn", err)
			}
			return err
		})
	})
	if out == nil || codeOf(err) == exitInterrupted {
		return err
	}
	out = out.For(phases.AudienceOperator)
	if printed := a.print(out, func() { a.printOutcome(out) }); printed != nil {
		return printed
	}
	switch {
	case out.Error != nil:
		return refused(withHint(out.Error))
	case err != nil:
		return unable(err)
	case out.Decision != nil && out.Decision.Verdict == phases.VerdictDeny:
		return answerNo() // the output has said who, and why
	}
	return nil
}

func dispatchInTurn(ctx context.Context, eng *runtime.Engine, where phases.Context, in phases.Input, userText string) (*phases.Outcome, error) {
	turn, err := eng.BeginTurn(ctx, where)
	if err != nil {
		return nil, err
	}
	done, err := turn.Compile(ctx, runtime.CompileInput{UserText: userText, ToolCalling: true})
	switch {
	case done != nil && done.Error != nil:
		return nil, refused(fmt.Errorf("the turn does not get as far as %s: %w", phases.PhaseOf(in), withHint(done.Error)))
	case err != nil:
		return nil, unable(err)
	}
	if end, ok := in.(*phases.PostTurnInput); ok {
		return turn.End(ctx, end)
	}
	return turn.Dispatch(ctx, in)
}

func (a *app) dispatchInput(phase phases.Phase, f *dispatchFlags) (phases.Input, phases.Context, error) {
	if _, ok := phases.Standard().Lookup(phase); !ok {
		return nil, phases.Context{}, unknownPhase(phase)
	}
	if f.Input == "-" && f.Context == "-" {
		return nil, phases.Context{}, usagef("--input and --context cannot both be read from standard input")
	}
	data, err := a.readJSON("input", f.Input)
	if err != nil {
		return nil, phases.Context{}, err
	}
	in, err := phases.DecodeInput(phases.Standard(), phase, data)
	if err != nil {
		return nil, phases.Context{}, usagef("--input %s: %w; see: grapnel schema phase:%s", f.Input, err, phase)
	}
	turn, err := a.contextOf(f.Context, f.Dir)
	return in, turn, err
}

// contextOf reads --context, and completes it with --dir and defaults.
func (a *app) contextOf(file, dir string) (phases.Context, error) {
	data, err := a.readJSON("context", file)
	if err != nil {
		return phases.Context{}, err
	}
	turn, err := phases.DecodeContext(data)
	if err != nil {
		return phases.Context{}, usagef("--context %s: %w; see the context in: grapnel schema phase:%s", file, err, phases.PrePromptCompile)
	}
	flags := contextFlags{Dir: dir}
	if turn, err = flags.fill(turn); err != nil {
		return phases.Context{}, err
	}
	// Outside a turn the engine leaves the clock to its caller.
	if turn.Now.IsZero() {
		turn.Now = time.Now()
	}
	return turn, nil
}

func unknownPhase(phase phases.Phase) error {
	return usagef("unknown phase %q%s; see: grapnel schema", phase, suggest.DidYouMean(string(phase), phases.Standard().Names()))
}

func completePhases(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return phases.Standard().Names(), cobra.ShellCompDirectiveNoFileComp
}

// background makes a call. If asked to wait, it adds to the outcome how the background work of the call ended.
func background(ctx context.Context, eng *runtime.Engine, wait bool, out **phases.Outcome, call func(ctx context.Context) error) error {
	if !wait {
		return call(ctx)
	}
	calling, ended := eng.Collect(ctx)
	err := call(calling)
	rows, late := ended(ctx)
	if *out == nil {
		return err
	}
	(*out).Background = rows
	return errors.Join(err, late)
}

func (a *app) printOutcome(out *phases.Outcome) {
	a.printf("%s", rule(string(out.Phase)))
	if d := out.Decision; d != nil { // the strongest reason is not always the surprising one
		a.printf("decision: %s\n", d.Verdict)
		printList(a, "reasons", "verdict|subscription|code|reason", d.Reasons, func(r *phases.Reason) cells { return cells{r.Verdict, r.Subscription, r.ReasonCode, r.Reason} })
	}
	a.printMerged(&out.Merged)
	a.printRuns(out.Runs, false)
	a.printBackground(out.Background)
	a.printPlugins("plugins not ready", notReady(out.Plugins))
	a.printDiagnostics(out.Diagnostics)
	if len(out.Runs) == 0 {
		a.println("nothing is subscribed to this phase")
	}
	if out.Budget.GrantedMS == 0 { // nobody waits for background work
		a.printf("\nused %s ms\n", words.Millis(out.Budget.UsedMS))
	} else {
		a.printf("\nused %s of %s ms\n", words.Millis(out.Budget.UsedMS), words.Millis(out.Budget.GrantedMS))
	}
}

func (a *app) printBackground(rows []phases.BackgroundRun) {
	t := newTable("background work", "subscription|job|state|code|>tries|>ms|contributions")
	var remarks []phases.Diagnostic
	for i := range rows {
		r := &rows[i]
		code := strings.TrimSpace(r.Code + " " + r.PluginCode)
		t.add(r.Subscription, r.Kind, r.State, code, r.Attempts, words.Millis(r.DurationMS), joined(r.Contributions))
		for _, d := range r.Diagnostics {
			d.Subscription = cmp.Or(d.Subscription, r.Subscription)
			remarks = append(remarks, d)
		}
	}
	a.printTable(t)
	a.printDiagnostics(remarks)
}

func (a *app) printMerged(m *phases.Merged) {
	a.printPolicies(m.Policies)
	printList(a, "rewrites", "path|value|owner", m.Rewrites, func(r *phases.MergedRewrite) cells { return cells{r.Path, string(r.Value), r.Owner} })
	printList(a, "tools", "tool|owner|bundle", m.Tools, func(t *phases.MergedTool) cells { return cells{t.Name, t.Owner, t.BundleID} })
	a.printReminders(m.Reminders)
	printList(a, "sections", "section|owner|stability|>priority|>chars|cut", m.Sections, func(s *phases.MergedSection) cells {
		return cells{s.SectionID, s.Owner, s.Stability, s.Priority, text.Thousands(text.Chars(s.Content)), cutText(s.Truncation)}
	})
	printList(a, "contexts", "context|owner|domain|>priority|>chars|cut", m.Contexts, func(c *phases.ContextEntry) cells {
		return cells{c.ContributionID, c.Owner, c.Domain, c.Priority, text.Thousands(text.Chars(c.Content)), cutText(c.Truncation)}
	})
	for i := range m.Sections {
		a.printf("\n%s%s", rule("section "+clean(m.Sections[i].SectionID)), endLine(m.Sections[i].Content))
	}
	for i := range m.Contexts {
		a.printf("\n%s%s", rule("context "+clean(m.Contexts[i].ContributionID)), endLine(m.Contexts[i].Content))
	}
}

func (a *app) plan(ctx context.Context, _ *noFlags, args []string) error {
	var phase phases.Phase
	if len(args) == 1 {
		phase = phases.Phase(args[0])
		if _, ok := phases.Standard().Lookup(phase); !ok {
			return unknownPhase(phase)
		}
	}
	cfg, from, err := a.loadConfig()
	if err != nil {
		return err
	}
	var doc plan.Document
	var rows []phases.PluginRow
	err = a.withEngine(ctx, cfg, runtime.Options{}, func(_ context.Context, eng *runtime.Engine) error {
		doc, rows = eng.Plan(phase), eng.Plugins()
		return nil
	})
	if err != nil {
		return err
	}
	return a.print(doc, func() { a.printPlan(doc, rows, phase != "", from) })
}

func (a *app) printPlan(doc plan.Document, rows []phases.PluginRow, asked bool, from origin) {
	something := false
	for i := range doc.Phases {
		ph := &doc.Phases[i]
		if len(ph.Stages)+len(ph.Off)+len(ph.Require) == 0 && !asked {
			continue
		}
		if something {
			a.println()
		}
		something = true
		a.printPhase(ph)
	}
	if !something {
		a.printf("no plugin subscribes to anything (%s)\n", clean(from.name()))
	}
	a.printPlugins("plugins not ready: hooks that they never described are not in the plan", notReady(rows))
}

// Rows stand in the order of the plan, which is the order of results.
func (a *app) printPhase(ph *plan.PhaseView) {
	a.printf("%s", rule(string(ph.Phase)))
	a.println(cmp.Or(words.If(ph.BudgetMS > 0, "budget "+words.Millis(ph.BudgetMS)+" ms"), "in the background") +
		words.If(len(ph.Require) > 0, ", requires "+strings.Join(ph.Require, ", ")))
	t := newTable("", "stage|>layer|subscription|plugin|>priority|>timeout ms|on_failure|when|needs|withheld")
	for _, stage := range ph.Stages {
		for i, layer := range stage.Layers {
			for j := range layer {
				s := &layer[j]
				t.add(stage.Role, i, s.Subscription, s.Plugin, s.Priority, words.If(s.ProposedTimeoutMS != s.TimeoutMS, words.Millis(s.ProposedTimeoutMS)+" -> ")+words.Millis(s.TimeoutMS), failureText(s.OnFailure), s.When, strings.Join(s.Needs, ", "), withheldText(s))
			}
		}
	}
	a.printTable(t)
	if len(t.rows)+len(ph.Off) == 0 {
		a.println("  nothing is subscribed to this phase")
	}
	printList(a, "off", "subscription|reason", ph.Off, func(o *plan.OffView) cells { return cells{o.Subscription, o.Reason} })
}

// withheldText lists what a hook does not get: of its needs, or of the input if it declares none.
func withheldText(s *plan.SubscriptionView) string {
	var lacks []string
	for _, name := range s.Withheld {
		if slices.Contains(s.Needs, name) || len(s.Needs) == 0 && !slices.Contains(phases.SeenSets(), name) {
			lacks = append(lacks, name)
		}
	}
	return strings.Join(lacks, ", ")
}

func failureText(f phases.OnFailure) string {
	words := []string{string(f.Default)}
	for _, cause := range slices.Sorted(maps.Keys(f.ByCause)) {
		words = append(words, string(cause)+": "+string(f.ByCause[cause]))
	}
	return strings.Join(words, ", ")
}
