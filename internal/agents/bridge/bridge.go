package bridge

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// Engine has the methods of a *[runtime.Engine] that a bridge needs.
type Engine interface {
	BeginTurn(ctx context.Context, turn phases.Context) (*runtime.Turn, error)
	StartSession(ctx context.Context, s phases.Context, source string) (*runtime.Session, error)
	ResumeSession(ctx context.Context, s phases.Context, in *phases.SessionResumeInput) (*runtime.Session, error)
	EndSession(ctx context.Context, s phases.Context, reason string) (*phases.Outcome, error)
	ReportUsage(ctx context.Context, u manifest.Usage) error
}

var _ Engine = (*runtime.Engine)(nil)

const (
	mostSessions = 1024
	idleTime     = time.Hour
)

// codeReplaced is the code that plugins' answers get for the same repair.
const codeReplaced = "text_replaced"

// ErrTooMany is the error for an event of a new session while too many other sessions have a turn under way.
var ErrTooMany = errors.New("too many sessions have a turn under way")

// Bridge keeps the turns of hosts between their events. Its methods may be called concurrently. Events of one session
// wait for each other, except for tool events.
type Bridge struct {
	// Judged is that of each turn's options ([loop.Options]). It is set before the first event; may be nil.
	Judged func(ctx context.Context, c loop.Call, out *phases.Outcome)

	engine Engine
	now    func() time.Time

	mu       sync.Mutex
	sessions map[key]*session
	left     map[key]memory // of sessions that have ended or were idle
}

// key identifies a session: sessions of two workspaces or hosts may have the same id.
type key struct{ workspace, host, session string }

// session is a session's turn under way, if there is one.
type session struct {
	mu   sync.Mutex
	turn *loop.Turn
	id   string                 // the host's id of the turn
	said string                 // what the assistant said last
	goOn string                 // why the host was told to go on, until it has
	late string                 // text for which the answer to the prompt has no room; the next answer that has takes it
	sent *manifest.Manifest     // the record of the prompt
	says atomic.Pointer[Prompt] // that of the turn, if a user wrote it
	used time.Time
	// tools says whether the agent has the gateway's MCP server, as of its last prompt; nil if nobody has asked.
	tools *bool
	// compacted is the event that said that the conversation was compacted, until another one says so of the same compaction.
	compacted string
	ref       atomic.Pointer[phases.DecisionRef] // names sent

	// asked is the answer to a prompt that our mod has asked about, and verdicts are those about calls, until a hook asks too.
	asked    *verdict
	verdicts verdicts

	hostLog
	memory
}

// New returns a bridge to an engine. now is the clock.
func New(engine Engine, now func() time.Time) *Bridge {
	return &Bridge{engine: engine, now: now, sessions: map[key]*session{}, left: map[key]memory{}}
}

