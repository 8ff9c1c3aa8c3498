package agentsdoc

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/lazy"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/watch"
)

// maxSessions bounds the sessions in memory. One that is pushed out is read back
// from the host, or looks afresh at its next turn.
const maxSessions = 256

// maxBlocks bounds the working folders of which a session keeps the block.
const maxBlocks = 8

// sessionKey names a session, a sub-task within one, or, of a host that has no
// sessions, a turn.
type sessionKey struct {
	workspace, session, task, turn string
}

// keyOf names what the context belongs to. Not ok means that it names nothing:
// then nothing can be remembered.
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

// text is the key as the id of a watch.
func (k sessionKey) text() string {
	return k.workspace + "\x00" + k.session + "\x00" + k.task + "\x00" + k.turn
}

// kept reports whether the host keeps the state: what it keeps of a session is
// the session's own, and not that of a sub-task in it.
func (k sessionKey) kept() bool { return k.session != "" && k.task == "" }

// session is what the plugin knows of one session. Its fields belong to who
// holds the turn, but for those that say otherwise.
type session struct {
	key sessionKey
	// turn is held by whoever works on the session: one handler at a time.
	turn chan struct{}
	// read says that the host was asked for what it has.
	read bool
	// epoch is the host's number of the epoch that all below belongs to.
	epoch int
	// blocks are what was said at the beginning, by working folder, and order
	// has the folders, the latest last. The latest is the one in force.
	blocks map[string]*block
	order  []string
	// nested is what of the files was delivered since, and what is to be told.
	nested *lazy.State
	// room is what the host takes of a block, as it said last.
	room phases.Room
	// told are the codes of remarks that were made, waiting is what is to be told
	// with the next answer, and said counts the messages.
	told    map[string]bool
	waiting []phases.Contribution
	said    int
	// seen is what was looked at last, and polled that it is to be looked at
	// again each turn, because nobody watches.
	seen   watch.Seen
	polled bool
	// dirty is set by the watcher, which holds nothing, and thread is the thread
	// of the last turn, which others ask for.
	dirty  atomic.Bool
	thread atomic.Pointer[string]
}

// newSession is a session that nothing was said in.
func newSession(key sessionKey) *session {
	return &session{key: key, turn: make(chan struct{}, 1), room: phases.Room{MaxChars: MaxChars}}
}

// enter waits for the session. The caller leaves it.
func (s *session) enter(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave lets the next one in.
func (s *session) leave() { <-s.turn }

// begun reports whether the session has a block for a working folder that the
// host takes whole.
func (s *session) begun(dir string, room phases.Room) (*block, bool) {
	b, ok := s.blocks[dir]
	return b, ok && b.fits(room)
}

// dir is the working folder of the block in force; empty before the first.
func (s *session) dir() string {
	if len(s.order) == 0 {
		return ""
	}
	return s.order[len(s.order)-1]
}

// latest is the block in force: that of the working folder that was asked for
// last; nil before the first.
func (s *session) latest() *block {
	return s.blocks[s.dir()]
}

// folder is the one whose files apply in a working folder: in a sub-task, that
// of the session which its text is from.
func (s *session) folder(dir string) string {
	if b, ok := s.blocks[dir]; ok {
		return b.found.Dir
	}
	return dir
}

// keep puts the block of a working folder in force.
func (s *session) keep(dir string, b *block) {
	if s.blocks == nil {
		s.blocks = map[string]*block{}
	}
	s.blocks[dir] = b
	kept := s.order[:0:0]
	for _, other := range s.order {
		if other != dir {
			kept = append(kept, other)
		}
	}
	kept = append(kept, dir)
	s.order = kept
	if len(s.order) > maxBlocks {
		delete(s.blocks, s.order[0])
		s.order = s.order[1:]
	}
}

// renew begins an epoch: nothing was said and nothing delivered in it yet.
func (s *session) renew(epoch int) {
	s.epoch = epoch
	s.blocks, s.order, s.nested = nil, nil, nil
}

// sessions are those that were asked for last. The zero value is ready, and
// safe for concurrent use.
type sessions struct {
	// dropped, if set, is told of each that is forgotten, without any lock held.
	dropped func(*session)

	mu     sync.Mutex
	recent list.List // of *session, the latest in front
	index  map[string]*list.Element
}

// of returns the session of a key, a new one if there is none.
func (m *sessions) of(key sessionKey) *session {
	s, old := m.find(key)
	m.tell(old)
	return s
}

// find is of; it also returns the session that was pushed out, or nil.
func (m *sessions) find(key sessionKey) (s, old *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.index[key.text()]; ok {
		m.recent.MoveToFront(e)
		s, _ := e.Value.(*session)
		return s, nil
	}
	if m.index == nil {
		m.index = map[string]*list.Element{}
	}
	s = newSession(key)
	m.index[key.text()] = m.recent.PushFront(s)
	if m.recent.Len() > maxSessions {
		old = m.remove(m.recent.Back())
	}
	return s, old
}

// known returns the session of an id, the text of its key, or nil.
func (m *sessions) known(id string) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.index[id]
	if !ok {
		return nil
	}
	s, _ := e.Value.(*session)
	return s
}

// ofThread returns the session of the last turn of a thread, or nil.
func (m *sessions) ofThread(workspace, thread string) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	for e := m.recent.Front(); e != nil; e = e.Next() {
		s, _ := e.Value.(*session)
		if of := s.thread.Load(); s.key.workspace == workspace && s.key.kept() && of != nil && *of == thread {
			return s
		}
	}
	return nil
}

// forget drops a session.
func (m *sessions) forget(key sessionKey) {
	m.mu.Lock()
	var old *session
	if e, ok := m.index[key.text()]; ok {
		old = m.remove(e)
	}
	m.mu.Unlock()
	m.tell(old)
}

// forgetTasks drops the sub-tasks that have no session but that of a turn.
func (m *sessions) forgetTasks(c *phases.Context) {
	var old []*session
	m.mu.Lock()
	for e := m.recent.Front(); e != nil; {
		s, _ := e.Value.(*session)
		next := e.Next()
		if k := s.key; k.task != "" && k.workspace == c.WorkspaceID && k.session == c.SessionID {
			old = append(old, m.remove(e))
		}
		e = next
	}
	m.mu.Unlock()
	for _, s := range old {
		m.tell(s)
	}
}

// remove drops an element and returns its session; the caller holds the lock.
func (m *sessions) remove(e *list.Element) *session {
	s, _ := m.recent.Remove(e).(*session)
	delete(m.index, s.key.text())
	return s
}

// tell says that a session is not kept any more.
func (m *sessions) tell(old *session) {
	if old != nil && m.dropped != nil {
		m.dropped(old)
	}
}
