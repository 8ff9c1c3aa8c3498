package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/persona"
	"github.com/grapnelhq/grapnel/internal/sections"
	"github.com/grapnelhq/grapnel/internal/suggest"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

type explanation struct {
	ID         string      `json:"id"          jsonschema:"what was asked about"`
	Kind       explainKind `json:"kind"`
	ManifestID string      `json:"manifest_id" jsonschema:"the manifest that this is about"`
	In         bool        `json:"in"          jsonschema:"whether the section or the sentence is in the prompt, anything of the subscription or plugin was kept, or the model was offered the tool"`
	Why        string      `json:"why"         jsonschema:"the reason in a sentence, for people"`

	Sections    []manifest.Section    `json:"sections"     jsonschema:"the section itself, or those with text of the subscription"`
	HookSources []phases.HookSource   `json:"hook_sources" jsonschema:"the contributions that were kept"`
	Omitted     []phases.Omitted      `json:"omitted"      jsonschema:"what was dropped, and why"`
	Runs        []phases.Run          `json:"runs"         jsonschema:"the hook runs concerned; of a section that nobody contributed those that could have"`
	Plugins     []phases.PluginRow    `json:"plugins"      jsonschema:"the plugins concerned"`
	Diagnostics []manifest.Diagnostic `json:"diagnostics"  jsonschema:"remarks about the section or its hooks"`
	Tools       []manifest.Tool       `json:"tools"        jsonschema:"the tool itself, or those of the plugin"`
	Calls       []manifest.Call       `json:"calls"        jsonschema:"what was decided about the tool, or by the plugin"`
	Said        []saying              `json:"said"         jsonschema:"who wrote which piece of the sentence, and where it stands"`
}

type explainKind string

const (
	explainsSection      explainKind = "section"
	explainsSubscription explainKind = "subscription"
	explainsPlugin       explainKind = "plugin"
	explainsTool         explainKind = "tool"
	explainsSentence     explainKind = "sentence"
)

// A recorded turn is explained if there is one: a failed run can rarely be repeated.
func (a *app) explainCommand() *cobra.Command {
	var f compileFlags
	var given, sentence string
	var now bool
	c := newCommand("explain SECTION|SUBSCRIPTION|PLUGIN|TOOL",
		"Say why a section, subscription, plugin or tool is, or is not, in the prompt, or who said a sentence", atMost(1, "explain takes one id"),
		func(c *cobra.Command, args []string) error {
			if given != "" && now {
				return usagef("--manifest and --compile contradict each other")
			}
			if (len(args) == 0) == (sentence == "") {
				return usagef("explain needs one SECTION, SUBSCRIPTION, PLUGIN or TOOL, such as agents_md or agentsdoc.prompt, or --sentence; see: %s --help", c.CommandPath())
			}
			known, err := a.recordWanted(c, given, now, &f)
			if err != nil {
				return err
			}
			e, err := known.answer(append(args, sentence)[0], sentence != "")
			if err != nil {
				return err
			}
			return a.print(e, func() {
				a.printExplanation(e)
				a.printf("\n%s\n", known.about())
			})
		})
	f.register(c)
	c.Flags().StringVar(&given, "manifest", "", "a manifest: an `ID` of the store, latest, a file, or -")
	c.Flags().StringVar(&sentence, "sentence", "", "say who wrote this `TEXT` of the prompt; of kept manifests, texts must have been kept")
	c.Flags().BoolVar(&now, "compile", false, "compile a turn now, also where there is a store")
	return c
}

// answer explains an id, or a sentence.
func (r *record) answer(asked string, sentence bool) (*explanation, error) {
	switch {
	case sentence && r.textsErr != nil:
		return nil, r.textsErr
	case sentence && r.texts == nil:
		return nil, refused(fmt.Errorf("the texts of the manifest %s %s", r.ManifestID, whyNoTexts(&r.Manifest)))
	case sentence:
		return r.explainSentence(asked, r.texts), nil
	}
	if e := r.explain(asked); e != nil {
		return e, nil
	}
	return nil, refused(fmt.Errorf("the manifest %s knows no section, subscription, plugin or tool %q%s; it knows: %s",
		r.ManifestID, asked, suggest.DidYouMean(asked, r.ids()), quotedList(r.ids())))
}

