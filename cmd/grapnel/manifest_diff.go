package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// addTexts adds how the texts of changed, added and removed sections differ, where a store has kept them.
func (a *app) addTexts(ctx context.Context, from, to *manifest.Manifest, d *manifest.Difference) error {
	if !from.TextsKept || !to.TextsKept {
		return nil
	}
	return a.withStore(ctx, store.Options{ReadOnly: true}, func(s *openedStore) error {
		if strings.HasPrefix(to.HashFull, "hmac-") && len(s.fingerprintKey) == 0 {
			return nil // the texts could not be checked
		}
		before, after := byID(from), byID(to)
		for _, id := range slices.Concat(d.Sections.Removed, d.Sections.Changed, d.Sections.Added) {
			var texts [2]string
			for i, m := range []*manifest.Manifest{from, to} {
				row := []map[string]*manifest.Section{before, after}[i][id]
				if row == nil {
					continue
				}
				var err error
				if texts[i], err = s.sectionText(ctx, m, row); err != nil {
					if store.HasCode(err, store.CodeNotFound) {
						return nil // retention took it
					}
					return err
				}
			}
			if texts[0] != texts[1] {
				d.Texts = append(d.Texts, manifest.TextChange{SectionID: id, Unified: udiff.Unified("from", "to", texts[0]+"\n", texts[1]+"\n")})
			}
		}
		return nil
	})
}

// printOrigins prints what differs beside the prompt itself: where it comes from, and what was done for it.
func (a *app) printOrigins(d *manifest.Difference) {
	plain := func(title string, list []manifest.Change[string]) {
		printList(a, title, "name|what|from|to", list, func(c *manifest.Change[string]) cells {
			return cells{c.Name, mark(c.What), orEmpty(c.From), orEmpty(c.To)}
		})
	}
	plain("made for and by", d.Head)
	printList(a, "plugins", "plugin|what|from|to", d.Plugins, func(c *manifest.Change[manifest.PluginSlot]) cells {
		text := func(p *manifest.PluginSlot) string {
			if p == nil {
				return ""
			}
			return strings.Join(slices.DeleteFunc([]string{p.Version, string(p.State), p.SHA256, p.GrantHash}, func(s string) bool { return s == "" }), " ")
		}
		return cells{c.Name, mark(c.What), text(c.From), text(c.To)}
	})
	plain("the host's tools", d.HostTools)
	printList(a, "runs", "hook|what|from|to", d.Runs, func(c *manifest.Change[manifest.RunSlot]) cells {
		text := func(r *manifest.RunSlot) string {
			if r == nil {
				return ""
			}
			return string(r.State) + words.If(r.Code != "" && r.Code != string(r.State), " ("+r.Code+")") + words.If(r.Verdict != "", ", "+string(r.Verdict))
		}
		return cells{c.Name, mark(c.What), mark(text(c.From)), mark(text(c.To))}
	})
	plain("omitted", d.Omitted)
	plain("reminders", d.Reminders)
	plain("files", d.Files)
	printList(a, "history", "what|from|to", d.History, func(c *manifest.Change[manifest.History]) cells {
		text := func(h *manifest.History) string {
			return fmt.Sprintf("%s, %d omitted, %d summarized, %d repaired, %s", words.Count(h.Entries, "message", "messages"), h.Cut, h.Summarized, h.Repaired, h.Hash)
		}
		return cells{mark(manifest.ChangeKind(c.Name)), text(c.From), text(c.To)}
	})
	if b := d.Break; b != nil {
		a.heading("\nprompt cache")
		a.printf("  broke at  ")
		a.paint(caution, fmt.Sprintf("%s%s: %s\n", clean(b.Place()), words.If(b.Owner != "" && b.Owner != phases.OwnerHost, " ("+clean(b.Owner)+")"), clean(b.Words())))
	}
	for _, t := range d.Texts {
		a.heading("\n" + clean(t.SectionID))
		a.printUnified(printable(t.Unified))
	}
}

// printUnified prints a unified diff of two texts, whose first two lines name them.
func (a *app) printUnified(diff string) {
	n := 0
	for line := range strings.Lines(diff) {
		n++
		switch {
		case n <= 2:
			a.paint(heading, line)
		case line[0] == '@':
			a.paint(place, line)
		case line[0] == '+':
			a.paint(good, line)
		case line[0] == '-':
			a.paint(bad, line)
		default:
			a.out.WriteString(line)
		}
	}
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
