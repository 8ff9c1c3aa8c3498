package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/explain"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// turnFlags are a turn that is compiled.
type turnFlags struct {
	contextFlags

	Message string `flag:"message" usage:"the user's {TEXT}, or - for standard input"`
	Input   string `flag:"input"   usage:"JSON {FILE}, or -, with model, provider, tools, recall plan and host texts"`
	Persona string `flag:"persona" usage:"persona directory {DIR}, with SOUL.md, IDENTITY.md and USER.md (default none)"`
}

type compileFlags struct {
	turnFlags
	strictFlag
	recordFlags

	Out string `flag:"out" usage:"write the prompt (with --json the whole JSON) to {FILE}; the summary stays on standard output"`
}

// compile prints what is known of the turn even if it was blocked. The error is printed last.
func (a *app) compile(ctx context.Context, f *compileFlags, _ []string) error {
	a.record = f.recordFlags
	cfg, from, err := a.loadConfig()
	if err != nil {
		return err
	}
	job, err := a.compileJob(&f.turnFlags)
	if err != nil {
		return err
	}
	rec, err := a.openRecorder(ctx, cfg, from)
	if err != nil {
		return err
	}
	done, err := a.compileTurn(ctx, cfg, job, rec)
	if closed := rec.close(); closed != nil && err == nil {
		err = closed
	}
	if done == nil {
		return err
	}
	if printed := a.printCompiled(done, rec, f.Out); printed != nil {
		return printed
	}
	switch {
	case rec.refused():
		return unable(done.Error)
	case done.Error != nil:
		return refused(withHint(done.Error))
	case err != nil:
		return unable(err)
	}
	return f.check(a, done.Manifest.Plugins)
}

type compileJob struct {
	turn phases.Context
	in   runtime.CompileInput
	opts runtime.Options
}

// compileJob reads what a turn is made of, before anything is opened or started.
func (a *app) compileJob(f *turnFlags) (*compileJob, error) {
	turn, err := f.fill(phases.Context{})
	if err != nil {
		return nil, err
	}
	in, err := a.compileInput(f)
	if err != nil {
		return nil, err
	}
	if err := checkPersona(f.Persona); err != nil {
		return nil, err
	}
	// One clock for all that the prompt and the manifest say about time.
	opts := runtime.Options{PersonaDir: f.Persona}
	at := time.Now()
	if !turn.Now.IsZero() {
		at = turn.Now
		opts.Now = func() time.Time { return at }
	}
	in.Facts = api.HostFacts(at)
	if err := countTokens(&opts, in.Model); err != nil {
		return nil, err
	}
	return &compileJob{turn, in, opts}, nil
}

// compileTurn returns nil if there was no turn at all.
func (a *app) compileTurn(ctx context.Context, cfg *config.Config, job *compileJob, rec *recorder) (*runtime.Compiled, error) {
	opts := job.opts
	rec.wire(&opts)
	var loading sync.WaitGroup
	loading.Go(func() { opts.CountTokens(" ") }) // unpacks the vocabulary while plugins start
	defer loading.Wait()
	var done *runtime.Compiled
	err := a.withEngine(ctx, cfg, opts, func(ctx context.Context, eng *runtime.Engine) error {
		var err error
		if done, err = eng.CompileTurn(ctx, job.turn, job.in); done == nil && err != nil {
			return unable(err) // there was no turn at all
		}
		done = done.For(phases.AudienceOperator)
		return err
	})
	if codeOf(err) == exitInterrupted {
		return nil, err
	}
	return done, err
}

func (a *app) printCompiled(done *runtime.Compiled, rec *recorder, out string) error {
	switch {
	case out == "" && a.JSON:
		return a.printJSON(done)
	case out == "":
		if done.Prompt != nil {
			a.printf("%s\n", promptText(done.Prompt))
		}
		a.printTurn(done, rec)
		return nil
	}
	var data []byte
	if a.JSON {
		var err error
		if data, err = encodeJSON(done); err != nil {
			return unable(err)
		}
	} else if done.Prompt != nil {
		data = []byte(promptText(done.Prompt))
	}
	// A turn without a prompt leaves the file of an earlier one alone.
	if data != nil {
		if err := os.WriteFile(out, data, 0o600); err != nil {
			return usagef("--out %s: %w", out, unwrapPath(err))
		}
	}
	a.printTurn(done, rec)
	return nil
}

