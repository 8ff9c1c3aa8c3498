package agentsdoc

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/lazy"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/settings"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/internal/watch"
	"github.com/grapnelhq/grapnel/sdk"
)

const (
	maxSessions = 256 // in memory; an evicted one is read back from the host, or looks again at its next turn
	maxBlocks   = 8   // working directories of which a session keeps the block
)

// sessionKey names a session, a sub-task within one, or, for a host without sessions, a turn.
type sessionKey struct {
	workspace, session, task, turn string
}

// keyOf names what the context belongs to. Not ok means nothing, so nothing can be remembered.
func keyOf(c *phases.Context) (key sessionKey, ok bool) {
	switch {
	case c.SessionID != "":
		return sessionKey{workspace: c.WorkspaceID, session: c.SessionID, task: taskOf(c)}, true
	case c.TurnID != "":
		return sessionKey{workspace: c.WorkspaceID, turn: c.ThreadID + "\x00" + c.TurnID}, true
	default:
		return sessionKey{}, false
	}
}

func (k sessionKey) text() string {
	return k.workspace + "\x00" + k.session + "\x00" + k.task + "\x00" + k.turn
}

func (k sessionKey) kept() bool { return k.session != "" && k.task == "" }

// session is what the plugin knows of one session. Its fields belong to the holder of turn, unless they say
// otherwise.
type session struct {
	key   sessionKey
	id    string        // the text of key
	turn  chan struct{} // held by the handler that works on the session
	read  bool          // the host was asked for the state
	epoch int           // the number that the host gave the epoch
	// blocks are the blocks by working directory, and order has the directories, the latest last. The latest is in
	// force.
	blocks map[string]*block
	order  []string
	nested *lazy.State         // what was delivered of the files since, and what is to be reported
	budget phases.AnswerBudget // the latest one of the host for a block
	// remarked are the codes of remarks that were made, waiting is what the next answer adds, and said counts the
	// messages.
	remarked map[string]bool
	waiting  []phases.Contribution
	said     int
	seen     watch.Seen // what was looked at last
	polled   bool       // it is not watched, so it must be looked at again each turn
	follows  bool       // the block follows the files within an epoch
	// dirty is set by the watcher without turn, and thread, the thread of the last turn, is read by other sessions.
	dirty  atomic.Bool
	thread atomic.Pointer[string]
}

func newSession(key sessionKey) *session {
	return &session{
		key: key, id: key.text(), turn: make(chan struct{}, 1), budget: phases.AnswerBudget{MaxChars: chain.MaxChars},
		blocks: map[string]*block{}, remarked: map[string]bool{},
	}
}

// enter waits for the session. The caller must leave it.
func (s *session) enter(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *session) leave() { <-s.turn }

// dir is the working directory of the block in force; empty before the first.
func (s *session) dir() string {
	if len(s.order) == 0 {
		return ""
	}
	return s.order[len(s.order)-1]
}

func (s *session) latest() *block { return s.blocks[s.dir()] }

// keep puts the block of a working directory in force.
func (s *session) keep(dir string, b *block) {
	s.blocks[dir] = b
	s.order = append(slices.DeleteFunc(slices.Clone(s.order), func(other string) bool { return other == dir }), dir)
	if len(s.order) > maxBlocks {
		delete(s.blocks, s.order[0])
		s.order = s.order[1:]
	}
}

// renew begins an epoch: nothing was delivered in it yet.
func (s *session) renew(epoch int) {
	s.forgetBlocks()
	s.epoch, s.nested = epoch, nil
}

// forgetBlocks makes the next turn look at the files again.
func (s *session) forgetBlocks() { s.blocks, s.order = map[string]*block{}, nil }

// sessions are the most recently used. The zero value is ready, and safe for concurrent use.
type sessions struct {
	// dropped, if set, is called for each forgotten session, without any lock held.
	dropped func(*session)

	mu     sync.Mutex
	recent []*session // the latest last
}

// of returns the session of a key, a new one if there is none.
func (m *sessions) of(key sessionKey) *session {
	m.mu.Lock()
	var s *session
	if i := m.index(key.text()); i >= 0 {
		s = m.recent[i]
		m.recent = slices.Delete(m.recent, i, i+1)
	} else {
		s = newSession(key)
	}
	m.recent = append(m.recent, s)
	old := slices.Clone(m.recent[:max(0, len(m.recent)-maxSessions)])
	m.recent = slices.Delete(m.recent, 0, len(old))
	m.mu.Unlock()
	m.notify(old)
	return s
}

func (m *sessions) index(id string) int {
	return slices.IndexFunc(m.recent, func(s *session) bool { return s.id == id })
}

// known returns the session of an id, the text of its key, or nil.
func (m *sessions) known(id string) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.index(id); i >= 0 {
		return m.recent[i]
	}
	return nil
}

