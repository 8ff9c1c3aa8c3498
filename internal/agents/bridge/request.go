package bridge

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

const (
	mostGave     = 16 // texts of ours that are looked for in a request
	mostVerdicts = 64 // that may be asked for again
)

// requests is what is known of the requests of a session.
type requests struct {
	last string       // the record of the last one
	seen []messageSum // its messages
	read agent.Reading
	// systemSum and bounds are of its system prompt, and cached are the ends at which the provider was asked to cache.
	systemSum uint64
	bounds    []sectionBound
	cached    []int
	gave      []gaveText
	// system are the sections in the agent's system prompt, as of an epoch of the session, with the plugins that brought them;
	// nil if it has not asked.
	system      []agent.Section
	owners      map[string]string
	systemEpoch int
	asks        bool // it has asked for them
}

// messageSum stands for a message, whose parts may have other bounds in another request, and for its parts.
type messageSum struct {
	whole uint64
	parts []uint64
}

// gaveText is a text that the agent got for its model, with the record of the prompt.
type gaveText struct{ text, manifest string }

// gives remembers a text that the agent gets for its model.
func (s *session) gives(text string) {
	if text = strings.TrimSpace(text); text == "" || s.sent == nil {
		return
	}
	if len(s.gave) == mostGave {
		s.gave = s.gave[1:]
	}
	s.gave = append(slices.Clip(s.gave), gaveText{text, s.sent.ManifestID})
}

// compose returns the stable sections for the agent's system prompt. They stay what they were until the conversation is
// compacted, cleared or resumed: a change comes with a prompt, and the provider keeps the system prompt.
func (b *Bridge) compose(ctx context.Context, s *session, where phases.Context, e *agent.Event) (agent.Outcome, error) {
	s.asks = true
	if s.system != nil && s.systemEpoch == s.epoch {
		return agent.Outcome{Sections: s.system}, nil
	}
	t, err := b.begin(ctx, s, where, &agent.Event{Model: e.Model, Tools: e.Tools})
	if err != nil {
		return agent.Outcome{}, err
	}
	p, err := t.Prompt(ctx)
	if _, refused := errors.AsType[*loop.Refused](err); refused { // there is no prompt yet that a plugin could refuse
		return agent.Outcome{}, ignore(t.Done(ctx, "", err), err)
	}
	if err != nil {
		return agent.Outcome{}, t.Done(ctx, "", err)
	}
	s.enter(p)
	return agent.Outcome{Sections: s.system}, errors.Join(t.ReportRequest(nil), t.Done(ctx, "", nil))
}

// enter makes the stable sections of a prompt those of the system prompt, but for what the conversation has.
func (s *session) enter(p *loop.Prompt) {
	s.system, s.owners, s.systemEpoch = []agent.Section{}, map[string]string{}, s.epoch
	has := map[string]given{}
	for id, was := range s.has {
		if !was.system {
			has[id] = was // the conversation has it
		}
	}
	for i := range p.Manifest.Sections {
		m := &p.Manifest.Sections[i]
		if _, told := has[m.SectionID]; told || m.Stability != phases.StabilityStable || ofOnePrompt(m.SectionID) {
			continue
		}
		has[m.SectionID] = given{m.Owner, m.Title, m.Hash, p.Manifest.ManifestID, true}
		s.owners[m.SectionID] = m.Owner
		s.system = append(s.system, agent.Section{ID: m.SectionID, Text: p.Parts[i]})
	}
	s.has = has
}

// expect leaves the stable sections of a prompt to the system prompt, which some agents put together behind it. An agent that
// has not asked for them by the next prompt gets them with that.
func (s *session) expect(p *loop.Prompt) {
	switch {
	case s.system == nil:
		s.enter(p)
	case !s.asks:
		for id, g := range s.has {
			if g.system {
				delete(s.has, id)
			}
		}
	}
}

// inSystem are the sections that a system prompt keeps when the conversation is compacted.
func (m *memory) inSystem() map[string]given {
	left := map[string]given{}
	for id, g := range m.has {
		if g.system {
			left[id] = g
		}
	}
	return left
}

// request records what the agent sends to its model, in the turn under way or else in one of its own.
func (b *Bridge) request(ctx context.Context, s *session, where phases.Context, e *agent.Event) error {
	t, own := s.turn, false
	if t == nil || t.Outdated() {
		var err error
		if t, err = b.begin(ctx, s, where, &agent.Event{Model: e.Model}); err != nil {
			return err
		}
		own = true
	}
	err := report(t, e)
	if err == nil {
		err = s.observe(ctx, t, e)
	}
	if err == nil && e.Step == agent.StepUsage {
		err = ignoreUnknown(t.Used(ctx, e.Usage))
	}
	if own {
		return errors.Join(err, t.Done(ctx, "", nil))
	}
	return err
}

// usage records the usage of a request, with the request if the agent shows or keeps it. Without its own session, a subagent's
// request is not one of the host's conversation.
func (b *Bridge) usage(ctx context.Context, s *session, where phases.Context, e *agent.Event) (err error) {
	from := s.read
	if e.Kept != "" && (e.AgentID == "" || where.ParentSessionID != "") {
		if e.Request, s.read = e.Agent.ReadRequest(e, from); e.Request == nil && s.read.Lost != from.Lost { // said once
			e.Facts = append(e.Facts, manifest.HostFact{Name: "unread", Value: s.read.Lost})
		}
	}
	switch {
	case e.Request != nil:
		if err = b.request(ctx, s, where, e); err != nil {
			s.read = from
		}
	case s.turn != nil:
		err = errors.Join(report(s.turn, e), ignoreUnknown(s.turn.Used(ctx, e.Usage)))
	case s.last != "" && e.Usage != (phases.Usage{}): // of a request between turns
		err = b.engine.ReportUsage(ctx, manifest.Usage{ManifestID: s.last, Rounds: 1, ReportedAt: b.now().UTC(), Usage: e.Usage})
	}
	return err
}

