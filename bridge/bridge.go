package bridge

import (
	"bytes"
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
func (b *Bridge) Handle(ctx context.Context, where phases.Context, e *Event) (Outcome, error) {
	if e.Step == StepNone {
		return Outcome{}, nil
	}
	s, where, err := b.sessionOf(where, e)
	if s == nil || err != nil {
		return Outcome{}, err
	}
	if e.Step.ofTool() {
		return b.tool(ctx, s, where, e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	where.Epoch = s.epoch
	if e.Step != StepPrompt && e.Step != StepSubagent && s.turn != nil {
		e.remark(s.turn)
	}
	switch e.Step {
	case StepPrompt:
		return b.prompt(ctx, s, where, e)
	case StepSubagent:
		if err := b.sessionEvent(ctx, s, where, e); err != nil {
			return Outcome{}, err
		}
		return b.prompt(ctx, s, where, e)
	case StepUsage:
		if s.turn != nil {
			return Outcome{}, ignoreUnknown(s.turn.Used(ctx, e.Usage))
		}
		return Outcome{}, nil
	case StepText:
		s.said = e.Text
		return Outcome{}, nil
	case StepStop:
		return b.stop(ctx, s, where, e)
	case StepFailed:
		return Outcome{}, s.done(ctx, "", &loop.ProviderError{Err: errors.New(cmp.Or(e.Text, "the provider failed"))})
	case StepInterrupted:
		return Outcome{}, s.done(ctx, "", context.Canceled)
	case StepCompact, StepOnlyCompact, StepCompacted:
		return Outcome{}, b.compact(ctx, s, where, e)
	case StepFile, StepNote, StepConfig:
		return b.note(ctx, s, where, e)
	default:
		return Outcome{}, b.sessionEvent(ctx, s, where, e)
	}
}

// sessionOf finds or creates the session of an event. A subagent whose start was seen has its own, a child of the host's
// session. Other subagents' calls and usage belong to their host's session; for their other events the session is nil.
func (b *Bridge) sessionOf(where phases.Context, e *Event) (*session, phases.Context, error) {
	k := key{where.WorkspaceID, e.Host, e.SessionID}
	if e.AgentID == "" {
		s, err := b.session(k)
		return s, where, err
	}
	child := k
	child.session += "/" + e.AgentID
	if e.Step != StepSubagent && !b.has(child) {
		if !e.Step.ofTool() && e.Step != StepUsage && !e.Step.ofHost() {
			return nil, where, nil
		}
		s, err := b.session(k)
		return s, where, err
	}
	where.ConversationThreadID, where.ParentSessionID = where.ThreadID, where.SessionID
	where.ThreadID, where.SessionID = child.session, child.session
	s, err := b.session(child)
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
	case s == nil && len(b.sessions) >= mostSessions:
		return nil, ErrTooMany
	case s == nil:
		s = &session{memory: b.left[k]}
		b.sessions[k] = s
		delete(b.left, k)
	}
	s.used = b.now()
	return s, nil
}

// Prompt is what a user asks for, and where.
type Prompt struct{ Text, Dir string }

// Prompts returns the users' prompts of a workspace whose turns are under way.
func (b *Bridge) Prompts(workspace string) (found []Prompt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, s := range b.sessions {
		if p := s.says.Load(); p != nil && k.workspace == workspace {
			found = append(found, *p)
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
	t := s.turn
	var lost error
	if s.late != "" {
		lost = ignoreUnknown(s.report("", &manifest.RequestChange{Kind: manifest.RequestCut, Manifest: strconv.Itoa(utf8.RuneCountInString(s.late)), Sent: "0"}))
	}
	if s.turn, s.id, s.said = nil, "", ""; s.late != "" {
		s.late, s.has = "", nil // the model may not have it
	}
	if err := t.Done(ctx, text, why); err != nil && (why == nil || !errors.Is(err, why)) {
		return errors.Join(lost, err)
	}
	return lost
}

// stop ends the turn under way, unless a plugin wants it to go on, and with it the session of a subagent.
func (b *Bridge) stop(ctx context.Context, s *session, where phases.Context, e *Event) (Outcome, error) {
	text, agent := cmp.Or(e.Text, s.said), e.ofSubagent(&where)
	if s.turn != nil {
		reason, err := s.turn.GoOn(ctx, text)
		if err == nil && reason != "" {
			s.goOn = reason
			return Outcome{Verdict: phases.VerdictDeny, Reason: reason}, nil
		}
		if err = errors.Join(ignoreUnknown(err), s.done(ctx, text, nil)); err != nil {
			return Outcome{}, err
		}
	}
	if agent {
		return Outcome{}, b.endSession(ctx, s, where, e)
	}
	return Outcome{}, nil
}

// goesOn reports whether a prompt is the reason that the host got to go on: some hosts send it as a message. It
// belongs to the turn that goes on, which limits how often that happens.
func (s *session) goesOn(e *Event) bool {
	reason := s.goOn
	s.goOn = ""
	return s.turn != nil && reason != "" && strings.TrimSpace(e.Text) == strings.TrimSpace(reason)
}

// prompt begins a turn, and gives the host the plugins' contributions to it.
func (b *Bridge) prompt(ctx context.Context, s *session, where phases.Context, e *Event) (Outcome, error) {
	if s.goesOn(e) {
		return Outcome{}, nil
	}
	if err := s.done(ctx, "", context.Canceled); err != nil { // the host has not said how it ended
		return Outcome{}, err
	}
	begun, err := b.begin(ctx, s, where, e)
	if err != nil {
		return Outcome{}, err
	}
	e.remark(begun)
	if err := report(begun, e); err != nil {
		return Outcome{}, errors.Join(err, ignore(begun.Done(ctx, "", err), err))
	}
	p, err := begun.Prompt(ctx)
	if refused, ok := errors.AsType[*loop.Refused](err); ok {
		return Outcome{Verdict: phases.VerdictDeny, Reason: cmp.Or(refused.Reason, refused.Error())}, ignore(begun.Done(ctx, "", err), err)
	}
	if err != nil {
		return Outcome{}, errors.Join(err, ignore(begun.Done(ctx, "", err), err))
	}
	if s.turn, s.id, s.compacted = begun, e.TurnID, ""; where.ParentSessionID == "" {
		s.says.Store(&Prompt{e.Text, where.Dir})
	}
	return s.give(p, e.Host, hosts[e.Host].rooms[e.Name])
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
func (e *Event) remark(t *loop.Turn) {
	if e.Replaced > 0 {
		t.Remark(phases.Diagnostic{
			Code: codeReplaced, Severity: phases.SeverityWarning,
			Message: fmt.Sprintf("U+FFFD stands for what no text may hold (NUL, lone surrogates, bytes that are not UTF-8) in the payload of %s: %d times", e.Name, e.Replaced),
		})
	}
}

// begin begins a turn whose message nobody has judged yet, and puts on record what the host said before it.
func (b *Bridge) begin(ctx context.Context, s *session, where phases.Context, e *Event) (*loop.Turn, error) {
	where.TurnID = cmp.Or(e.TurnID, rand.Text())
	if e.Prompter != "" {
		source, err := json.Marshal(e.Prompter)
		if err != nil {
			return nil, err
		}
		where.Metadata = map[string]json.RawMessage{"prompt_source": source}
	}
	begun, err := b.engine.BeginTurn(ctx, where)
	if err != nil {
		return nil, err
	}
	text, asks := "", e.Step == StepPrompt || e.Step == StepSubagent
	if asks {
		text = e.Text
	}
	if e.Tools != nil && (asks || s.tools == nil) { // the directory of a call may have other files
		s.tools = new(e.Tools())
	}
	t := loop.Wrap(begun, loop.Options{
		Input: runtime.CompileInput{UserText: text, Model: e.Model, HooksOnly: true, ToolCalling: s.tools != nil && *s.tools, HostFiles: s.files, KeepReminders: hosts[e.Host].rooms[e.Name].most == 0},
		Ask:   func(context.Context, *loop.Refused) (bool, error) { return false, loop.ErrNotYet }, TellsRefusals: true,
	})
	if err := s.recordIn(t); err != nil {
		return nil, errors.Join(err, ignore(t.Done(ctx, "", err), err))
	}
	return t, nil
}

// tool lets the plugins judge a call, or see its result. Calls of one turn may run at once. If the gateway has not seen the
// turn's prompt, because it started later, it judges calls in a new turn. It also does so if the turn's ledger is full,
// or another configuration is in force: agents work for hours on one prompt.
func (b *Bridge) tool(ctx context.Context, s *session, where phases.Context, e *Event) (Outcome, error) {
	t, whole, err := b.turnOf(ctx, s, where, e, nil)
	if err != nil {
		return Outcome{}, err
	}
	e.remark(t)
	out, err := s.judge(ctx, t, e)
	if phases.CodeOf(err) == phases.CauseBudgetExhausted {
		if t, _, err = b.turnOf(ctx, s, where, e, whole); err != nil {
			return Outcome{}, err
		}
		out, err = s.judge(ctx, t, e)
	}
	if err == nil && (e.Step != StepToolResult || out.Result != nil) {
		err = t.Keep(ctx) // before the agent acts on it: the gateway may be killed at any time
	}
	if err != nil {
		return Outcome{}, err
	}
	return out, nil
}

func (s *session) judge(ctx context.Context, t *loop.Turn, e *Event) (out Outcome, err error) {
	if e.Step != StepToolResult {
		if err := report(t, e); err != nil {
			return Outcome{}, err
		}
	}
	with := phases.ToolPreCall
	if e.Step == StepToolResult {
		with = phases.ToolPostCall
		r, err := t.FinishTool(ctx, e.Call, e.Result, e.IsError, e.Took)
		if err != nil {
			return Outcome{}, err
		}
		if r.Changed {
			out.Result = &r.Text
		}
	} else if out, err = check(ctx, t, e); err != nil {
		return Outcome{}, err
	}
	if out.Verdict == phases.VerdictDeny {
		return refusal(t, out, with)
	}
	if out.Verdict != "" || out.Result != nil { // there is no room beside a question or another result
		return out, nil
	}
	out.Context, err = s.bring(t, hosts[e.Host].rooms[e.Name], with)
	return out, err
}

func check(ctx context.Context, t *loop.Turn, e *Event) (Outcome, error) {
	checked, refused, err := t.CheckTool(ctx, e.Call)
	switch {
	case err != nil:
		return Outcome{}, err
	case refused != nil:
		if refused.Err != nil && !errors.Is(refused.Err, loop.ErrNotYet) { // no hook has decided: the reason names what failed
			refused.Reason = refused.Error()
		}
		return Outcome{Verdict: refused.Verdict, Reason: cmp.Or(refused.Reason, refused.Error())}, nil
	case !bytes.Equal(checked.Arguments, e.Call.Arguments) || e.Replaced > 0 && checked.Arguments != nil: // what was judged is what runs
		return Outcome{Arguments: checked.Arguments}, nil
	}
	return Outcome{}, nil
}

// bring returns the text for the model in an answer to a tool event: text that did not fit into the answer to the prompt,
// and reminders that would otherwise wait for the next prompt. What does not fit here keeps waiting.
func (s *session) bring(t *loop.Turn, r room, with phases.Phase) (string, error) {
	if r.most == 0 {
		return "", nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := ""
	if s.late != "" && s.turn != nil {
		var cut *manifest.RequestChange
		text, cut = r.put(s.late, nil)
		placed := manifest.RequestChange{Kind: manifest.RequestPlacement, Manifest: string(phases.PlacementUserMessage), Sent: string(with)}
		if err := ignoreUnknown(s.report(text, cut, placed)); err != nil {
			return "", err
		}
		s.late = ""
	}
	_, err := t.HandReminders(with, func(reminder string) bool {
		more := strings.TrimSpace(text + "\n\n" + plain(reminder))
		if !r.fits(more) {
			return false
		}
		text = more
		return true
	})
	return text, err
}

// turnOf returns the turn of a call, and the whole turn of the session, which an agent's turn is a part of. It is the one
// under way, unless that belongs to another prompt, is the full one, or has an earlier configuration, whose plugins are
// stopped soon and then judge nothing.
func (b *Bridge) turnOf(ctx context.Context, s *session, where phases.Context, e *Event, full *loop.Turn) (of, whole *loop.Turn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	another := e.TurnID != "" && s.id != "" && s.id != e.TurnID && !e.ofSubagent(&where) // a subagent has one turn
	if s.turn == nil || another || s.turn == full || s.turn.Outdated() {
		if err := b.renew(ctx, s, where, e); err != nil {
			return nil, nil, err
		}
	}
	of = s.turn
	if e.AgentID != "" && where.ParentSessionID == "" {
		of, err = s.turn.ForAgent(e.AgentID, loop.Options{Ask: func(context.Context, *loop.Refused) (bool, error) { return false, loop.ErrNotYet }, TellsRefusals: true})
	}
	if err == nil && where.Dir != "" && where.Dir != of.Context().Dir {
		of = of.In(where.Dir) // a call runs where its own event says
	}
	return of, s.turn, err
}

// renew begins a turn for a call, replacing the one under way. If that is the prompt's own, the prompt and the host's data of
// it carry over except for the id: the same one would repeat the keys of dispatches.
func (b *Bridge) renew(ctx context.Context, s *session, where phases.Context, e *Event) error {
	where.Epoch = s.epoch
	id, said, late, says, begins := e.TurnID, "", "", (*Prompt)(nil), *e
	var of *loop.Turn
	if s.turn != nil && (id == "" || id == s.id || e.ofSubagent(&where)) {
		id, said, late, says, begins.TurnID, s.late, of = s.id, s.said, s.late, s.says.Load(), "", "", s.turn
	}
	begun, err := b.begin(ctx, s, where, &begins)
	if err != nil {
		return err
	}
	if of != nil {
		begun.Input.UserText = of.Input.UserText
		err = ignoreUnknown(begun.Continue(of.Turn))
	}
	if err := errors.Join(err, s.finish(ctx, "", context.Canceled)); err != nil {
		return errors.Join(err, ignore(begun.Done(ctx, "", err), err))
	}
	s.turn, s.id, s.said, s.late = begun, id, said, late
	s.says.Store(says)
	return nil
}

// compact dispatches the phases around a compaction, between turns in a turn of its own. Some hosts say twice that they have
// compacted, in two events.
func (b *Bridge) compact(ctx context.Context, s *session, where phases.Context, e *Event) error {
	again := s.compacted != "" && s.compacted != e.Name
	if s.compacted = ""; e.Step != StepCompact {
		if again {
			return nil
		}
		if s.compacted = e.Name; !replaces(e.Host) {
			s.has = nil
		}
		s.epoch++
	}
	if s.turn == nil {
		t, err := b.begin(ctx, s, where, &Event{Model: e.Model, Tools: e.Tools}) // in the epoch that ends with it
		if err != nil {
			return err
		}
		return errors.Join(e.compact(ctx, t), t.Done(ctx, "", nil))
	}
	if err := e.compact(ctx, s.turn); err != nil || e.Step == StepCompact {
		return err
	}
	s.turn.Input.KeepReminders = true
	p, err := s.turn.Prompt(ctx) // the turn goes on, without what was compacted
	if err != nil {
		return err
	}
	_, err = s.give(p, e.Host, room{})
	return err
}

// compact dispatches the phases of an event about a compaction. A host that does not say when it has compacted has both at once.
func (e *Event) compact(ctx context.Context, t *loop.Turn) (err error) {
	if e.Step != StepCompacted {
		_, err = t.PreCompaction(ctx, &phases.PreCompactionInput{Trigger: e.Source})
	}
	if e.Step != StepCompact && err == nil {
		_, err = t.PostCompaction(ctx, &phases.PostCompactionInput{Summary: phases.NewPreview(e.Text, phases.MaxTurnText)})
	}
	return err
}

// sessionEvent begins, resumes or ends a session. The plugins' contributions come with its first prompt.
func (b *Bridge) sessionEvent(ctx context.Context, s *session, where phases.Context, e *Event) error {
	if err := s.done(ctx, "", context.Canceled); err != nil {
		return err
	}
	switch e.Step {
	case StepSessionStart, StepSubagent:
		s.has = nil
		_, err := b.engine.StartSession(ctx, where, e.Source)
		return err
	case StepResume:
		_, err := b.engine.ResumeSession(ctx, where, &phases.SessionResumeInput{})
		return err
	default:
		return errors.Join(b.endAgents(ctx, where, e), b.flush(ctx, s), b.endSession(ctx, s, where, e))
	}
}

func (b *Bridge) endSession(ctx context.Context, s *session, where phases.Context, e *Event) error {
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
	if len(b.left) >= mostSessions {
		clear(b.left) // one that goes on is given everything again
	}
	b.left[k] = s.memory
}

// endAgents ends the turns of subagents whose host's session ends, as interrupted.
func (b *Bridge) endAgents(ctx context.Context, where phases.Context, e *Event) error {
	of := key{where.WorkspaceID, e.Host, where.SessionID + "/"}
	return b.end(ctx, func(k key, _ *session) bool {
		return k.workspace == of.workspace && k.host == of.host && strings.HasPrefix(k.session, of.session)
	})
}

// ignore drops the error that a turn was ended with.
func ignore(err, why error) error {
	if errors.Is(err, why) {
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
