package bridge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// memory has the plugins' sections in the conversation of a session's model, by their ids. It outlives the session for the
// one that resumes it.
type memory struct {
	epoch int
	has   map[string]given

	requests
}

type given struct {
	owner, title, hash string
	manifest           string // the record of the prompt that it was given with
	system             bool   // it stands in the system prompt
}

// ofOnePrompt reports whether a section is about one prompt: such a section is sent with every prompt.
func ofOnePrompt(id string) bool { return id == "memory_recall" || id == "dynamic_context" }

// news is the part of a prompt that the model does not have yet.
type news struct {
	texts   []string
	changes []manifest.RequestChange // sections that are not sent again, replaced or revoked
	from    map[string]int           // where sections begin in the text
	sent    map[string]given
	revoked map[string]given // those that the text says no longer apply
}

const joint = "\n\n"

// earlier names a section that the model has, and no file of that name that the agent has read.
func earlier(title string) string {
	return fmt.Sprintf("text that Grapnel's hooks gave before under the heading %q (not a file that you read yourself)", "## "+title)
}

func (n *news) add(text string) { n.texts = append(n.texts, text) }

func (n *news) change(kind manifest.RequestChangeKind, id string, of *given) {
	n.changes = append(n.changes, manifest.RequestChange{Kind: kind, ID: id, Manifest: of.manifest})
}

// keep takes back that a section is revoked: the model has it until it is told otherwise.
func (n *news) keep(id string) {
	if was, is := n.revoked[id]; is {
		n.sent[id] = was
		n.changes = slices.DeleteFunc(n.changes, func(c manifest.RequestChange) bool { return c.Kind == manifest.RequestRevoked && c.ID == id })
	}
}

func (n *news) text() string { return strings.Join(n.texts, joint) }

// newsOf compares a prompt with the sections that the model has. kept, if any, is the record of a prompt whose text the model
// still has whole.
func (m *memory) newsOf(p *loop.Prompt, kept *manifest.Manifest) *news {
	n := &news{from: map[string]int{}, sent: map[string]given{}, revoked: map[string]given{}}
	for i := range p.Manifest.Sections {
		s := &p.Manifest.Sections[i]
		before, has := m.has[s.SectionID]
		switch {
		case kept != nil && ofOnePrompt(s.SectionID) && slices.ContainsFunc(kept.Sections, func(k manifest.Section) bool { return k.SectionID == s.SectionID && k.Hash == s.Hash }):
			n.changes = append(n.changes, manifest.RequestChange{Kind: manifest.RequestHeld, ID: s.SectionID, Manifest: kept.ManifestID})
			continue
		case ofOnePrompt(s.SectionID):
			n.add(p.Parts[i])
			continue
		case has && before.hash == s.Hash:
			n.change(manifest.RequestHeld, s.SectionID, &before)
			n.sent[s.SectionID] = before
			continue
		case has:
			n.change(manifest.RequestReplaced, s.SectionID, &before)
			n.add("What follows replaces the " + earlier(s.Title) + ".")
		}
		n.from[s.SectionID] = len(n.text())
		n.sent[s.SectionID] = given{s.Owner, s.Title, s.Hash, p.Manifest.ManifestID, false}
		n.add(p.Parts[i])
	}
	for _, id := range slices.Sorted(maps.Keys(m.has)) {
		if _, there := n.sent[id]; there {
			continue
		} else if was := m.has[id]; lost(p.Manifest, id, was.owner) {
			n.sent[id] = was
		} else {
			n.from[id], n.revoked[id] = len(n.text()), was
			n.change(manifest.RequestRevoked, id, &was)
			n.add("The " + earlier(was.title) + " no longer applies.")
		}
	}
	return n
}

// lost reports whether a limit or a failure keeps a section out of a prompt, rather than a plugin that has nothing more
// to say.
func lost(m *manifest.Manifest, id, owner string) bool {
	return slices.ContainsFunc(m.Omitted, func(o phases.Omitted) bool { return o.ID == id }) ||
		slices.ContainsFunc(m.Runs, func(r phases.Run) bool {
			return r.Plugin == owner && r.Phase == phases.PrePromptCompile && r.Code != ""
		})
}

// give returns as much of a prompt's text as fits into an answer. If the answer takes no text, it waits for one that does.
func (s *session) give(p *loop.Prompt, e *agent.Event, r agent.Room) (agent.Outcome, error) {
	var kept *manifest.Manifest
	switch {
	case e.ReplacesPrompts() && r.Most > 0:
		s.has = nil
	case e.ReplacesPrompts():
		kept = s.sent // a compaction leaves the system prompt as it is
	}
	n := s.newsOf(p, kept)
	whole := n.text()
	waits := r.Most == 0
	if waits {
		r.Most = agent.Unlimited
	}
	text, cut := fit(r, whole, p.Reminders)
	for id, from := range n.from {
		if !strings.HasPrefix(text, strings.TrimSpace(whole[:min(from+len(joint)+1, len(whole))])) { // it lies behind the cut
			delete(n.sent, id)
			n.keep(id)
		}
	}
	s.has, s.sent = n.sent, p.Manifest
	s.ref.Store(&phases.DecisionRef{ManifestID: p.Manifest.ManifestID, Seq: p.Manifest.Seq})
	if waits {
		s.late, text = text, ""
	}
	s.gives(text)
	return agent.Outcome{Context: text}, s.report(text, cut, n.changes...)
}
