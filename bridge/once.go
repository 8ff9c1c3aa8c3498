package bridge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// memory is what the model of a session has in its conversation: sections of plugins, by their ids. A session that ends
// leaves it to the one that resumes it.
type memory struct {
	epoch int
	has   map[string]given
}

type given struct {
	owner, title, hash string
	manifest           string // the record of the prompt that it was given with
}

// ofOnePrompt are the sections that answer a prompt: they are sent with each, whatever the model has.
func ofOnePrompt(id string) bool { return id == "memory_recall" || id == "dynamic_context" }

// anew reports whether an agent puts the text of a prompt into its system prompt, in the place of that of the prompt before:
// its model keeps none.
func anew(host string) bool { return host == "opencode" }

// news is what a prompt has that the model has not.
type news struct {
	texts   []string
	changes []manifest.RequestChange // what is not sent again
	from    map[string]int           // where sections begin in the text
	sent    map[string]given
}

const joint = "\n\n"

func (n *news) add(text string) { n.texts = append(n.texts, text) }

func (n *news) text() string { return strings.Join(n.texts, joint) }

// newsOf compares a prompt with what the model has.
func (m *memory) newsOf(p *loop.Prompt) *news {
	n := &news{from: map[string]int{}, sent: map[string]given{}}
	for i := range p.Manifest.Sections {
		s := &p.Manifest.Sections[i]
		before, has := m.has[s.SectionID]
		switch {
		case ofOnePrompt(s.SectionID):
			n.add(p.Parts[i])
			continue
		case has && before.hash == s.Hash:
			n.changes = append(n.changes, manifest.RequestChange{Kind: manifest.RequestHeld, ID: s.SectionID, Manifest: before.manifest})
			n.sent[s.SectionID] = before
			continue
		case has:
			n.add(fmt.Sprintf("What follows replaces the text %q that was given before.", s.Title))
		}
		n.from[s.SectionID] = len(n.text())
		n.sent[s.SectionID] = given{s.Owner, s.Title, s.Hash, p.Manifest.ManifestID}
		n.add(p.Parts[i])
	}
	for _, id := range slices.Sorted(maps.Keys(m.has)) {
		if _, there := n.sent[id]; there {
			continue
		} else if was := m.has[id]; lost(p.Manifest, id, was.owner) {
			n.sent[id] = was
		} else {
			n.add(fmt.Sprintf("The text %q that was given before no longer applies.", was.title))
		}
	}
	return n
}

// lost reports whether a section is not in a prompt because of a limit or a failure, and not because its plugin has nothing
// to say any more.
func lost(m *manifest.Manifest, id, owner string) bool {
	return slices.ContainsFunc(m.Omitted, func(o phases.Omitted) bool { return o.ID == id }) ||
		slices.ContainsFunc(m.Runs, func(r phases.Run) bool {
			return r.Plugin == owner && r.Phase == phases.PrePromptCompile && r.Code != ""
		})
}

// give returns the text of a prompt that an answer has room for. Without any room it waits for an answer with some.
func (s *session) give(p *loop.Prompt, host string, r room) (Outcome, error) {
	if anew(host) {
		s.has = nil
	}
	n := s.newsOf(p)
	whole := n.text()
	text, cut := r.put(whole, p.Reminders)
	if r.most == 0 {
		text, cut = room{unlimited, inBytes}.put(whole, p.Reminders)
	}
	for id, from := range n.from {
		if !strings.HasPrefix(text, strings.TrimSpace(whole[:min(from+len(joint)+1, len(whole))])) { // it lies behind the cut
			delete(n.sent, id)
		}
	}
	s.has, s.sent = n.sent, p.Manifest
	if r.most == 0 {
		s.late, text = text, ""
	}
	if len(n.changes) > 0 {
		if err := s.turn.ReportRequest(n.changes); err != nil {
			return Outcome{}, err
		}
	}
	return Outcome{Context: text}, s.reportCut(text, cut)
}