// Handle runs the phases of an event. From where it takes what the event does not have: the workspace, the actor and the
// bounds of the directory ([Event.Place]). An error means that nothing was decided: the hook's installation then decides
// what happens.
func (b *Bridge) Handle(ctx context.Context, where phases.Context, e *agent.Event) (out agent.Outcome, err error) {
	if e.Step == agent.StepNone {
		return out, nil
	}
	s, where, err := b.sessionOf(where, e)
	if s == nil || err != nil {
		return out, err
	}
	if e.Step.OfTool() {
		return b.tool(ctx, s, where, e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	where.Epoch = s.epoch
	if e.Step != agent.StepPrompt && e.Step != agent.StepSubagent && s.turn != nil {
		remark(e, s.turn)
	}
	switch e.Step {
	case agent.StepSubagent:
		if err := b.sessionEvent(ctx, s, where, e); err != nil {
			return out, err
		}
		fallthrough
	case agent.StepPrompt:
		return b.prompt(ctx, s, where, e)
	case agent.StepUsage:
		err = b.usage(ctx, s, where, e)
	case agent.StepText:
		s.said = e.Text
	case agent.StepCompose:
		return b.compose(ctx, s, where, e)
	case agent.StepRequest:
		err = b.request(ctx, s, where, e)
	case agent.StepStop:
		return b.stop(ctx, s, where, e)
	case agent.StepFailed:
		err = s.done(ctx, "", &loop.ProviderError{Err: errors.New(cmp.Or(e.Text, "the provider failed"))})
	case agent.StepInterrupted:
		err = s.done(ctx, "", context.Canceled)
	case agent.StepCompact, agent.StepOnlyCompact, agent.StepCompacted:
		err = b.compact(ctx, s, where, e)
	case agent.StepFile, agent.StepNote, agent.StepConfig:
		return b.note(ctx, s, where, e)
	default:
		err = b.sessionEvent(ctx, s, where, e)
	}
	return out, err
}

// sessionOf finds or creates the session of an event. A subagent whose start was seen has its own, a child of the host's
// session. Other subagents' calls and usage belong to their host's session; for their other events the session is nil.
func (b *Bridge) sessionOf(where phases.Context, e *agent.Event) (*session, phases.Context, error) {
	k := key{where.WorkspaceID, e.Host, e.SessionID}
	child := key{where.WorkspaceID, e.Host, e.SessionID + "/" + e.AgentID}
	switch {
	case e.AgentID == "":
	case e.Step == agent.StepSubagent || e.Step == agent.StepRequest || b.has(child):
		where.ConversationThreadID, where.ParentSessionID = where.ThreadID, where.SessionID
		where.ThreadID, where.SessionID, k = child.session, child.session, child
	case !e.Step.OfTool() && e.Step != agent.StepUsage && !e.Step.OfHost():
		return nil, where, nil
	}
	s, err := b.session(k)
	return s, where, err
}

func (b *Bridge) has(k key) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions[k] != nil
}

// session finds or creates a session.
func (b *Bridge) session(k key) (*session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.sessions[k]
	switch {
	case s == nil && len(b.sessions) >= mostSessions && !b.makeRoom():
		return nil, ErrTooMany
	case s == nil:
		s = &session{memory: b.left[k]}
		b.sessions[k] = s
		delete(b.left, k)
	}
	s.used = b.now()
	return s, nil
}

// makeRoom leaves the session without a turn that was used the longest time ago.
func (b *Bridge) makeRoom() bool {
	var oldest key
	var found *session
	for k, s := range b.sessions {
		if (found == nil || s.used.Before(found.used)) && s.mu.TryLock() {
			if s.turn == nil && len(s.notes) == 0 {
				oldest, found = k, s
			}
			s.mu.Unlock()
		}
	}
	if found == nil {
		return false
	}
	delete(b.sessions, oldest)
	b.remember(oldest, found)
	return true
}

// Prompt is what a user asks for, and where.
type Prompt struct {
	Text, Dir string
	Ref       *phases.DecisionRef
}

// Prompts returns the users' prompts of a workspace whose turns are under way.
func (b *Bridge) Prompts(workspace string) (found []Prompt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, s := range b.sessions {
		if p := s.says.Load(); p != nil && k.workspace == workspace {
			found = append(found, Prompt{p.Text, p.Dir, s.ref.Load()})
		}
	}
	return found
}

// Sweep ends the turns of sessions without an event for an hour, as interrupted, and forgets those sessions.
func (b *Bridge) Sweep(ctx context.Context) error {
	return b.end(ctx, func(_ key, s *session) bool { return b.now().Sub(s.used) > idleTime })
}

// Close ends all turns under way as interrupted.
func (b *Bridge) Close(ctx context.Context) error {
	return b.end(ctx, func(key, *session) bool { return true })
}

func (b *Bridge) end(ctx context.Context, which func(key, *session) bool) error {
	b.mu.Lock()
	ending := map[key]*session{}
	for k, s := range b.sessions {
		if which(k, s) {
			ending[k] = s
			delete(b.sessions, k)
		}
	}
	b.mu.Unlock()
	var errs []error
	for k, s := range ending {
		s.mu.Lock()
		errs = append(errs, s.done(ctx, "", context.Canceled), b.flush(ctx, s))
		b.leave(k, s)
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}

// done ends the turn under way, if there is one. The error that the turn ends with is not an error of the event.
func (s *session) done(ctx context.Context, text string, why error) error {
	s.says.Store(nil)
	return s.finish(ctx, text, why)
}

// finish is done for a turn whose prompt may go on in another one.
func (s *session) finish(ctx context.Context, text string, why error) error {
	if s.turn == nil {
		return nil
	}
	var lost error
	if s.late != "" { // the model may not have it
		lost = ignoreUnknown(s.report("", &manifest.RequestChange{Kind: manifest.RequestCut, Manifest: strconv.Itoa(utf8.RuneCountInString(s.late)), Sent: "0"}))
		s.late, s.has = "", nil
	}
	t := s.turn
	s.turn, s.id, s.said, s.verdicts = nil, "", "", verdicts{}
	return errors.Join(lost, ignore(t.Done(ctx, text, why), why))
}

// stop ends the turn under way, unless a plugin wants it to go on, and with it the session of a subagent.
func (b *Bridge) stop(ctx context.Context, s *session, where phases.Context, e *agent.Event) (agent.Outcome, error) {
	text, subagent := cmp.Or(e.Text, s.said), ofSubagent(e, &where)
	if s.turn != nil {
		reason, err := s.turn.GoOn(ctx, text)
		if err == nil && reason != "" {
			out := agent.Outcome{Verdict: phases.VerdictDeny, Reason: reason, DecisionRef: s.ref.Load()}
			s.goOn = out.Referring()
			return out, nil
		}
		if err = errors.Join(ignoreUnknown(err), s.done(ctx, text, nil)); err != nil {
			return agent.Outcome{}, err
		}
	}
	if subagent {
		return agent.Outcome{}, b.endSession(ctx, s, where, e)
	}
	return agent.Outcome{}, nil
}

// goesOn reports whether a prompt is the reason that the host got to go on: some hosts send it as a message. It
// belongs to the turn that goes on, which limits how often that happens.
func (s *session) goesOn(e *agent.Event) bool {
	reason := s.goOn
	s.goOn = ""
	return s.turn != nil && reason != "" && strings.TrimSpace(e.Text) == strings.TrimSpace(reason)
}

// prompt begins a turn, and gives the host the plugins' contributions to it.
func (b *Bridge) prompt(ctx context.Context, s *session, where phases.Context, e *agent.Event) (agent.Outcome, error) {
	if s.goesOn(e) {
		return agent.Outcome{}, nil
	}
	if s.turn != nil && s.asked != nil && !e.FromMod && s.turn.Input.UserText == e.Text && s.turn.Context().Dir == where.Dir && b.now().Sub(s.asked.at) <= memoTime {
		out := s.asked.Outcome
		s.id, s.asked = e.TurnID, nil
		return out, report(s.turn, e)
	}
	if err := s.done(ctx, "", context.Canceled); err != nil { // the host has not said how it ended
		return agent.Outcome{}, err
	}
	begun, err := b.begin(ctx, s, where, e)
	if err != nil {
		return agent.Outcome{}, err
	}
	remark(e, begun)
	var p *loop.Prompt
	if err = report(begun, e); err == nil {
		p, err = begun.Prompt(ctx)
	}
	if refused, ok := errors.AsType[*loop.Refused](err); ok {
		return agent.Outcome{Verdict: phases.VerdictDeny, Reason: cmp.Or(refused.Reason, refused.Error()), By: refused.By, DecisionRef: refused.DecisionRef}, ignore(begun.Done(ctx, "", err), err)
	}
	if err != nil {
		return agent.Outcome{}, begun.Done(ctx, "", err)
	}
	if s.turn, s.id, s.compacted = begun, e.TurnID, ""; where.ParentSessionID == "" {
		s.says.Store(&Prompt{Text: e.Text, Dir: where.Dir})
	}
	if e.FromMod {
		s.expect(p)
	}
	out, err := s.give(p, e, e.Room())
	if s.asked = nil; e.FromMod && err == nil {
		s.asked = &verdict{Outcome: out, at: b.now()}
	}
	return out, err
}

// report records what became of a prompt's text, and if it was cut, each hook whose text was not sent at all: the model does
// not have those sections.
func (s *session) report(sent string, cut *manifest.RequestChange, changes ...manifest.RequestChange) error {
	if cut == nil {
		return s.turn.ReportRequest(changes)
	}
	for i := range s.sent.Sections {
		row := &s.sent.Sections[i]
		before, has := s.has[row.SectionID]
		if has && before.manifest != s.sent.ManifestID || strings.Contains(sent, "## "+row.Title+"\n") {
			continue // it was sent with an earlier prompt, or now
		}
		delete(s.has, row.SectionID)
		for _, h := range s.sent.HookSources {
			if h.SectionID == row.SectionID {
				s.turn.Remark(phases.Diagnostic{
					Code: phases.CodeNotDelivered, Severity: phases.SeverityWarning, SafeForUser: true, Plugin: h.Plugin, Subscription: h.SubscriptionID,
					Message: "recalled, not delivered: the section " + h.SectionID + ": no answer of the turn had room for it",
				})
			}
		}
	}
	return s.turn.ReportRequest(append(changes, *cut))
}

// remark puts it on record that the plugins saw another text than the host has.
func remark(e *agent.Event, t *loop.Turn) {
	if e.Replaced > 0 {
		t.Remark(phases.Diagnostic{
			Code: codeReplaced, Severity: phases.SeverityWarning,
			Message: fmt.Sprintf("U+FFFD stands for what no text may hold (NUL, lone surrogates, bytes that are not UTF-8) in the payload of %s: %d times", e.Name, e.Replaced),
		})
	}
}

// begin begins a turn whose message nobody has judged yet, and puts on record what the host said before it.
func (b *Bridge) begin(ctx context.Context, s *session, where phases.Context, e *agent.Event) (*loop.Turn, error) {
	where.TurnID = cmp.Or(e.TurnID, rand.Text())
	if e.Prompter != "" {
		where.Metadata = map[string]json.RawMessage{"prompt_source": agent.Marshal(e.Prompter)}
	}
	begun, err := b.engine.BeginTurn(ctx, where)
	if err != nil {
		return nil, err
	}
	o := b.options()
	o.Input = runtime.CompileInput{Model: e.Model, HooksOnly: true, HostFiles: s.files, KeepReminders: e.Room().Most == 0}
	asks := e.Step == agent.StepPrompt || e.Step == agent.StepSubagent
	if asks {
		o.Input.UserText = e.Text
	}
	if e.Tools != nil && (asks || s.tools == nil) { // the directory of a call may have other files
		s.tools = new(e.Tools())
	}
	o.Input.ToolCalling = s.tools != nil && *s.tools
	t := loop.Wrap(begun, o)
	if err := s.recordIn(t); err != nil {
		return nil, t.Done(ctx, "", err)
	}
	return t, nil
}

// options are those of turns in which nobody can be asked.
func (b *Bridge) options() loop.Options {
	return loop.Options{
		Ask: func(context.Context, *loop.Refused) (bool, error) { return false, loop.ErrNotYet }, TellsRefusals: true, Judged: b.Judged,
	}
}

// compact dispatches the phases around a compaction, between turns in a turn of its own. Some hosts say twice that they have
// compacted, in two events.
func (b *Bridge) compact(ctx context.Context, s *session, where phases.Context, e *agent.Event) error {
	again := s.compacted != "" && s.compacted != e.Name
	if s.compacted = ""; e.Step != agent.StepCompact {
		if again {
			return nil
		}
		if s.compacted = e.Name; !e.ReplacesPrompts() {
			s.has = s.inSystem()
		}
		s.epoch++
	}
	if s.turn == nil {
		t, err := b.begin(ctx, s, where, &agent.Event{Model: e.Model, Tools: e.Tools}) // in the epoch that ends with it
		if err != nil {
			return err
		}
		return errors.Join(compactPhases(ctx, t, e), t.Done(ctx, "", nil))
	}
	if err := compactPhases(ctx, s.turn, e); err != nil || e.Step == agent.StepCompact {
		return err
	}
	s.turn.Input.KeepReminders = true
	p, err := s.turn.Prompt(ctx) // the turn goes on, without what was compacted
	if err != nil {
		return err
	}
	_, err = s.give(p, e, agent.Room{})
	return err
}

// compactPhases dispatches the phases of an event about a compaction. A host that does not say when it has compacted has both at once.
func compactPhases(ctx context.Context, t *loop.Turn, e *agent.Event) (err error) {
	if e.Step != agent.StepCompacted {
		_, err = t.Dispatch(ctx, &phases.PreCompactionInput{Trigger: e.Source})
	}
	if e.Step != agent.StepCompact && err == nil {
		_, err = t.Dispatch(ctx, &phases.PostCompactionInput{Summary: phases.NewPreview(e.Text, phases.MaxTurnText)})
	}
	return err
}

// sessionEvent begins, resumes or ends a session. The plugins' contributions come with its first prompt.
func (b *Bridge) sessionEvent(ctx context.Context, s *session, where phases.Context, e *agent.Event) error {
	err := s.done(ctx, "", context.Canceled)
	switch {
	case err != nil:
	case e.Step == agent.StepSessionStart || e.Step == agent.StepSubagent:
		s.has, s.system = nil, nil
		_, err = b.engine.StartSession(ctx, where, e.Source)
	case e.Step == agent.StepResume:
		s.system = nil
		_, err = b.engine.ResumeSession(ctx, where, &phases.SessionResumeInput{})
	default:
		err = errors.Join(b.endAgents(ctx, where, e), b.flush(ctx, s), b.endSession(ctx, s, where, e))
	}
	return err
}

func (b *Bridge) endSession(ctx context.Context, s *session, where phases.Context, e *agent.Event) error {
	_, err := b.engine.EndSession(ctx, where, e.Source)
	b.leave(key{where.WorkspaceID, e.Host, where.SessionID}, s)
	return err
}

// leave removes a session, and keeps what its model has for when it goes on.
func (b *Bridge) leave(k key, s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sessions[k] == s {
		delete(b.sessions, k)
	}
	b.remember(k, s)
}

func (b *Bridge) remember(k key, s *session) {
	if len(b.left) >= mostSessions {
		clear(b.left) // one that goes on is given everything again
	}
	b.left[k] = s.memory
}

// endAgents ends the turns of subagents whose host's session ends, as interrupted.
func (b *Bridge) endAgents(ctx context.Context, where phases.Context, e *agent.Event) error {
	return b.end(ctx, func(k key, _ *session) bool {
		return k.workspace == where.WorkspaceID && k.host == e.Host && strings.HasPrefix(k.session, where.SessionID+"/")
	})
}

// ofSubagent reports whether an event belongs to a subagent that has a session of its own, which ends with its turn.
func ofSubagent(e *agent.Event, where *phases.Context) bool {
	return e.AgentID != "" && where.ParentSessionID != ""
}

// ignore drops the error that a turn was ended with, if there is one.
func ignore(err, why error) error {
	if why != nil && errors.Is(err, why) {
		return nil
	}
	return err
}

// ignoreUnknown drops the error of a turn without a prompt: the gateway was started after it.
func ignoreUnknown(err error) error {
	if errors.Is(err, runtime.ErrNothingCompiled) {
		return nil
	}
	return err
}
