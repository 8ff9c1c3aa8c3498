package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/explain"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

type explainFlags struct {
	turnFlags

	Manifest string `flag:"manifest" usage:"a manifest: an {ID} of the store, latest, a file, or -"`
	Sentence string `flag:"sentence" usage:"say who wrote this {TEXT} of the prompt; of kept manifests, texts must have been kept"`
	Compile  bool   `flag:"compile"  usage:"compile a turn now, also where there is a store"`

	saysTurn bool // a flag was given that only a turn compiled now can follow: a flag is never ignored
}

func (f *explainFlags) parsed(c *cobra.Command) {
	turn := reflect.TypeFor[turnFlags]()
	c.Flags().Visit(func(given *pflag.Flag) {
		f.saysTurn = f.saysTurn || given.Name != "thread" && given.Name != "workspace" && hasFlag(turn, given.Name)
	})
}

// explain explains a recorded turn if there is one: a failed run can rarely be repeated.
func (a *app) explain(ctx context.Context, f *explainFlags, args []string) error {
	switch {
	case f.Manifest != "" && f.Compile:
		return usagef("--manifest and --compile contradict each other")
	case f.Manifest != "" && f.saysTurn:
		return usagef("--manifest explains a turn as it was: leave out the flags of a turn that is compiled now")
	case (len(args) == 0) == (f.Sentence == ""):
		return usagef("explain needs one SECTION, SUBSCRIPTION, PLUGIN or TOOL, such as agents_md or agentsdoc.prompt, or --sentence; see: grapnel explain --help")
	}
	known, err := a.recordWanted(ctx, f)
	if err != nil {
		return err
	}
	asked := append(args, f.Sentence)[0]
	if e := known.About(asked); f.Manifest == "" && f.Sentence == "" && known.Observed != "" && (e == nil || !e.In) {
		if known, err = a.promptOf(ctx, known, f); err != nil {
			return err
		}
	}
	e, err := known.answer(asked, f.Sentence != "")
	if f.Sentence == "" && (err != nil || e.Kind == explain.OfSection && !e.In && len(e.Runs) > 1) {
		if planned := a.explainPlanned(ctx, known, asked); planned != nil {
			e, err = planned, nil
		}
	}
	if err != nil {
		return err
	}
	e.Asked = known.asked
	return a.print(e, func() {
		a.printExplanation(e, known.Cache.OfAgent)
		a.printf("\n%s\n", known.about())
	})
}

// promptOf is the record of what plugins brought for the turn of an agent's request; the request's own without one.
func (a *app) promptOf(ctx context.Context, request *record, f *explainFlags) (*record, error) {
	id := ""
	err := a.withStore(ctx, store.Options{ReadOnly: true}, func(s *openedStore) error {
		list, err := s.List(ctx, store.Filter{Workspace: request.WorkspaceID, Thread: request.ThreadID, Limit: 256})
		for _, index := range slices.Backward(list) {
			if err != nil || id != "" {
				break
			}
			var m *manifest.Manifest
			if m, err = s.Get(ctx, index.ManifestID); err == nil && m.TurnID == request.TurnID && m.Cache.OfAgent {
				id = m.ManifestID
			}
		}
		return err
	})
	if err != nil || id == "" {
		return request, err
	}
	return a.recordKept(ctx, id, &f.turnFlags)
}

// answer explains an id, or a sentence.
func (r *record) answer(asked string, sentence bool) (*explain.Result, error) {
	switch {
	case sentence && r.textsErr != nil:
		return nil, r.textsErr
	case sentence && r.texts == nil:
		return nil, refused(fmt.Errorf("the texts of the manifest %s %s", r.ManifestID, whyNoTexts(&r.Manifest)))
	case sentence:
		return r.Sentence(asked, r.texts), nil
	}
	if e := r.About(asked); e != nil {
		return e, nil
	}
	return nil, refused(fmt.Errorf("the manifest %s knows no section, subscription, plugin or tool %q%s; it knows: %s%s",
		r.ManifestID, asked, suggest.DidYouMean(asked, r.IDs()), quotedList(r.IDs()), words.If(!r.now, "; --compile explains a turn compiled now")))
}

func (a *app) recordWanted(ctx context.Context, f *explainFlags) (*record, error) {
	switch given := f.Manifest; {
	case given != "" && api.IsManifestID(given), given == "" && !f.Compile && !f.saysTurn:
		return a.recordKept(ctx, given, &f.turnFlags)
	case given != "":
		r, err := a.readManifest("manifest", given)
		if err == nil {
			err = notThere(api.Selected(&r.Manifest, f.filter()))
		}
		if cfg, _, failed := a.loadConfig(); err == nil && failed == nil {
			r.Know(cfg, nil)
		}
		return r, err
	}
	return a.recordNow(ctx, &f.turnFlags)
}

