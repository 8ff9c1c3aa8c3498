package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/engine/sections"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// explainSection includes, for a missing section, the runs of all hooks that could have written it.
func (r *Record) explainSection(e *Result) {
	e.Kind = OfSection
	e.Sections = filtered(r.Sections, func(s *manifest.Section) bool { return s.SectionID == e.ID })
	e.In = len(e.Sections) > 0
	e.HookSources = filtered(r.HookSources, func(h *phases.HookSource) bool {
		return h.SectionID == e.ID || !e.In && e.ID == sections.DynamicContext && h.ContributionKind == phases.KindPromptContext
	})
	e.Omitted = filtered(r.Omitted, func(l *phases.Omitted) bool { return l.ID == e.ID })
	var owners []string
	for plugin, g := range r.Grants {
		if granted(g, e.ID) {
			owners = append(owners, plugin)
		}
	}
	if row := sections.Lookup(e.ID); r.Grants == nil && row != nil && row.Writer != "" {
		owners = append(owners, row.Writer)
	}
	for _, l := range e.Omitted {
		owners = append(owners, l.Owner)
	}
	e.Runs = filtered(r.Runs, func(run *phases.Run) bool {
		if slices.ContainsFunc(e.HookSources, func(h phases.HookSource) bool { return h.SubscriptionID == run.Subscription }) {
			return true
		}
		return !e.In && r.mayWrite(run, e.ID)
	})
	e.Diagnostics = filtered(r.Diagnostics, func(d *manifest.Diagnostic) bool {
		return d.SectionID == e.ID || d.HookSource != "" && (e.ran(d.HookSource) || d.Code == phases.CodeNotDelivered && slices.Contains(owners, PluginOf(d.HookSource)))
	})
	for i := range e.Sections {
		owners = append(owners, e.Sections[i].Owner)
	}
	r.addPlugins(e, owners)
	e.Why = r.whySection(e)
}

// forHooks reports whether hooks write a section.
func forHooks(id string) bool {
	row := sections.Lookup(id)
	return row == nil || row.Hooks || id == sections.DynamicContext
}

// What was omitted is recorded by owner; so if nothing was kept, everything that its plugin lost is shown, unless a
// diagnostic says that it was another hook's.
func (r *Record) explainSubscription(e *Result) {
	e.Kind = OfSubscription
	e.HookSources = filtered(r.HookSources, func(h *phases.HookSource) bool { return h.SubscriptionID == e.ID })
	gave := func(section string) bool {
		return section != "" && slices.ContainsFunc(e.HookSources, func(h phases.HookSource) bool { return h.SectionID == section })
	}
	e.Sections = filtered(r.Sections, func(s *manifest.Section) bool { return gave(s.SectionID) })
	e.Runs = filtered(r.Runs, func(run *phases.Run) bool { return run.Subscription == e.ID })
	e.Reminders = filtered(r.Reminders, func(m *manifest.Reminder) bool { return m.Owner == e.ID })
	e.Omitted = filtered(r.Omitted, func(l *phases.Omitted) bool {
		another := func(d manifest.Diagnostic) bool {
			return d.SectionID == l.ID && d.HookSource != e.ID && PluginOf(d.HookSource) == l.Owner
		}
		return strings.HasPrefix(l.ID, e.ID+"#") || gave(l.ID) ||
			len(e.HookSources) == 0 && len(e.Runs) > 0 && l.Owner == PluginOf(e.ID) && !strings.Contains(l.ID, "#") && !slices.ContainsFunc(r.Diagnostics, another)
	})
	e.Diagnostics = filtered(r.Diagnostics, func(d *manifest.Diagnostic) bool { return d.HookSource == e.ID })
	e.Calls = filtered(r.Calls, func(c *manifest.Call) bool {
		return slices.ContainsFunc(c.DecidedBy, func(d manifest.Decider) bool { return d.Subscription == e.ID && !d.Shadow })
	})
	e.In = len(e.HookSources)+len(e.Reminders)+len(e.Calls) > 0
	r.addPlugins(e, []string{PluginOf(e.ID)})
	e.Why = r.whySubscription(e) + e.handed()
}

func (e *Result) ran(id string) bool {
	return slices.ContainsFunc(e.Runs, func(run phases.Run) bool { return run.Subscription == id })
}

