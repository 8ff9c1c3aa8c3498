// Package explain says, from the record of a turn, why a section, subscription, plugin or tool is, or is not, in its
// prompt, and who wrote a sentence of it.
//
// Stability: internal.
package explain

import (
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/sections"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Result is an answer with everything in the record that bears on it.
type Result struct {
	ID         string `json:"id"          jsonschema:"what was asked about"`
	Kind       Kind   `json:"kind"`
	ManifestID string `json:"manifest_id" jsonschema:"the manifest that this is about"`
	In         bool   `json:"in"          jsonschema:"whether the section or the sentence is in the prompt, anything of the subscription or plugin was kept or decided, or the model was offered the tool"`
	Why        string `json:"why"         jsonschema:"the reason in a sentence, for people"`

	Asked string `json:"asked,omitempty" jsonschema:"the record of events that was named, if this is about the prompt before it"`

	Sections    []manifest.Section    `json:"sections"     jsonschema:"the section itself, or those with text of the subscription"`
	HookSources []phases.HookSource   `json:"hook_sources" jsonschema:"the contributions that were kept"`
	Reminders   []manifest.Reminder   `json:"reminders"    jsonschema:"the reminders that were handed over"`
	Omitted     []phases.Omitted      `json:"omitted"      jsonschema:"what was dropped, and why"`
	Runs        []phases.Run          `json:"runs"         jsonschema:"the hook runs concerned; of a section that nobody contributed those that could have"`
	Plugins     []phases.PluginRow    `json:"plugins"      jsonschema:"the plugins concerned"`
	Diagnostics []manifest.Diagnostic `json:"diagnostics"  jsonschema:"remarks about the section or its hooks"`
	Tools       []manifest.Tool       `json:"tools"        jsonschema:"the tool itself, or those of the plugin"`
	Calls       []manifest.Call       `json:"calls"        jsonschema:"what was decided about the tool, or by the hook or plugin"`
	Said        []Saying              `json:"said"         jsonschema:"who wrote which piece of the sentence, and where it stands"`
}

// Kind is what an id names.
type Kind string

// Everything that can be asked about.
const (
	OfSection      Kind = "section"
	OfSubscription Kind = "subscription"
	OfPlugin       Kind = "plugin"
	OfTool         Kind = "tool"
	OfSentence     Kind = "sentence"
)

// Saying is a piece of a prompt that one owner wrote.
type Saying struct {
	SectionID string `json:"section_id" jsonschema:"the section that it stands in, or reminder"`
	manifest.Span
	SubscriptionID string `json:"subscription_id,omitempty" jsonschema:"the hook that brought it; absent from texts of the host and the engine"`
	PluginVersion  string `json:"plugin_version,omitempty"`
	Text           string `json:"text"                      jsonschema:"the piece of what was asked about"`
}

// Record is a manifest, and what else is known about its turn.
type Record struct {
	manifest.Manifest

	// Grants and Described are what is known of the turn's plugins beside the manifest, by name: see [Record.Know].
	Grants    map[string]*phases.Grants
	Described map[string]*phases.Description
}

// Know notes the grants of a configuration for the plugins that had the same in the turn, and what plugins say of
// themselves, which may be nil.
func (r *Record) Know(cfg *config.Config, described map[string]*phases.Description) {
	r.Grants, r.Described = map[string]*phases.Grants{}, described
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i]
		hash := manifest.HashJSON(p.Grants, []byte(cfg.Manifest.FingerprintKey.Value))
		if slices.ContainsFunc(r.Plugins, func(row phases.PluginRow) bool { return row.Plugin == p.Name && row.GrantHash == hash }) {
			r.Grants[p.Name] = &p.Grants
		}
	}
}

// granted reports whether a plugin is granted a section, or what dynamic_context is made of.
func granted(g *phases.Grants, section string) bool {
	if section == sections.DynamicContext {
		return phases.Allows(g.Contribute, string(phases.KindPromptContext))
	}
	return phases.Allows(g.Contribute, string(phases.KindPromptSection)) && sections.Granted(slices.Concat(g.Sections, g.StableSections, g.Join), section)
}

