package agentsdoc

import (
	"container/list"
	"sync"

	"github.com/grapnelhq/grapnel/phases"
)

// maxRemembered bounds the answers that are kept. A session that is pushed out
// looks afresh at its next turn.
const maxRemembered = 256

// memoryKey is what an answer within a session depends on. A new epoch forgets;
// another working folder or another room is another question.
type memoryKey struct {
	workspace, session string
	epoch              int
	dir                string
	chars              int
}

// remembered is an answer; nil where there was nothing to say.
type remembered struct {
	key    memoryKey
	answer phases.Contribution
}

// memory keeps the answers of the sessions that were asked for last. The zero
// value is ready, and safe for concurrent use.
type memory struct {
	mu     sync.Mutex
	recent list.List // of *remembered, the latest in front
	index  map[memoryKey]*list.Element
}

// get returns the answer that was kept under the key.
func (m *memory) get(key memoryKey) (phases.Contribution, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.find(key)
}

func (m *memory) find(key memoryKey) (phases.Contribution, bool) {
	e, ok := m.index[key]
	if !ok {
		return nil, false
	}
	m.recent.MoveToFront(e)
	r, _ := e.Value.(*remembered)
	return r.answer, true
}

// keep stores an answer and returns the one that counts: of two turns that
// looked at the same time, the first to come back.
func (m *memory) keep(key memoryKey, answer phases.Contribution) phases.Contribution {
	m.mu.Lock()
	defer m.mu.Unlock()
	if first, ok := m.find(key); ok {
		return first
	}
	if m.index == nil {
		m.index = map[memoryKey]*list.Element{}
	}
	m.index[key] = m.recent.PushFront(&remembered{key, answer})
	if m.recent.Len() > maxRemembered {
		if last, ok := m.recent.Remove(m.recent.Back()).(*remembered); ok {
			delete(m.index, last.key)
		}
	}
	return answer
}