const codeAsk phases.Cause = "ask" // the code of a turn for which a hook wants confirmation

// withHint adds what to do about an error that a subscription caused.
func withHint(err *phases.Error) error {
	if err.Subscription == "" {
		return err
	}
	plan, alone := "see: grapnel plan "+string(err.Phase), "try it alone with: grapnel plugin run "+explain.PluginOf(err.Subscription)
	slow := "give it more time (timeout, budgets.phases), or another on_failure; " + plan
	hint := map[phases.Cause]string{
		phases.CauseDenied:          "that is the hook's decision; " + plan,
		codeAsk:                     "that is the hook's decision; " + plan,
		phases.CauseTimeout:         slow,
		phases.CauseBudgetExhausted: slow,
		phases.CauseForbidden:       "grant it in the configuration, or take the hook out",
		phases.CauseConflict:        "let only one of them have the slot (grants, enabled: false), or grant join",
		phases.CauseCondition:       "correct the subscription's condition (when)",
		phases.CauseRequiredMissing: "see why with: grapnel explain " + err.Subscription,
		phases.CausePluginError:     alone,
		phases.CauseInvalidReply:    alone,
	}[err.Code]
	return fmt.Errorf("%w; %s", err, cmp.Or(hint, "look at the plugin with: grapnel plugin list"))
}

func (a *app) compileInput(f *turnFlags) (runtime.CompileInput, error) {
	var in runtime.CompileInput
	if f.Input == "-" && f.Message == "-" {
		return in, usagef("--input and --message cannot both be read from standard input")
	}
	data, err := a.readJSON("input", f.Input)
	if err != nil {
		return in, err
	}
	var file api.TurnInput
	if len(data) > 0 {
		if err := strictJSON(data, &file); err != nil {
			return in, usagef("--input %s: %w; see: grapnel schema compile-input", f.Input, err)
		}
	}
	in, message := file.CompileInput(), []byte(f.Message)
	if f.Message == "-" {
		message, err = a.readInput("message", "-")
	}
	if f.Message != "" {
		in.UserText = string(message)
	}
	return in, err
}

func promptText(p *compiler.Prompt) string {
	var b strings.Builder
	b.WriteString(endLine(p.FullText))
	for _, list := range [][]compiler.Message{p.SystemMessages, p.UserMessages} {
		for _, m := range list {
			b.WriteString("\n" + rule(m.Role+" message: "+m.SectionID) + endLine(m.Text))
		}
	}
	return b.String()
}

