package openaihttp

import (
	"container/list"
	"sync"
)

// memory remembers values up to a number of bytes. What was not used for longest is forgotten first.
type memory struct {
	mu      sync.Mutex
	most    int
	bytes   int
	entries map[place]*list.Element
	order   list.List // of remembered, the newest first
}

type remembered struct {
	at    place
	value []byte
}

// overhead is about what an entry takes beside its value.
const overhead = 256

func (m *memory) get(at place) (value []byte, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[at]
	if !ok {
		return nil, false
	}
	m.order.MoveToFront(e)
	return e.Value.(*remembered).value, true //nolint:forcetypeassert // put puts nothing else there
}

func (m *memory) put(at place, value []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		m.entries = map[place]*list.Element{}
	}
	if e, ok := m.entries[at]; ok {
		m.remove(e)
	}
	m.entries[at] = m.order.PushFront(&remembered{at, value})
	for m.bytes += len(value) + overhead; m.bytes > m.most; {
		m.remove(m.order.Back())
	}
}

func (m *memory) remove(e *list.Element) {
	r := m.order.Remove(e).(*remembered) //nolint:forcetypeassert // put puts nothing else there
	delete(m.entries, r.at)
	m.bytes -= len(r.value) + overhead
}