// sectionBound is a part of the last system prompt, without its text.
type sectionBound struct {
	part   compiler.RequestPart
	length int
}

// relabel gives a system prompt that is the last one again the parts that it had: an agent may send one that it keeps, and say
// what it would compose now.
func (s *session) relabel(r *compiler.Request) {
	all := together(r.System)
	whole := maphash.String(seed, all)
	if whole == s.systemSum && all != "" && len(r.Cached) == len(s.cached) {
		r.System = nil
		for _, b := range s.bounds {
			b.part.Text, all = all[:b.length], all[b.length:]
			r.System = append(r.System, b.part)
		}
		r.Cached = s.cached
		return
	}
	s.systemSum, s.bounds, s.cached = whole, nil, r.Cached
	for _, p := range r.System {
		b := sectionBound{p, len(p.Text)}
		b.part.Text = ""
		s.bounds = append(s.bounds, b)
	}
}

func together(parts []compiler.RequestPart) string {
	var text strings.Builder
	for i := range parts {
		text.WriteString(parts[i].Text)
	}
	return text.String()
}

func (s *session) observe(ctx context.Context, t *loop.Turn, e *agent.Event) error {
	r, sums := e.Request, s.seen
	s.relabel(r)
	if e.Kept == "" {
		sums = s.compare(r)
	}
	r.History.Previous = s.last
	s.claim(r)
	m, err := t.Observe(ctx, runtime.CompileInput{Model: e.Model, Provider: e.Provider}, r)
	if err != nil {
		return err
	}
	s.last, s.seen = m.ManifestID, sums
	return nil
}

// compare leaves out what the previous request had, and returns sums of all messages.
func (s *session) compare(r *compiler.Request) []messageSum {
	sums, all := messageSums(r)
	same, from := 0, 0
	for same < min(len(sums), len(s.seen)) && sums[same].whole == s.seen[same].whole {
		from += len(sums[same].parts)
		same++
	}
	if same < min(len(sums), len(s.seen)) { // a message that was changed: from the part that was
		is, was := sums[same].parts, s.seen[same].parts
		for i := 0; i < min(len(is), len(was)) && is[i] == was[i]; i++ {
			from++
		}
	}
	r.History.Hash, r.History.Same = manifest.Hash(all, nil), same
	r.Messages = r.Messages[from:]
	return sums
}

// claim names the plugins whose sections are in the system prompt, and the record of the prompt that a text came with.
func (s *session) claim(r *compiler.Request) {
	for i := range r.System {
		p := &r.System[i]
		if owner := s.owners[p.ID]; owner != "" && p.Owner == ownName {
			p.Owner = owner
		}
	}
	var parts []compiler.RequestPart
	for _, p := range r.Messages {
		empty := p.Text == ""
		for _, g := range s.gave {
			before, behind, found := strings.Cut(p.Text, g.text)
			if !found {
				continue
			}
			ours := p
			ours.Text, ours.Owner, ours.ID = g.text, ownName, g.manifest
			if p.Text = before; before != "" {
				parts = append(parts, p)
			}
			parts, p.Text = append(parts, ours), behind
		}
		if p.Text != "" || empty {
			parts = append(parts, p)
		}
	}
	r.Messages = parts
}

const ownName = "grapnel" // who wrote what is of several plugins

//nolint:gochecknoglobals // the sums are compared within the process
var seed = maphash.MakeSeed()

// messageSums returns sums of the messages, and the text of all.
func messageSums(r *compiler.Request) (sums []messageSum, all string) {
	var text strings.Builder
	sums = make([]messageSum, r.History.Entries)
	for i := 0; i < len(r.Messages); {
		m := r.Messages[i].Message
		text.WriteString(r.Messages[i].Role + "\x00")
		from := text.Len()
		for ; i < len(r.Messages) && r.Messages[i].Message == m; i++ {
			sums[m].parts = append(sums[m].parts, maphash.String(seed, r.Messages[i].Text))
			text.WriteString(r.Messages[i].Text)
		}
		sums[m].whole = maphash.String(seed, r.Messages[i-1].Role+text.String()[from:])
	}
	return sums, text.String()
}

// verdicts are the answers about the last calls: our mod and a hook ask about each.
type verdicts struct {
	of   map[string]verdict
	keys []string
}

type verdict struct {
	agent.Outcome

	ofMod bool
	turn  string // the agent's id; empty from our mod
	at    time.Time
}

// memoTime is how long an answer holds for the other one who asks: what a call is about may change.
const memoTime = 10 * time.Second

func verdictKey(e *agent.Event, where *phases.Context) string {
	if e.Step != agent.StepToolCall || e.Call.ID == "" {
		return ""
	}
	return strings.Join([]string{e.Name, e.SessionID, e.AgentID, where.Dir, e.Call.ID, e.Call.Tool, string(e.Call.Arguments)}, "\x00")
}

func (v *verdicts) keep(key string, out verdict) {
	if v.of == nil {
		v.of = map[string]verdict{}
	}
	if _, again := v.of[key]; !again {
		v.keys = append(v.keys, key)
	}
	if v.of[key] = out; len(v.keys) > mostVerdicts {
		delete(v.of, v.keys[0])
		v.keys = v.keys[1:]
	}
}
