package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// saying is a piece of a prompt that one owner wrote.
type saying struct {
	SectionID string `json:"section_id"`
	manifest.Span
	SubscriptionID string `json:"subscription_id,omitempty" jsonschema:"the hook that brought it; absent from texts of the host and the engine"`
	PluginVersion  string `json:"plugin_version,omitempty"`
	Text           string `json:"text"                      jsonschema:"the piece of what was asked about"`
}

// explainPlugin says what of a plugin is in the prompt, and what else it did.
func (r *record) explainPlugin(e *explanation) {
	e.Kind = explainsPlugin
	e.Sections = filtered(r.Sections, func(s *manifest.Section) bool { return charsOf(s, e.ID) > 0 })
	e.HookSources = filtered(r.HookSources, func(h *phases.HookSource) bool { return h.Plugin == e.ID })
	e.Omitted = filtered(r.Omitted, func(l *phases.Omitted) bool { return l.Owner == e.ID })
	e.Runs = filtered(r.Runs, func(run *phases.Run) bool { return run.Plugin == e.ID })
	e.Tools = filtered(r.Tools, func(t *manifest.Tool) bool { return t.Owner == e.ID })
	e.Calls = filtered(r.Calls, func(c *manifest.Call) bool {
		return c.Owner == e.ID || slices.ContainsFunc(c.DecidedBy, func(d manifest.Decider) bool { return pluginOf(d.Subscription) == e.ID })
	})
	e.Diagnostics = filtered(r.Diagnostics, func(d *manifest.Diagnostic) bool { return d.HookSource != "" && pluginOf(d.HookSource) == e.ID })
	e.In = len(e.HookSources) > 0
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

func whyPlugin(e *explanation) string {
	var parts []string
	if len(e.Plugins) > 0 {
		p := &e.Plugins[0]
		parts = append(parts, "it is "+string(p.State)+textIf(p.Version != "", " in the version "+p.Version))
	}
	chars := 0
	for i := range e.Sections {
		chars += charsOf(&e.Sections[i], e.ID)
	}
	parts = append(parts, fmt.Sprintf("wrote %s characters in %s", text.Thousands(chars), count(len(e.Sections), "section", "sections")))
	if len(e.Tools) > 0 {
		parts = append(parts, "answers "+count(len(e.Tools), "tool", "tools"))
	}
	if len(e.Omitted) > 0 {
		parts = append(parts, count(len(e.Omitted), "thing of it was omitted", "things of it were omitted"))
	}
	return strings.Join(parts, ", ")
}

func (r *record) isTool(id string) bool {
	return slices.ContainsFunc(r.Tools, func(t manifest.Tool) bool { return t.Name == id }) ||
		slices.ContainsFunc(r.HostTools, func(t manifest.HostTool) bool { return t.Name == id }) ||
		slices.ContainsFunc(r.Calls, func(c manifest.Call) bool { return c.Tool == id })
}

// explainTool says whether the model was offered a tool, and what became of its calls.
func (r *record) explainTool(e *explanation) {
	e.Kind = explainsTool
	e.Tools = filtered(r.Tools, func(t *manifest.Tool) bool { return t.Name == e.ID })
	e.Calls = filtered(r.Calls, func(c *manifest.Call) bool { return c.Tool == e.ID })
	e.Runs = filtered(r.Runs, func(run *phases.Run) bool { return run.Phase == phases.PhaseToolCall && run.Hook == e.ID })
	e.Omitted = filtered(r.Omitted, func(l *phases.Omitted) bool { return l.ID == e.ID })
	e.Sections, e.Diagnostics = []manifest.Section{}, []manifest.Diagnostic{}
	owners := []string{}
	e.Why = "it was called, and nobody offers it"
	if slices.ContainsFunc(r.HostTools, func(t manifest.HostTool) bool { return t.Name == e.ID }) {
		e.In, e.Why = true, "it is the host's own"
	}
	for _, t := range e.Tools {
		owners = append(owners, t.Owner)
		e.In = e.In || t.HiddenDomain == ""
		e.Why = "it is answered by " + ownerText(t.Owner) + textIf(t.BundleID != "", ", in the bundle "+t.BundleID) +
			textIf(t.HiddenDomain != "", ", and hidden until its domain "+t.HiddenDomain+" is asked for")
	}
	e.HookSources = filtered(r.HookSources, func(h *phases.HookSource) bool {
		return h.ContributionKind == phases.KindToolBundle && slices.Contains(owners, h.Plugin)
	})
	r.addPlugins(e, owners)
	if n := len(e.Calls); n > 0 {
		e.Why += fmt.Sprintf("; %s of it", count(n, "call", "calls"))
	}
}

// explainSentence says who wrote each piece of a text, wherever it is in the prompt. texts are those of the sections,
// in order, without headings.
func (r *record) explainSentence(sentence string, texts []string) *explanation {
	e := &explanation{ID: sentence, Kind: explainsSentence, ManifestID: r.ManifestID, Tools: []manifest.Tool{}, Calls: []manifest.Call{}, Said: []saying{}}
	var subscriptions, owners []string
	for i, whole := range texts {
		s := &r.Sections[i]
		found := len(e.Said)
		for from := 0; ; {
			at := strings.Index(whole[from:], sentence)
			if at < 0 {
				break
			}
			e.Said = append(e.Said, r.saidAt(s, whole, from+at, sentence)...)
			from += at + len(sentence)
		}
		if len(e.Said) > found {
			e.Sections = append(e.Sections, *s)
		}
	}
	for _, said := range e.Said {
		subscriptions, owners = append(subscriptions, said.SubscriptionID), append(owners, said.Owner)
	}
	e.HookSources = filtered(r.HookSources, func(h *phases.HookSource) bool {
		return slices.ContainsFunc(e.Said, func(s saying) bool {
			return s.ContributionID == h.ContributionID && s.SubscriptionID == h.SubscriptionID
		})
	})
	e.Runs = filtered(r.Runs, func(run *phases.Run) bool { return slices.Contains(subscriptions, run.Subscription) })
	e.In = len(e.Said) > 0
	r.addPlugins(e, owners)
	e.Why = whySentence(e)
	e.Sections, e.Omitted, e.Diagnostics = append([]manifest.Section{}, e.Sections...), []phases.Omitted{}, []manifest.Diagnostic{}
	return e
}

// saidAt splits the text at a place of a section by its owners. Places are in bytes, those of spans in characters.
func (r *record) saidAt(s *manifest.Section, whole string, at int, sentence string) []saying {
	begin := utf8.RuneCountInString(whole[:at])
	runes := []rune(sentence)
	var list []saying
	for _, span := range s.ContentMap {
		from, to := max(span.Offset, begin), min(span.Offset+span.Length, begin+len(runes))
		if from >= to {
			continue
		}
		piece := saying{SectionID: s.SectionID, Span: span, Text: string(runes[from-begin : to-begin])}
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

func whySentence(e *explanation) string {
	if !e.In {
		return "no section has this text: it must be given as it stands in the prompt, line breaks and escapes included"
	}
	var who []string
	for _, s := range e.Said {
		if said := ownerText(s.Owner) + textIf(s.SubscriptionID != "", " ("+s.SubscriptionID+")") + " in " + s.SectionID; !slices.Contains(who, said) {
			who = append(who, said)
		}
	}
	return "it was said by " + strings.Join(who, ", ")
}

// sectionTexts splits a prompt into the texts of its sections, without headings.
func sectionTexts(m *manifest.Manifest, p *compiler.Prompt) []string {
	if p == nil {
		return nil
	}
	texts, rest := make([]string, len(m.Sections)), p.FullText
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
	return texts
}

// keptTexts are the texts of a kept manifest's sections, without headings; nil if they were not kept, or not all.
func keptTexts(ctx context.Context, s *openedStore, m *manifest.Manifest) ([]string, error) {
	texts := make([]string, len(m.Sections))
	for i := range m.Sections {
		rendered, err := s.sectionText(ctx, m, &m.Sections[i])
		switch {
		case store.HasCode(err, store.CodeNotFound):
			return nil, nil
		case err != nil:
			return nil, err
		case m.Sections[i].Placement == phases.PlacementSystem:
			_, rendered, _ = strings.Cut(rendered, "\n\n")
		}
		texts[i] = rendered
	}
	return texts, nil
}

// sectionText is the kept text of a section as it was rendered. Somebody may have changed it: it has to have the
// section's fingerprint.
func (s *openedStore) sectionText(ctx context.Context, m *manifest.Manifest, section *manifest.Section) (string, error) {
	rendered, err := s.Text(ctx, section.Fingerprint)
	if err != nil {
		return "", err
	}
	var key []byte
	if strings.HasPrefix(section.Fingerprint, "hmac-") {
		if key = s.fingerprintKey; len(key) == 0 {
			return "", unable(fmt.Errorf("the texts of the manifest %s could not be checked: its fingerprints are keyed; give the key as manifest.fingerprint_key in the configuration", m.ManifestID))
		}
	}
	if manifest.Fingerprint(rendered, key) != section.Fingerprint {
		return "", refused(fmt.Errorf("the text kept for the section %s is not that of the manifest %s; see: grapnel manifest verify", clean(section.SectionID), m.ManifestID))
	}
	return rendered, nil
}

// whyNoTexts says why the store does not have the texts of a manifest.
func whyNoTexts(m *manifest.Manifest) string {
	if m.TextsKept {
		return "were kept, and are gone; see: grapnel manifest find --kind erasure, and grapnel manifest verify"
	}
	return "were not kept: that takes manifest.keep_text"
}
