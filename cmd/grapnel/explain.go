package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
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

// explainCommand works on a file so that a turn of yesterday, or of another
// machine, can be explained; a program that went wrong is rarely run again.
func (a *app) explainCommand() *cobra.Command {
	var f compileFlags
	var file string
	c := &cobra.Command{
		Use:   "explain SECTION|SUBSCRIPTION",
		Short: "Say why a section or subscription is, or is not, in the prompt",
		Long: "Explain reads a manifest (of compile --json, or a bare one) and says of one section or\n" +
			"subscription whether it is in the prompt and why: the section's row, the hooks it came\n" +
			"from, cuts, what was left out, runs with state and code, diagnostics. Without\n" +
			"--manifest it compiles now, with the flags of compile. An unknown id is exit code 1.",
		Example: "  grapnel explain agents_md\n" +
			"  grapnel compile --json >turn.json; grapnel explain rules.text --manifest turn.json",
		Args: exactlyOne("explain needs one SECTION or SUBSCRIPTION, such as agents_md or agentsdoc.prompt"),
		RunE: func(c *cobra.Command, args []string) error { return a.explain(c, args[0], file, &f) },
	}
	f.register(c)
	c.Flags().StringVar(&file, "manifest", "", "JSON `FILE` with a manifest, or -")
	return c
}

// explain answers "no" with the ids that there are: who asks about a wrong one
// most likely mistyped it.
func (a *app) explain(c *cobra.Command, id, file string, f *compileFlags) error {
	var known *record
	var err error
	if file != "" {
		known, err = a.recordFromFile(file)
	} else {
		known, err = a.recordNow(c.Context(), f)
	}
	if err != nil {
		return err
	}
	e := known.explain(id)
	if e == nil {
		return refused(fmt.Errorf("the manifest %s knows no section or subscription %q%s; it knows: %s",
			known.ManifestID, id, phases.DidYouMean(id, known.ids()), quotedList(known.ids())))
	}
	if a.json {
		return a.printJSON(e)
	}
	a.printExplanation(e)
	return nil
}

// record is a manifest with what else is known about its turn. A manifest alone
// does not say who could have written a section that nobody wrote; the
// configuration of a turn that was compiled just now does.
type record struct {
	manifest.Manifest
	// claims are plugins by the section that their grants name; nil when only the
	// manifest is known.
	claims map[string][]string
}

// recordNow compiles the turn. A turn that was blocked can be explained too.
func (a *app) recordNow(ctx context.Context, f *compileFlags) (*record, error) {
	cfg, _, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	done, err := a.compileTurn(ctx, cfg, f)
	if done == nil {
		return nil, err
	}
	r := &record{Manifest: *done.Manifest, claims: map[string][]string{}}
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
		row := manifest.Diagnostic{Code: d.Code, Severity: d.Severity, Message: d.Message, SectionID: d.Slot, HookSource: d.Subscription}
		if !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
	}
	return rows
}

// recordFromFile reads a manifest, bare or in the JSON of compile.
func (a *app) recordFromFile(path string) (*record, error) {
	data, err := a.readJSON("manifest", path)
	if err != nil {
		return nil, err
	}
	var wrapped struct {
		Manifest json.RawMessage `json:"manifest"`
	}
	if err := json.Unmarshal(data, &wrapped); err != nil {
		return nil, usagef("--manifest %s: %w", path, notManifest(err))
	}
	if len(wrapped.Manifest) > 0 {
		data = wrapped.Manifest
	}
	m, err := manifest.Parse(data)
	if err != nil {
		return nil, usagef("--manifest %s: %w", path, err)
	}
	return &record{Manifest: m}, nil
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
	for i := range r.Runs {
		ids = append(ids, r.Runs[i].Subscription)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