func endLine(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

func (a *app) printTurn(done *runtime.Compiled, rec *recorder) {
	m := done.Manifest
	a.printHead(m)
	if why := rec.whyLost(); why != "" {
		a.paint(bad, fmt.Sprintf("NOT kept in %s: %s\n", clean(rec.ref.name), oneLine{errors.New(strings.TrimPrefix(why, m.ManifestID+": "))}.Error()))
	} else if rec != nil {
		a.printf("kept in %s · seq %d · hash %s\n", clean(rec.ref.name), m.Seq, m.Hash)
	}
	if done.Prompt == nil {
		a.paint(bad, "there is no prompt: the turn was blocked\n")
	}
	a.printContent(m)
	a.printReminders(done.Reminders)
	a.printDiagnostics(done.Diagnostics)
	a.printCache(m, nil)
	a.printFingerprints(&m.Fingerprints)
	a.printBudgets(&m.Budgets)
}

func (a *app) printHead(m *manifest.Manifest) {
	a.heading(rule("manifest " + m.ManifestID))
	a.printf("profile %s · generation %d · workspace %s · thread %s · turn %s%s%s%s\n",
		m.Profile, m.Generation, clean(m.WorkspaceID), clean(m.ThreadID), clean(m.TurnID), words.If(m.SessionID != "", " · session "+clean(m.SessionID)),
		words.If(m.Epoch > 0, fmt.Sprintf(" · epoch %d", m.Epoch)), words.If(m.Round > 0, fmt.Sprintf(" · round %d", m.Round)))
}

func (a *app) printContent(m *manifest.Manifest) {
	a.printSections(m.Sections, m.Cache.OfAgent, m.Cache.ToolTokens)
	a.printInstructions(m.Sections)
	a.printOmitted(m.Omitted)
	t := newTable("persona directory", "file|status|>chars")
	given := newTable("files that the host gives the model", "file")
	for i := range m.Files {
		if f := &m.Files[i]; f.Status == manifest.FileOfHost {
			given.add(f.Path)
		} else {
			t.add(f.Path, mark(f.Status), text.Thousands(f.Chars))
		}
	}
	a.printTable(t)
	a.printTable(given)
	a.printRuns(m.Runs, true)
	a.printPlugins("plugins not ready", notReady(m.Plugins))
	printList(a, "tools", "tool|owner|bundle|hash|?hidden in", m.Tools, func(t *manifest.Tool) cells {
		return cells{t.Name, t.Owner, t.BundleID, t.Hash, t.HiddenDomain}
	})
	printList(a, "tools of the host", "tool|?owner|?>chars|hash", m.HostTools, func(t *manifest.HostTool) cells {
		return cells{t.Name, t.Owner, words.If(t.Chars > 0, text.Thousands(t.Chars)), t.Hash}
	})
	if h := m.History; h != nil {
		t := newTable("conversation behind the prompt", ">messages|>cut|>summarized|>repaired|hash")
		t.add(text.Thousands(h.Entries), text.Thousands(h.Cut), text.Thousands(h.Summarized), text.Thousands(h.Repaired), h.Hash)
		a.printTable(t)
		printList(a, "new in the conversation", ">message|role|kind|?id|owner|>chars|hash", h.Added, func(p *manifest.MessagePart) cells {
			return cells{p.Message, p.Role, p.Kind, p.ID, p.Owner, text.Thousands(p.Chars), p.Hash}
		})
	}
	a.printPolicies(m.Policies)
	a.printCalls(m.Calls)
	a.printRequests(m.Requests)
	a.printHostEvents(m.HostEvents)
	a.printAudits("audit events", m.Audits)
}

// printSections prints sections; those of a record with OfAgent stand where the agent puts them. Tokens have a column where they were counted; numbers of two tokenizers cannot be compared.
func (a *app) printSections(sections []manifest.Section, ofAgent bool, tools int) {
	sum, tokenizer := 0, ""
	printList(a, "sections", "section|owner|stability|placement|>chars|?>tokens|cut|fingerprint", sections, func(s *manifest.Section) cells {
		if s.Tokens != nil {
			sum, tokenizer = sum+*s.Tokens, s.Tokenizer
		}
		return cells{s.SectionID, s.Owner, s.Stability, cmp.Or(words.If(ofAgent, "agent's"), string(s.Placement)), text.Thousands(s.Chars), tokensText(s.Tokens), styled{caution, cutText(s.Truncation)}, s.Fingerprint}
	})
	if tokenizer != "" {
		a.printf("  %s tokens together%s, counted as %s\n", text.Thousands(sum+tools), words.If(tools > 0, fmt.Sprintf(": %s of text, %s of tools", text.Thousands(sum), text.Thousands(tools))), clean(tokenizer))
	}
}

// printInstructions prints the files and documents whose revision a hash records.
func (a *app) printInstructions(sections []manifest.Section) {
	t := newTable("instructions", "section|kind|from|id|hash")
	for i := range sections {
		for _, ref := range sections[i].SourceRefs {
			if ref.Kind == "document" || ref.Hash != "" {
				t.add(sections[i].SectionID, ref.Kind, ref.Label, ref.ID, ref.Hash)
			}
		}
	}
	a.printTable(t)
}

func tokensText(n *int) string {
	if n == nil {
		return ""
	}
	return text.Thousands(*n)
}

func cutText(t *phases.Truncation) string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf("%s %s/%s", t.Limit, text.Thousands(t.Kept), text.Thousands(t.Original))
}