// recordKept compiles a turn now if there is no store, or if the store is empty and was not named on the command line.
func (a *app) recordKept(ctx context.Context, id string, f *turnFlags) (*record, error) {
	cfg, from, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	if _, err := a.storeWanted(cfg, from); id == "" && err != nil {
		return a.recordNow(ctx, f)
	}
	var r record
	err = a.withStore(ctx, store.Options{ReadOnly: true}, func(s *openedStore) error {
		m, err := api.Find(ctx, s, cmp.Or(id, api.Latest), f.filter())
		if err != nil {
			return notThere(err)
		}
		found := m
		if m, err = api.Turn(ctx, s, m); err != nil {
			return err
		}
		asked := m.ManifestID
		m = m.WithMessages()
		if r.Manifest = *m; found.ManifestID != asked {
			r.asked = found.ManifestID
		}
		r.Know(cfg, nil)
		r.texts, r.textsErr = keptTexts(ctx, s, m)
		return nil
	})
	switch {
	case id == "" && a.Store == "" && store.HasCode(err, store.CodeNotFound):
		return a.recordNow(ctx, f)
	case err != nil:
		return nil, err
	}
	return &r, nil
}

// record is what explain answers from.
type record struct {
	explain.Record

	now   bool
	asked string // the record of events that was named
	// texts are those of the sections, without headings, and of the reminders; nil if they are not known, for the reason
	// textsErr if it is not that they were not kept.
	texts    []string
	textsErr error
}

func (r *record) about() string {
	if r.now {
		return "manifest " + r.ManifestID + ", compiled now"
	}
	return fmt.Sprintf("manifest %s of the turn %s in the thread %s, %s", r.ManifestID, clean(r.TurnID), clean(r.ThreadID), clock(r.CreatedAt)) +
		words.If(r.asked != "", "\nthat is the turn's prompt before the record of events "+r.asked+"; what the turn's records of events have until the next prompt is part of the answer")
}

func (a *app) recordNow(ctx context.Context, f *turnFlags) (*record, error) {
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
	r := &record{Record: explain.Record{Manifest: *done.Manifest}, now: true, texts: sectionTexts(done.Manifest, done.Prompt, done.Reminders)}
	r.Diagnostics = turnDiagnostics(done)
	r.Know(cfg, nil)
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
		Manifest  json.RawMessage         `json:"manifest"`
		Prompt    *compiler.Prompt        `json:"prompt"`
		Reminders []phases.MergedReminder `json:"reminders"`
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
	return &record{Record: explain.Record{Manifest: m}, texts: sectionTexts(&m, wrapped.Prompt, wrapped.Reminders)}, nil
}

func quotedList(ids []string) string {
	const most = 20
	return strings.Join(ids[:min(len(ids), most)], ", ") + words.If(len(ids) > most, fmt.Sprintf(" and %d more", len(ids)-most))
}

func (a *app) printExplanation(e *explain.Result, ofAgent bool) {
	answer := "is in the prompt"
	switch {
	case !e.In && e.Kind == explain.OfTool:
		answer = "is not on record as offered to the model"
	case !e.In:
		answer = "is not in the prompt"
	case e.Kind == explain.OfSentence && len(e.Sections) == 0:
		answer = "is in a reminder"
	case e.Kind == explain.OfSubscription, e.Kind == explain.OfPlugin:
		answer = "contributed"
	case e.Kind == explain.OfTool:
		answer = "is offered to the model"
	}
	a.printf("%s %s %s: %s\n", e.Kind, clean(e.ID), answer, text.Sanitize(e.Why, len(e.Why)))
	printList(a, "said", "section|>offset|>length|owner|subscription|contribution|text", e.Said, func(s *explain.Saying) cells {
		return cells{s.SectionID, s.Offset, s.Length, s.Owner, s.SubscriptionID, s.ContributionID, s.Text}
	})
	a.printSections(e.Sections, ofAgent, 0)
	printList(a, "contributions", "contribution|subscription|kind|section|>priority|truncation|hash", e.HookSources, func(h *phases.HookSource) cells {
		return cells{h.ContributionID, h.SubscriptionID, h.ContributionKind, h.SectionID, h.Priority, h.Truncation, h.ContributionHash}
	})
	t := newTable("sources", "kind|id|label|hash")
	for i := range e.Sections {
		for _, s := range e.Sections[i].SourceRefs {
			t.add(s.Kind, s.ID, s.Label, s.Hash)
		}
	}
	a.printTable(t)
	printList(a, "tools", "tool|bundle|owner|hidden in|hash", e.Tools, func(t *manifest.Tool) cells {
		return cells{t.Name, t.BundleID, t.Owner, t.HiddenDomain, t.Hash}
	})
	a.printCalls(e.Calls)
	a.printHanded(e.Reminders)
	a.printOmitted(e.Omitted)
	a.printRuns(e.Runs, true)
	a.printPlugins("plugins", e.Plugins)
	printList(a, "diagnostics", "severity|code|about|message", e.Diagnostics, func(d *manifest.Diagnostic) cells { return cells{d.Severity, d.Code, d.HookSource, uncut(d.Message)} })
}