// ofThread returns the session of the last turn of a thread, or nil.
func (m *sessions) ofThread(workspace, thread string) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range slices.Backward(m.recent) {
		if of := s.thread.Load(); s.key.workspace == workspace && s.key.kept() && of != nil && *of == thread {
			return s
		}
	}
	return nil
}

// forget drops the sessions of some keys.
func (m *sessions) forget(is func(sessionKey) bool) {
	var old []*session
	m.mu.Lock()
	m.recent = slices.DeleteFunc(m.recent, func(s *session) bool {
		if !is(s.key) {
			return false
		}
		old = append(old, s)
		return true
	})
	m.mu.Unlock()
	m.notify(old)
}

// forgetTasks drops the sub-tasks that share the session of a turn.
func (m *sessions) forgetTasks(c *phases.Context) {
	m.forget(func(k sessionKey) bool {
		return k.task != "" && k.workspace == c.WorkspaceID && k.session == c.SessionID
	})
}

func (m *sessions) notify(old []*session) {
	for _, s := range old {
		if m.dropped != nil {
			m.dropped(s)
		}
	}
}

// Codes of remarks about the plugin's own work.
const (
	codeWatchDegraded = "watch_degraded" // directories are looked at again in each turn
	codeStateNotKept  = "state_not_kept" // the state is in this process only
	codeStateDamaged  = "state_damaged"  // the kept state cannot be used
)

// remark adds a diagnostic to the session's next answer; each code once.
func (s *session) remark(code string, severity phases.Severity, message string) {
	if s.remarked[code] {
		return
	}
	s.remarked[code] = true
	d := phases.Diagnostic{Code: code, Severity: severity, Message: printable(message)}
	s.waiting = append(s.waiting, &phases.Noop{Common: phases.Common{Diagnostics: []phases.Diagnostic{d}}})
}

func (s *session) takeWaiting() []phases.Contribution {
	waiting := s.waiting
	s.waiting = nil
	return waiting
}

func isSubtask(c *phases.Context) bool {
	return c.Mode == phases.ModeTask || hasParent(c) || c.Conversation() != c.ThreadID
}

func hasParent(c *phases.Context) bool {
	return c.ParentSessionID != "" && c.ParentSessionID != c.SessionID
}

// taskOf identifies a sub-task without a session of its own: each is a conversation that knows nothing of what the
// session was told. It is empty for all other turns.
func taskOf(c *phases.Context) string {
	if !isSubtask(c) || hasParent(c) {
		return ""
	}
	return c.ThreadID + "\x00" + c.TaskID
}

func (d *docs) withheld(c *phases.Context) bool {
	return d.settings.Subtasks == settings.SubtasksNone && isSubtask(c)
}

func (d *docs) rules(c *phases.Context) chain.Options {
	o := d.bounded(c)
	if d.settings.Subtasks == settings.SubtasksManagedOnly && isSubtask(c) {
		o.Names, o.FallbackNames, o.LocalNames, o.GlobalDir = []string{}, []string{}, []string{}, ""
		o.ChildHint, o.Lazy = false, false
	}
	return o
}

// bounded are the plugin's options within what a host lets a turn read, without what the agent reads by itself.
func (d *docs) bounded(c *phases.Context) chain.Options {
	o := d.options
	o.Boundary = c.DirRoot
	if by, ok := chain.AgentOptions(c.Agent(), d.settings.Places); ok && !d.settings.SendAgain {
		by.Boundary = c.DirRoot
		o.Readers = []chain.Reader{{Dir: c.Dir, Options: by}}
	}
	return o
}

// inherited is a copy of the block in force of the session that a sub-task belongs to, or nil.
func (d *docs) inherited(ctx context.Context, call *sdk.Call) (*block, error) {
	where := &call.Context
	parent := d.parent(where)
	if own, ok := keyOf(where); parent == nil || ok && parent.key == own {
		return nil, nil
	}
	if err := parent.enter(ctx); err != nil {
		return nil, err
	}
	defer parent.leave()
	d.recall(ctx, call, parent)
	b := parent.latest()
	switch {
	case b == nil && parent.nested == nil:
		return nil, nil
	case b == nil: // another process made it
		return newBlock(d.view, d.rules(where), parent.nested.Dir, call.Budget), nil
	}
	copied := *b
	return &copied, nil
}

// parent is the session that a sub-task belongs to: the named one, that of its conversation, or the one that it runs
// in.
func (d *docs) parent(c *phases.Context) *session {
	if c.ParentSessionID != "" {
		return d.sessions.of(sessionKey{workspace: c.WorkspaceID, session: c.ParentSessionID})
	}
	if s := d.sessions.ofThread(c.WorkspaceID, c.Conversation()); s != nil || c.SessionID == "" {
		return s
	}
	return d.sessions.of(sessionKey{workspace: c.WorkspaceID, session: c.SessionID})
}
