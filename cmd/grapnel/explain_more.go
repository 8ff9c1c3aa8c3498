package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

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
		case m.Sections[i].Placement == phases.PlacementSystem:
			_, rendered, _ = strings.Cut(rendered, "\n\n")
		}
		texts[i] = rendered
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

// keptText is the text of something in a manifest.
func (s *openedStore) keptText(ctx context.Context, hash, what, manifestID string) (string, error) {
	text, err := s.Text(ctx, hash)
	if err != nil {
		return "", err
	}
	var key []byte
	if strings.HasPrefix(hash, "hmac-") {
		if key = s.fingerprintKey; len(key) == 0 {
			return "", unable(fmt.Errorf("the texts of the manifest %s could not be checked: its hashes are keyed; give the key as manifest.fingerprint_key in the configuration", manifestID))
		}
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
