package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

// explanation is the JSON of explain.
type explanation struct {
	ID         string      `json:"id"          jsonschema:"what was asked about"`
	Kind       explainKind `json:"kind"`
	ManifestID string      `json:"manifest_id" jsonschema:"the manifest that this is about"`
	In         bool        `json:"in"          jsonschema:"whether the section is in the prompt, or anything of the subscription was kept"`
	Why        string      `json:"why"         jsonschema:"the reason in a sentence, for people"`

	Sections    []manifest.Section    `json:"sections"     jsonschema:"the section itself, or those with text of the subscription"`
	HookSources []phases.HookSource   `json:"hook_sources" jsonschema:"the contributions that were kept"`
	LeftOut     []phases.LeftOut      `json:"left_out"     jsonschema:"what was dropped, and why"`
	Runs        []phases.Run          `json:"runs"         jsonschema:"the hook runs concerned; of a section that nobody contributed those that could have"`
	Plugins     []phases.PluginRow    `json:"plugins"      jsonschema:"the plugins concerned"`
	Diagnostics []manifest.Diagnostic `json:"diagnostics"  jsonschema:"remarks about the section or its hooks"`
}

// explainKind is what an explained id names.
type explainKind string

const (
	explainsSection      explainKind = "section"
	explainsSubscription explainKind = "subscription"
)

// explainCommand works on what was recorded where it can: a turn of yesterday, or
// of another machine, can be explained; a program that went wrong is rarely run
// again.
func (a *app) explainCommand() *cobra.Command {
	var f compileFlags
	var given string
	var now bool
	c := &cobra.Command{
		Use:   "explain SECTION|SUBSCRIPTION",
		Short: "Say why a section or subscription is, or is not, in the prompt",
		Long: "Explain reads a manifest and says of one section or subscription whether it is in the\n" +
			"prompt and why: the section's row, the hooks it came from, cuts, what was left out, runs\n" +
			"with state and code, diagnostics. An unknown id is exit code 1.\n\n" +
			"The manifest is that of --manifest: an id of the store, which may be shortened, latest,\n" +
			"or a file with a manifest or with what compile --json prints. Without it, it is the last\n" +
			"one in the store (of --thread and --workspace). Without a store, with --compile, or with\n" +
			"any other flag of compile, a turn is compiled now, and not recorded.",
		Example: "  grapnel explain agents_md\n" +
			"  grapnel explain agents_md --thread t1 --store sqlite:./log.db\n" +
			"  grapnel compile --json >turn.json; grapnel explain rules.text --manifest turn.json",
		Args: exactlyOne("explain needs one SECTION or SUBSCRIPTION, such as agents_md or agentsdoc.prompt"),
		RunE: func(c *cobra.Command, args []string) error {
			if given != "" && now {
				return usagef("--manifest and --compile contradict each other")
			}
			known, err := a.recordWanted(c, given, now, &f)
			if err != nil {
				return err
			}
			return a.explain(known, args[0])
		},
	}
	f.register(c)
	c.Flags().StringVar(&given, "manifest", "", "a manifest: an `ID` of the store, latest, a file, or -")
	c.Flags().BoolVar(&now, "compile", false, "compile a turn now, also where there is a store")
	return c
}

// explain answers "no" with the ids that there are: who asks about a wrong one
// most likely mistyped it.
func (a *app) explain(known *record, id string) error {
	e := known.explain(id)
	if e == nil {
		return refused(fmt.Errorf("the manifest %s knows no section or subscription %q%s; it knows: %s",
			known.ManifestID, id, phases.DidYouMean(id, known.ids()), quotedList(known.ids())))
	}
	if a.json {
		return a.printJSON(e)
	}
	a.printExplanation(e)
	a.printf("\n%s\n", known.about())
	return nil
}

// recordWanted is the record that explain is asked about.
func (a *app) recordWanted(c *cobra.Command, given string, now bool, f *compileFlags) (*record, error) {
	switch {
	case given != "" && isStored(given), given == "" && !now && !saysCompile(c):
		return a.recordKept(c.Context(), given, f)
	case given != "":
		m, err := a.readManifest("manifest", given)
		if err != nil {
			return nil, err
		}
		return &record{Manifest: *m}, nil
	}
	return a.recordNow(c.Context(), f)
}