// explainPlanned explains an id with what plugins say of their hooks, or a subscription that only the configuration's plan
// has. It returns nil for any other id, and where the plugins cannot be asked.
func (a *app) explainPlanned(ctx context.Context, r *record, id string) *explain.Result {
	cfg, _, err := a.loadConfig()
	if err != nil {
		return nil
	}
	var e *explain.Result
	err = a.withEngine(ctx, cfg, runtime.Options{}, func(_ context.Context, eng *runtime.Engine) error {
		r.Know(cfg, eng.Descriptions())
		if e = r.About(id); e == nil {
			e = r.Planned(eng.Plan("").Phases, id)
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return e
}

// sectionTexts splits a prompt into the texts of its sections, without headings. Those of reminders follow.
func sectionTexts(m *manifest.Manifest, p *compiler.Prompt, reminders []phases.MergedReminder) []string {
	if p == nil {
		return nil
	}
	texts, rest := make([]string, len(m.Sections)+len(m.Reminders)), p.FullText
	for i := range m.Sections {
		s := &m.Sections[i]
		if s.Placement == phases.PlacementSystem {
			_, rest, _ = strings.Cut(rest, "\n\n") // the heading
			end := text.Offset(rest, s.Chars)
			texts[i], rest = rest[:end], strings.TrimPrefix(strings.TrimPrefix(rest[end:], "\n\n"), compiler.Boundary+"\n\n")
			continue
		}
		for _, message := range slices.Concat(p.SystemMessages, p.UserMessages) {
			if message.SectionID == s.SectionID {
				texts[i] = message.Text
			}
		}
	}
	for i := range reminders[:min(len(reminders), len(m.Reminders))] {
		texts[len(m.Sections)+i] = reminders[i].Text
	}
	return texts
}

// keptTexts are the texts of a kept manifest's sections, without headings; nil if they were not kept, or not all. Those of
// its reminders follow.
func keptTexts(ctx context.Context, s *openedStore, m *manifest.Manifest) ([]string, error) {
	texts := make([]string, len(m.Sections)+len(m.Reminders))
	for i := range m.Sections {
		rendered, err := s.sectionText(ctx, m, &m.Sections[i])
		switch {
		case store.HasCode(err, store.CodeNotFound):
			return nil, nil
		case err != nil:
			return nil, err
		}
		texts[i] = m.Body(&m.Sections[i], rendered)
	}
	for i := range m.Reminders {
		said, err := s.keptText(ctx, m.Reminders[i].Hash, "the reminder "+clean(m.Reminders[i].Type), m.ManifestID)
		if err != nil && !store.HasCode(err, store.CodeNotFound) {
			return nil, err
		}
		texts[len(m.Sections)+i] = said
	}
	return texts, nil
}

// sectionText is the kept text of a section as it was rendered. Somebody may have changed it: it has to have the
// section's hash.
func (s *openedStore) sectionText(ctx context.Context, m *manifest.Manifest, section *manifest.Section) (string, error) {
	return s.keptText(ctx, section.Hash, "the section "+clean(section.SectionID), m.ManifestID)
}

// keyOf is what a hash is keyed with; nil for a plain one.
func (s *openedStore) keyOf(hash, what string) ([]byte, error) {
	switch {
	case !strings.HasPrefix(hash, "hmac-"):
		return nil, nil
	case len(s.fingerprintKey) == 0:
		return nil, unable(errors.New(what + " could not be checked: its hashes are keyed; give the key as manifest.fingerprint_key in the configuration"))
	}
	return s.fingerprintKey, nil
}

// keptText is the text of something in a manifest.
func (s *openedStore) keptText(ctx context.Context, hash, what, manifestID string) (string, error) {
	text, err := s.Text(ctx, hash)
	if err != nil {
		return "", err
	}
	key, err := s.keyOf(hash, "the texts of the manifest "+manifestID)
	if err != nil {
		return "", err
	}
	if manifest.Hash(text, key) != hash {
		return "", refused(fmt.Errorf("the text kept for %s is not that of the manifest %s; see: grapnel manifest verify", what, manifestID))
	}
	return text, nil
}

// whyNoTexts says why the store does not have the texts of a manifest.
func whyNoTexts(m *manifest.Manifest) string {
	if m.TextsKept {
		return "were kept, and are gone; see: grapnel manifest find --kind erasure, and grapnel manifest verify"
	}
	return "were not kept: that takes manifest.keep_text"
}