// mayWrite reports whether the hook of a run could have written a section. What is not known excludes nothing.
func (r *Record) mayWrite(run *phases.Run, section string) bool {
	kind := phases.KindPromptSection
	if section == sections.DynamicContext {
		kind = phases.KindPromptContext
	}
	row, _ := phases.Standard().Lookup(run.Phase)
	if g := r.Grants[run.Plugin]; !forHooks(section) || !slices.Contains(row.Kinds, kind) || g != nil && !granted(g, section) {
		return false
	}
	d := r.Described[run.Plugin]
	return d == nil || !slices.ContainsFunc(d.Hooks, func(h phases.Hook) bool { return h.Name == run.Hook && !slices.Contains(h.Kinds, kind) })
}

func (r *Record) fileOf(section string) *manifest.File {
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

// claims are the sections that grants name. A wildcard claims none in particular.
func (r *Record) claims() (ids []string) {
	for _, g := range r.Grants {
		ids = append(ids, slices.Concat(g.Sections, g.StableSections)...)
	}
	return slices.DeleteFunc(ids, func(id string) bool { return strings.HasSuffix(id, "*") })
}

// IDs are all ids that [Record.About] knows, sorted.
func (r *Record) IDs() []string {
	ids := slices.Concat(r.claims(), r.SectionIDs,
		named(r.Omitted, func(l *phases.Omitted) string { return words.If(r.isSection(l.ID), l.ID) }),
		named(r.HookSources, func(h *phases.HookSource) string { return h.SubscriptionID }),
		named(r.Reminders, func(m *manifest.Reminder) string { return words.If(m.Owner != phases.OwnerHost, m.Owner) }),
		named(sections.All(), func(s *sections.Row) string { return words.If(r.fileOf(s.ID) != nil, s.ID) }),
		named(r.Runs, func(run *phases.Run) string { return run.Subscription }),
		named(r.Plugins, func(p *phases.PluginRow) string { return p.Plugin }),
		named(r.Tools, func(t *manifest.Tool) string { return t.Name }),
	)
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "" })
}

func named[T any](list []T, name func(*T) string) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = name(&list[i])
	}
	return names
}

// About says why a section, subscription, plugin or tool is, or is not, in the prompt. It returns nil for an id that the
// record does not know.
func (r *Record) About(id string) *Result {
	e := r.result(id, "")
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
func (r *Record) isSection(id string) bool {
	return slices.Contains(r.claims(), id) || sections.Lookup(id) != nil || r.fileOf(id) != nil || slices.Contains(r.SectionIDs, id) ||
		slices.ContainsFunc(r.Omitted, func(l phases.Omitted) bool { return l.ID == id && !strings.Contains(id, "#") })
}

// isSubscription also accepts ids of plugins that never described themselves.
func (r *Record) isSubscription(id string) bool {
	plugin := PluginOf(id)
	return slices.ContainsFunc(r.Runs, func(run phases.Run) bool { return run.Subscription == id }) ||
		slices.ContainsFunc(r.Reminders, func(m manifest.Reminder) bool { return m.Owner == id && id != phases.OwnerHost }) ||
		slices.ContainsFunc(r.HookSources, func(h phases.HookSource) bool { return h.SubscriptionID == id }) || plugin != id &&
		slices.ContainsFunc(r.Plugins, func(p phases.PluginRow) bool { return p.Plugin == plugin && p.State != phases.PluginReady })
}

// result is an answer without anything in it, whose lists are lists in JSON.
func (r *Record) result(id string, kind Kind) *Result {
	return &Result{
		ID: id, Kind: kind, ManifestID: r.ManifestID,
		Sections: []manifest.Section{}, HookSources: []phases.HookSource{}, Reminders: []manifest.Reminder{}, Omitted: []phases.Omitted{}, Runs: []phases.Run{},
		Plugins: []phases.PluginRow{}, Diagnostics: []manifest.Diagnostic{}, Tools: []manifest.Tool{}, Calls: []manifest.Call{}, Said: []Saying{},
	}
}