// saysCompile reports whether a flag was given that only a turn which is compiled
// now can follow. A flag is never ignored.
func saysCompile(c *cobra.Command) bool {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&compileFlags{}).registerOn(own)
	said := false
	c.Flags().Visit(func(f *pflag.Flag) {
		said = said || own.Lookup(f.Name) != nil && f.Name != "thread" && f.Name != "workspace"
	})
	return said
}

// recordKept is a manifest of the store: the given one, or else the last of the
// thread and workspace. Where there is no store, or the configuration's has
// nothing yet, a turn is compiled now instead.
func (a *app) recordKept(ctx context.Context, id string, f *compileFlags) (*record, error) {
	cfg, from, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	if id == "" && a.storeNamed(cfg, from).dsn == "" {
		return a.recordNow(ctx, f)
	}
	var m *manifest.Manifest
	err = a.withStore(ctx, store.Options{ReadOnly: true}, func(s *openedStore) error {
		wanted := id
		if wanted == "" {
			wanted = latest
		}
		var err error
		m, err = s.find(ctx, wanted, store.Filter{Workspace: f.workspace, Thread: f.thread})
		return notThere(err)
	})
	switch {
	case id == "" && a.store == "" && store.HasCode(err, store.CodeNotFound):
		return a.recordNow(ctx, f)
	case err != nil:
		return nil, err
	}
	return &record{Manifest: *m}, nil
}

// record is a manifest with what else is known about its turn. A manifest alone
// does not say who could have written a section that nobody wrote; the
// configuration of a turn that was compiled just now does.
type record struct {
	manifest.Manifest
	// claims are plugins by the section that their grants name; nil when only the
	// manifest is known.
	claims map[string][]string
	// now says that the turn was compiled by this command.
	now bool
}

// about says which turn the record is of.
func (r *record) about() string {
	if r.now {
		return "manifest " + r.ManifestID + ", compiled now"
	}
	return fmt.Sprintf("manifest %s of the turn %s in the thread %s, %s", r.ManifestID, clean(r.TurnID), clean(r.ThreadID), clock(r.CreatedAt))
}

// recordNow compiles the turn. A turn that was blocked can be explained too.
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
	r := &record{Manifest: *done.Manifest, claims: map[string][]string{}, now: true}
	r.Diagnostics = toldDiagnostics(done)
	for i := range cfg.Plugins {
		for _, id := range cfg.Plugins[i].Grants.Sections {
			if id[len(id)-1] != '*' { // a wildcard claims no section in particular
				r.claims[id] = append(r.claims[id], cfg.Plugins[i].Name)
			}
		}
	}
	return r, nil
}

// toldDiagnostics are the turn's own diagnostics: unlike those of the manifest
// they still have their messages.
func toldDiagnostics(done *runtime.Compiled) []manifest.Diagnostic {
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

// readManifest reads a manifest out of a file, bare or in the JSON of compile.
// The flag that named the file may be empty.
func (a *app) readManifest(flag, path string) (*manifest.Manifest, error) {
	data, err := a.readJSON(flag, path)
	if err != nil {
		return nil, err
	}
	var wrapped struct {
		Manifest json.RawMessage `json:"manifest"`
	}
	if err := json.Unmarshal(data, &wrapped); err != nil {
		return nil, usagef("%s: %w", inputName(flag, path), notManifest(err))
	}
	if len(wrapped.Manifest) > 0 {
		data = wrapped.Manifest
	}
	m, err := manifest.Parse(data)
	if err != nil {
		return nil, usagef("%s: %w", inputName(flag, path), err)
	}
	return &m, nil
}

// notManifest says what is wanted in place of encoding/json's words for a list
// or a number.
func notManifest(err error) error {
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return errors.New("want a JSON object: a manifest, or what compile --json prints")
	}
	return err
}

// ids are all ids that can be asked about.
func (r *record) ids() []string {
	ids := slices.Clone(r.SectionIDs)
	for _, l := range r.LeftOut {
		ids = append(ids, l.ID)
	}
	for id := range r.claims {
		ids = append(ids, id)
	}
	for _, f := range r.Files {
		if id := sectionOf(f.Path); id != "" { // none where labels are hashed
			ids = append(ids, id)
		}
	}
	for i := range r.Runs {
		ids = append(ids, r.Runs[i].Subscription)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