func (a *app) recordWanted(c *cobra.Command, given string, now bool, f *compileFlags) (*record, error) {
	switch {
	case given != "" && api.IsManifestID(given), given == "" && !now && !saysCompile(c):
		return a.recordKept(c.Context(), given, f)
	case given != "":
		return a.readManifest("manifest", given)
	}
	return a.recordNow(c.Context(), f)
}

// saysCompile reports whether a flag was given that only a turn compiled now can follow. A flag is never ignored.
func saysCompile(c *cobra.Command) bool {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&compileFlags{}).registerOn(own)
	said := false
	c.Flags().Visit(func(f *pflag.Flag) {
		said = said || own.Lookup(f.Name) != nil && f.Name != "thread" && f.Name != "workspace"
	})
	return said
}

// recordKept falls back to a turn compiled now if there is no store, or the configuration's is empty.
func (a *app) recordKept(ctx context.Context, id string, f *compileFlags) (*record, error) {
	cfg, from, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	if id == "" && a.storeNamed(cfg, from).dsn == "" {
		return a.recordNow(ctx, f)
	}
	var r record
	err = a.withStore(ctx, store.Options{ReadOnly: true}, func(s *openedStore) error {
		m, err := api.Find(ctx, s, cmp.Or(id, api.Latest), store.Filter{Workspace: f.workspace, Thread: f.thread})
		if err != nil {
			return notThere(err)
		}
		r.Manifest = *m
		r.texts, r.textsErr = keptTexts(ctx, s, m)
		return nil
	})
	switch {
	case id == "" && a.store == "" && store.HasCode(err, store.CodeNotFound):
		return a.recordNow(ctx, f)
	case err != nil:
		return nil, err
	}
	return &r, nil
}

// record is a manifest and what else is known about its turn.
type record struct {
	manifest.Manifest
	claims map[string][]string // plugins by the sections that their grants name; nil if only the manifest is known
	now    bool
	// texts are those of the sections, without headings; nil if they are not known, for the reason textsErr if it is not
	// that they were not kept.
	texts    []string
	textsErr error
}

func (r *record) about() string {
	if r.now {
		return "manifest " + r.ManifestID + ", compiled now"
	}
	return fmt.Sprintf("manifest %s of the turn %s in the thread %s, %s", r.ManifestID, clean(r.TurnID), clean(r.ThreadID), clock(r.CreatedAt))
}

func (a *app) recordNow(ctx context.Context, f *compileFlags) (*record, error) {
	cfg, _, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	job, err := a.compileJob(f)
	if err != nil {
		return nil, err
	}
	done, err := a.compileTurn(ctx, cfg, job, nil)
	if done == nil {
		return nil, err
	}
	r := &record{Manifest: *done.Manifest, claims: map[string][]string{}, now: true, texts: sectionTexts(done.Manifest, done.Prompt)}
	r.Diagnostics = turnDiagnostics(done)
	for i := range cfg.Plugins {
		for _, id := range cfg.Plugins[i].Grants.Sections {
			if id[len(id)-1] != '*' { // a wildcard claims no section in particular
				r.claims[id] = append(r.claims[id], cfg.Plugins[i].Name)
			}
		}
	}
	return r, nil
}

// turnDiagnostics are the turn's own diagnostics, which, unlike the manifest's, have their messages.
func turnDiagnostics(done *runtime.Compiled) []manifest.Diagnostic {
	var rows []manifest.Diagnostic
	for i := range done.Diagnostics {
		d := &done.Diagnostics[i]
		row := manifest.Diagnostic{Code: d.Code, Cause: d.Cause, Severity: d.Severity, Message: d.Message, SectionID: d.Slot, HookSource: d.Subscription}
		if !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
	}
	return rows
}

func (a *app) readManifest(flag, path string) (*record, error) {
	data, err := a.readJSON(flag, path)
	if err != nil {
		return nil, err
	}
	var wrapped struct {
		Manifest json.RawMessage  `json:"manifest"`
		Prompt   *compiler.Prompt `json:"prompt"`
	}
	if err := json.Unmarshal(data, &wrapped); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			err = errors.New("want a JSON object: a manifest, or what compile --json prints")
		}
		return nil, usagef("%s: %w", inputName(flag, path), err)
	}
	if len(wrapped.Manifest) > 0 {
		data = wrapped.Manifest
	}
	m, err := manifest.Parse(data)
	if err != nil {
		return nil, usagef("%s: %w", inputName(flag, path), err)
	}
	return &record{Manifest: m, texts: sectionTexts(&m, wrapped.Prompt)}, nil
}