func (a *app) printOmitted(list []phases.Omitted) {
	printList(a, "omitted", "id|owner|reason|>chars", list, func(l *phases.Omitted) cells {
		return cells{l.ID, l.Owner, styled{caution, l.Reason}, text.Thousands(l.Chars)}
	})
}

func (a *app) printRuns(runs []phases.Run, several bool) {
	printList(a, "hook runs", "?phase|subscription|stage|state|code|>ms|>contributions", runs, func(r *phases.Run) cells {
		return cells{words.If(several, string(r.Phase)), r.Subscription, r.Stage, mark(r.State), explain.Code(r), r.DurationMS, len(r.Contributions)}
	})
}

func notReady(rows []phases.PluginRow) []phases.PluginRow {
	return slices.DeleteFunc(slices.Clone(rows), func(r phases.PluginRow) bool { return r.State == phases.PluginReady })
}

func (a *app) printPlugins(title string, rows []phases.PluginRow) {
	printList(a, title, "plugin|state|version|sha256|tier|>restarts|code|detail", rows, func(r *phases.PluginRow) cells {
		return cells{r.Plugin, mark(r.State), r.Version, shortSum(r.SHA256), r.Tier, r.Restarts, r.Code, uncut(r.Message)}
	})
}

// shortSum is enough of a checksum to distinguish it from others.
func shortSum(sum string) string {
	const digits = 12
	if len(sum) == 64 {
		return sum[:digits] + "…"
	}
	return sum
}

func (a *app) printPolicies(list []phases.PolicyEntry) {
	printList(a, "policies", "policy|value|>priority|owner", list, func(p *phases.PolicyEntry) cells {
		return cells{p.Domain + "/" + p.Key, string(p.Value), p.Priority, p.Owner}
	})
}

// printHanded prints reminders that were handed to the host.
func (a *app) printHanded(list []manifest.Reminder) {
	printList(a, "reminders", "type|owner|>chars|with|hash", list, func(r *manifest.Reminder) cells {
		return cells{r.Type, r.Owner, text.Thousands(r.Chars), cmp.Or(words.If(r.With != "", "the answer to "+string(r.With)), "the prompt"), r.Hash}
	})
}

func (a *app) printReminders(list []phases.MergedReminder) {
	printList(a, "reminders", "type|owner|text", list, func(r *phases.MergedReminder) cells { return cells{r.Type, r.Owner, r.Text} })
}

// printDiagnostics prints warnings and errors, each once, and counts the rest.
func (a *app) printDiagnostics(list []phases.Diagnostic) {
	t := newTable("diagnostics", "severity|code|about|message")
	seen := map[string]bool{}
	remarks := 0
	for i := range list {
		d := &list[i]
		about := cmp.Or(d.Subscription, d.Plugin, d.Slot)
		key := strings.Join([]string{string(d.Severity), d.Code, about, d.Slot, d.Message}, "\x00")
		switch {
		case seen[key]:
		case d.Severity == phases.SeverityWarning || d.Severity == phases.SeverityError:
			t.add(mark(d.Severity), d.Code, about, uncut(d.Message))
		default:
			remarks++
		}
		seen[key] = true
	}
	a.printTable(t)
	if remarks > 0 {
		a.printf("\n%d further remarks without a warning; --json shows them\n", remarks)
	}
}

func (a *app) printFingerprints(f *manifest.Fingerprints) {
	a.heading("\nfingerprints")
	a.printFields("full", f.FingerprintFull, "stable", f.FingerprintStable, "dynamic", f.FingerprintDynamic, "tools", f.FingerprintTools)
}

func (a *app) printBudgets(b *manifest.Budgets) {
	t := newTable("", "|>used ms|>granted ms|>used chars|>granted chars")
	add := func(name string, b manifest.Budget) {
		bounded := b.GrantedChars > 0
		t.add(name, b.UsedMS, b.GrantedMS, words.If(bounded, text.Thousands(b.UsedChars)), words.If(bounded, text.Thousands(b.GrantedChars)))
	}
	add("turn", b.Turn)
	for _, p := range b.Phases {
		add(string(p.Phase), p.Budget)
	}
	a.heading("\nbudgets")
	a.printTable(t)
}