func (r *Record) addPlugins(e *Result, names []string) {
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

// explainPlugin says what of a plugin is in the prompt, and what else it did.
func (r *Record) explainPlugin(e *Result) {
	e.Kind = OfPlugin
	e.Sections = filtered(r.Sections, func(s *manifest.Section) bool { return charsOf(s, e.ID) > 0 })
	e.HookSources = filtered(r.HookSources, func(h *phases.HookSource) bool { return h.Plugin == e.ID })
	e.Reminders = filtered(r.Reminders, func(m *manifest.Reminder) bool { return PluginOf(m.Owner) == e.ID })
	e.Omitted = filtered(r.Omitted, func(l *phases.Omitted) bool { return l.Owner == e.ID })
	e.Runs = filtered(r.Runs, func(run *phases.Run) bool { return run.Plugin == e.ID })
	e.Tools = filtered(r.Tools, func(t *manifest.Tool) bool { return t.Owner == e.ID })
	e.Calls = filtered(r.Calls, func(c *manifest.Call) bool {
		return c.Owner == e.ID || slices.ContainsFunc(c.DecidedBy, func(d manifest.Decider) bool { return PluginOf(d.Subscription) == e.ID })
	})
	e.Diagnostics = filtered(r.Diagnostics, func(d *manifest.Diagnostic) bool { return d.HookSource != "" && PluginOf(d.HookSource) == e.ID })
	e.In = len(e.HookSources)+len(e.Reminders) > 0
	r.addPlugins(e, []string{e.ID})
	e.Why = whyPlugin(e)
}

// charsOf is how many characters of a section an owner wrote.
func charsOf(s *manifest.Section, owner string) int {
	n := 0
	for _, span := range s.ContentMap {
		if span.Owner == owner {
			n += span.Length
		}
	}
	return n
}

func whyPlugin(e *Result) string {
	var parts []string
	if len(e.Plugins) > 0 {
		p := &e.Plugins[0]
		parts = append(parts, "it is "+string(p.State)+words.If(p.Version != "", " in the version "+p.Version))
	}
	chars := 0
	for i := range e.Sections {
		chars += charsOf(&e.Sections[i], e.ID)
	}
	if len(e.Runs) > 0 {
		parts = append(parts, "its hooks and tools had "+runsText(e.Runs))
	}
	parts = append(parts, fmt.Sprintf("wrote %s characters in %s", text.Thousands(chars), words.Count(len(e.Sections), "section", "sections")))
	if len(e.Tools) > 0 {
		parts = append(parts, "answers "+words.Count(len(e.Tools), "tool", "tools"))
	}
	if len(e.Omitted) > 0 {
		parts = append(parts, words.Count(len(e.Omitted), "thing of it was omitted", "things of it were omitted"))
	}
	return strings.Join(parts, ", ") + e.handed() + e.undelivered()
}

func (r *Record) isTool(id string) bool {
	return slices.ContainsFunc(r.Tools, func(t manifest.Tool) bool { return t.Name == id }) ||
		slices.ContainsFunc(r.HostTools, func(t manifest.HostTool) bool { return t.Name == id }) ||
		slices.ContainsFunc(r.Calls, func(c manifest.Call) bool { return c.Tool == id })
}

// explainTool says whether the model was offered a tool, and what became of its calls.
func (r *Record) explainTool(e *Result) {
	e.Kind = OfTool
	e.Tools = filtered(r.Tools, func(t *manifest.Tool) bool { return t.Name == e.ID })
	e.Calls = filtered(r.Calls, func(c *manifest.Call) bool { return c.Tool == e.ID })
	e.Runs = filtered(r.Runs, func(run *phases.Run) bool { return run.Phase == phases.PhaseToolCall && run.Hook == e.ID })
	e.Omitted = filtered(r.Omitted, func(l *phases.Omitted) bool { return l.ID == e.ID })
	owners := []string{}
	if len(e.Calls) > 0 {
		e.Why = "it was called, as one of " + r.ownerText(e.Calls[0].Owner) + cmp.Or(words.If(r.Kind != manifest.KindPrompt, "; what the model was offered stands in records of prompts"),
			words.If(e.Calls[0].Owner == phases.OwnerHost && len(r.HostTools) == 0, ", which did not say what it offers by itself"), ", and the model was not offered it")
	}
	if i := slices.IndexFunc(r.HostTools, func(t manifest.HostTool) bool { return t.Name == e.ID }); i >= 0 {
		e.In, e.Why = true, "it is "+cmp.Or(words.If(r.HostTools[i].Owner != "", "of "+r.HostTools[i].Owner), "the host's own")
	}
	for _, t := range e.Tools {
		owners = append(owners, t.Owner)
		e.In = e.In || t.HiddenDomain == ""
		e.Why = "it is answered by " + r.ownerText(t.Owner) + words.If(t.BundleID != "", ", in the bundle "+t.BundleID) +
			words.If(t.HiddenDomain != "", ", and hidden until its domain "+t.HiddenDomain+" is asked for")
	}
	e.HookSources = filtered(r.HookSources, func(h *phases.HookSource) bool {
		return h.ContributionKind == phases.KindToolBundle && slices.Contains(owners, h.Plugin)
	})
	r.addPlugins(e, owners)
	if n := len(e.Calls); n > 0 {
		e.Why += fmt.Sprintf("; %s of it", words.Count(n, "call", "calls"))
	}
}

// Sentence says who wrote each piece of a text, wherever it is in the prompt or its reminders. texts are those of the
// sections, in order, without headings, and of the reminders; those of reminders that were not kept are empty.
func (r *Record) Sentence(sentence string, texts []string) *Result {
	e := r.result(sentence, OfSentence)
	var subscriptions, owners []string
	for i, whole := range texts {
		s := &manifest.Section{SectionID: string(phases.KindReminder)}
		if i < len(r.Sections) {
			s = &r.Sections[i]
		} else {
			m := &r.Reminders[i-len(r.Sections)]
			s.ContentMap = []manifest.Span{{Owner: PluginOf(m.Owner), ContributionID: m.ContributionID, Length: utf8.RuneCountInString(whole)}}
		}
		found := len(e.Said)
		for from := 0; ; {
			at := strings.Index(whole[from:], sentence)
			if at < 0 {
				break
			}
			e.Said = append(e.Said, r.saidAt(s, whole, from+at, sentence)...)
			from += at + len(sentence)
		}
		switch {
		case len(e.Said) == found:
		case i < len(r.Sections):
			e.Sections = append(e.Sections, *s)
		default:
			e.Reminders = append(e.Reminders, r.Reminders[i-len(r.Sections)])
			for j := range e.Said[found:] {
				e.Said[found+j].SubscriptionID = r.Reminders[i-len(r.Sections)].Owner
			}
		}
	}
	for _, said := range e.Said {
		subscriptions, owners = append(subscriptions, said.SubscriptionID), append(owners, said.Owner)
	}
	e.HookSources = filtered(r.HookSources, func(h *phases.HookSource) bool {
		return slices.ContainsFunc(e.Said, func(s Saying) bool {
			return s.ContributionID == h.ContributionID && s.SubscriptionID == h.SubscriptionID
		})
	})
	e.Runs = filtered(r.Runs, func(run *phases.Run) bool { return slices.Contains(subscriptions, run.Subscription) })
	e.In = len(e.Said) > 0
	r.addPlugins(e, owners)
	lost := 0
	for _, said := range texts[len(r.Sections):] {
		if said == "" {
			lost++
		}
	}
	e.Why = r.whySentence(e) + words.If(!e.In && lost > 0, "; the texts of "+words.Count(lost, "reminder", "reminders")+" of it were not kept")
	return e
}

// saidAt splits the text at a place of a section by its owners. Places are in bytes, those of spans in characters.
func (r *Record) saidAt(s *manifest.Section, whole string, at int, sentence string) []Saying {
	begin := utf8.RuneCountInString(whole[:at])
	runes := []rune(sentence)
	var list []Saying
	for _, span := range s.ContentMap {
		from, to := max(span.Offset, begin), min(span.Offset+span.Length, begin+len(runes))
		if from >= to {
			continue
		}
		piece := Saying{SectionID: s.SectionID, Span: span, Text: string(runes[from-begin : to-begin])}
		piece.Offset, piece.Length = from, to-from
		for i := range r.HookSources {
			if h := &r.HookSources[i]; span.ContributionID != "" && h.Plugin == span.Owner && h.ContributionID == span.ContributionID && h.SectionID == s.SectionID {
				piece.SubscriptionID, piece.PluginVersion = h.SubscriptionID, h.PluginVersion
			}
		}
		list = append(list, piece)
	}
	return list
}

func (r *Record) whySentence(e *Result) string {
	if !e.In {
		return "no section and no reminder has this text: it must be given as it stands in the prompt, line breaks and escapes included"
	}
	var who []string
	for _, s := range e.Said {
		if said := r.ownerText(s.Owner) + words.If(s.SubscriptionID != "", " ("+s.SubscriptionID+")") + " in " + words.If(s.SectionID == string(phases.KindReminder), "a ") + s.SectionID; !slices.Contains(who, said) {
			who = append(who, said)
		}
	}
	return "it was said by " + strings.Join(who, ", ")
}