func (r *record) fileOf(section string) *manifest.File {
	row := sections.Lookup(section)
	if row == nil || row.File == "" {
		return nil
	}
	i := slices.IndexFunc(r.Files, func(f manifest.File) bool { return f.Path == row.File })
	if i < 0 {
		return nil
	}
	return &r.Files[i]
}

func (r *record) ids() []string {
	ids := slices.Clone(r.SectionIDs)
	for _, l := range r.Omitted {
		ids = append(ids, l.ID)
	}
	for id := range r.claims {
		ids = append(ids, id)
	}
	for _, row := range sections.All() {
		if r.fileOf(row.ID) != nil {
			ids = append(ids, row.ID)
		}
	}
	for i := range r.Runs {
		ids = append(ids, r.Runs[i].Subscription)
	}
	for i := range r.Plugins {
		ids = append(ids, r.Plugins[i].Plugin)
	}
	for i := range r.Tools {
		ids = append(ids, r.Tools[i].Name)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (r *record) explain(id string) *explanation {
	e := &explanation{ID: id, ManifestID: r.ManifestID, Plugins: []phases.PluginRow{}, Tools: []manifest.Tool{}, Calls: []manifest.Call{}, Said: []saying{}}
	switch {
	case r.isSection(id):
		r.explainSection(e)
	case r.isSubscription(id):
		r.explainSubscription(e)
	case slices.ContainsFunc(r.Plugins, func(p phases.PluginRow) bool { return p.Plugin == id }):
		r.explainPlugin(e)
	case r.isTool(id):
		r.explainTool(e)
	default:
		return nil
	}
	return e
}

// isSection excludes ids of contributions, which have a "#" and may be omitted too.
func (r *record) isSection(id string) bool {
	_, claimed := r.claims[id]
	return claimed || sections.Lookup(id) != nil || r.fileOf(id) != nil || slices.Contains(r.SectionIDs, id) ||
		slices.ContainsFunc(r.Omitted, func(l phases.Omitted) bool { return l.ID == id && !strings.Contains(id, "#") })
}

// isSubscription also accepts ids of plugins that never described themselves.
func (r *record) isSubscription(id string) bool {
	plugin := pluginOf(id)
	return slices.ContainsFunc(r.Runs, func(run phases.Run) bool { return run.Subscription == id }) || plugin != id &&
		slices.ContainsFunc(r.Plugins, func(p phases.PluginRow) bool { return p.Plugin == plugin && p.State != phases.PluginReady })
}

// explainSection includes, for a missing section, the runs of all hooks that could have written it.
func (r *record) explainSection(e *explanation) {
	e.Kind = explainsSection
	e.Sections = filtered(r.Sections, func(s *manifest.Section) bool { return s.SectionID == e.ID })
	e.HookSources = filtered(r.HookSources, func(h *phases.HookSource) bool {
		return h.SectionID == e.ID || e.ID == sections.DynamicContext && h.ContributionKind == phases.KindPromptContext
	})
	e.Omitted = filtered(r.Omitted, func(l *phases.Omitted) bool { return l.ID == e.ID })
	e.In = len(e.Sections) > 0
	owners := slices.Clone(r.claims[e.ID])
	for _, l := range e.Omitted {
		owners = append(owners, l.Owner)
	}
	e.Runs = filtered(r.Runs, func(run *phases.Run) bool {
		if slices.ContainsFunc(e.HookSources, func(h phases.HookSource) bool { return h.SubscriptionID == run.Subscription }) {
			return true
		}
		return !e.In && run.Phase == phases.PrePromptCompile && slices.Contains(owners, run.Plugin)
	})
	e.Diagnostics = filtered(r.Diagnostics, func(d *manifest.Diagnostic) bool {
		return d.SectionID == e.ID || d.HookSource != "" && e.ran(d.HookSource)
	})
	for i := range e.Sections {
		owners = append(owners, e.Sections[i].Owner)
	}
	r.addPlugins(e, owners)
	e.Why = r.whySection(e)
}

// What was omitted is recorded by owner; so if nothing was kept, everything that its plugin lost is shown.
func (r *record) explainSubscription(e *explanation) {
	e.Kind = explainsSubscription
	e.HookSources = filtered(r.HookSources, func(h *phases.HookSource) bool { return h.SubscriptionID == e.ID })
	gave := func(section string) bool {
		return section != "" && slices.ContainsFunc(e.HookSources, func(h phases.HookSource) bool { return h.SectionID == section })
	}
	e.Sections = filtered(r.Sections, func(s *manifest.Section) bool { return gave(s.SectionID) })
	e.Runs = filtered(r.Runs, func(run *phases.Run) bool { return run.Subscription == e.ID })
	e.Omitted = filtered(r.Omitted, func(l *phases.Omitted) bool {
		return strings.HasPrefix(l.ID, e.ID+"#") || gave(l.ID) || len(e.HookSources) == 0 && len(e.Runs) > 0 && l.Owner == pluginOf(e.ID)
	})
	e.Diagnostics = filtered(r.Diagnostics, func(d *manifest.Diagnostic) bool { return d.HookSource == e.ID })
	e.In = len(e.HookSources) > 0
	r.addPlugins(e, []string{pluginOf(e.ID)})
	e.Why = whySubscription(e)
}

func (e *explanation) ran(id string) bool {
	return slices.ContainsFunc(e.Runs, func(run phases.Run) bool { return run.Subscription == id })
}

func (r *record) addPlugins(e *explanation, names []string) {
	for i := range e.Runs {
		names = append(names, e.Runs[i].Plugin)
	}
	e.Plugins = filtered(r.Plugins, func(p *phases.PluginRow) bool { return slices.Contains(names, p.Plugin) })
}

// filtered never returns nil, so that JSON has a list.
func filtered[T any](list []T, want func(*T) bool) []T {
	out := []T{}
	for i := range list {
		if want(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}

// whySection says where the section is, or the most certain reason for its absence.
func (r *record) whySection(e *explanation) string {
	if len(e.Sections) > 0 {
		s := &e.Sections[0]
		why := fmt.Sprintf("it is section %d of %d, %s characters by %s", s.Position+1, len(r.Sections), text.Thousands(s.Chars), ownerText(s.Owner))
		if t := s.Truncation; t != nil {
			why += fmt.Sprintf("; the limit %q cut it from %s to %s", t.Limit, text.Thousands(t.Original), text.Thousands(t.Kept))
		}
		return why
	}
	if len(e.Omitted) > 0 {
		return fmt.Sprintf("it was omitted: %s (%s)", omittedText(e.Omitted[0].Reason, r.Profile), ownerText(e.Omitted[0].Owner))
	}
	if f := r.fileOf(e.ID); f != nil {
		return cmp.Or(map[string]string{
			persona.StatusMissing: f.Path + " is not in the persona directory",
			persona.StatusLoaded:  f.Path + " in the persona directory is empty",
		}[f.Status], fmt.Sprintf("%s in the persona directory was not read (%s)", f.Path, f.Status))
	}
	for i := range e.Plugins {
		if p := &e.Plugins[i]; p.State != phases.PluginReady {
			return fmt.Sprintf("the plugin %s, which may write it, is %s: %s", p.Plugin, p.State, detailText(p))
		}
	}
	for i := range e.Runs {
		if run := &e.Runs[i]; !run.State.Completed() {
			return run.Subscription + ", which may write it, gave nothing: " + stateText(run)
		}
	}
	if row := sections.Lookup(e.ID); row != nil && !row.Hooks {
		return row.Absent
	}
	if len(e.Runs) > 0 {
		return "no hook contributed it: those that may write it ran and gave nothing for it"
	}
	return "no hook contributed it: no plugin that may write it has a hook that ran"
}

func ownerText(owner string) string {
	return cmp.Or(map[string]string{phases.OwnerBuiltin: "the compiler", phases.OwnerHost: "the host"}[owner], "the plugin "+owner)
}

func omittedText(reason string, profile phases.Profile) string {
	return cmp.Or(map[string]string{
		compiler.ReasonBudget:         "its text budget is used up (budget)",
		compiler.ReasonProfile:        "the profile " + string(profile) + " does not have it (profile)",
		compiler.ReasonBlank:          "it has no text (blank)",
		compiler.ReasonFiltered:       "its condition is not met (filtered)",
		"duplicate":                   "the same was delivered before (duplicate)",
		string(phases.CauseConflict):  "another subscription holds the slot (conflict)",
		string(phases.CauseForbidden): "its plugin is not granted it (forbidden)",
	}[reason], reason)
}

// Of several runs the last counts.
func whySubscription(e *explanation) string {
	if len(e.Runs) == 0 {
		for i := range e.Plugins {
			p := &e.Plugins[i]
			return fmt.Sprintf("the plugin %s is %s and has not described its hooks: %s", p.Plugin, p.State, detailText(p))
		}
	}
	run := &e.Runs[len(e.Runs)-1]
	if n := len(e.HookSources); n > 0 {
		why := fmt.Sprintf("%s, and %d of its contributions %s kept", stateText(run), n, plural(n, "was", "were"))
		if run.State.Completed() {
			return why
		}
		return why + " as its fallback"
	}
	switch {
	case run.Stage == phases.StageTool && run.Code == phases.CodeToolError:
		return "the tool was called, and reported a failure to the model (" + run.Code + ")"
	case run.Stage == phases.StageTool:
		return "the tool was called: " + stateText(run)
	case run.State.Completed() && len(e.Omitted) > 0:
		return stateText(run) + ", and what it contributed was omitted: " + omittedText(e.Omitted[0].Reason, "")
	case run.State.Completed():
		return stateText(run) + " and contributed nothing that was kept"
	}
	return stateText(run)
}

func stateText(run *phases.Run) string {
	switch run.State {
	case phases.StateFiltered:
		if len(run.RewrittenBy) == 0 {
			return "its condition was false for the input as the host gave it, so it did not run"
		}
		return "its condition was false for the input as " + strings.Join(run.RewrittenBy, ", ") + " had rewritten it, so it did not run"
	case phases.StateShadowed:
		return "it ran in the shadow" + textIf(run.Verdict != "", ", and would have decided "+string(run.Verdict)) + ": nothing of it is applied"
	case phases.StateTimedOut:
		return fmt.Sprintf("it was still working when its time was up, after %s ms", millis(run.DurationMS))
	}
	return cmp.Or(map[phases.RunState]string{
		phases.StateSucceeded:       "it ran",
		phases.StateDenied:          "it ran and denied",
		phases.StateCached:          "its answer came from the cache",
		phases.StateDisabled:        "it is switched off (" + run.Code + ")",
		phases.StateQueued:          "it runs in the background",
		phases.StateUnavailable:     "its plugin took no calls (" + run.Code + ")",
		phases.StateBudgetExhausted: "no time was left to start it (" + run.Code + ")",
		phases.StateCancelled:       "it was cancelled (" + run.Code + ")",
	}[run.State], "it failed ("+codeText(run)+")")
}

func quotedList(ids []string) string {
	const most = 20
	return strings.Join(ids[:min(len(ids), most)], ", ") + textIf(len(ids) > most, fmt.Sprintf(" and %d more", len(ids)-most))
}

func (a *app) printExplanation(e *explanation) {
	answer := "is in the prompt"
	switch {
	case !e.In:
		answer = "is not in the prompt"
	case e.Kind == explainsSubscription, e.Kind == explainsPlugin:
		answer = "contributed"
	case e.Kind == explainsTool:
		answer = "is offered to the model"
	}
	a.printf("%s %s %s: %s\n", e.Kind, clean(e.ID), answer, clean(e.Why))
	printList(a, "said", "section|>offset|>length|owner|subscription|contribution|text", e.Said, func(s *saying) cells {
		return cells{s.SectionID, s.Offset, s.Length, s.Owner, s.SubscriptionID, s.ContributionID, s.Text}
	})
	a.printSections(e.Sections)
	printList(a, "contributions", "contribution|subscription|kind|section|>priority|truncation|hash", e.HookSources, func(h *phases.HookSource) cells {
		return cells{h.ContributionID, h.SubscriptionID, h.ContributionKind, h.SectionID, h.Priority, h.Truncation, h.ContributionHash}
	})
	t := newTable("sources", "kind|id|label")
	for i := range e.Sections {
		for _, s := range e.Sections[i].SourceRefs {
			t.add(s.Kind, s.ID, s.Label)
		}
	}
	a.printTable(t)
	printList(a, "tools", "tool|bundle|owner|hidden in|hash", e.Tools, func(t *manifest.Tool) cells {
		return cells{t.Name, t.BundleID, t.Owner, t.HiddenDomain, t.Hash}
	})
	a.printCalls(e.Calls)
	a.printOmitted(e.Omitted)
	a.printRuns(e.Runs, true)
	a.printPlugins("plugins", e.Plugins)
	printList(a, "diagnostics", "severity|code|about|message", e.Diagnostics, func(d *manifest.Diagnostic) cells { return cells{d.Severity, d.Code, d.HookSource, d.Message} })
}
