// Package recent holds bounded maps that forget their oldest keys.
package recent

import "slices"

// Map is a bounded map whose keys have owners. A full map forgets the oldest key of the
// owner with most keys. It is not safe for concurrent use.
type Map[V any] struct {
	limit int
	items map[string]item[V]
	// order has the keys of each owner, oldest first; an owner without keys is not in it.
	order map[string][]string
	// sizes[n] is how many owners have n keys, up to the most that one has.
	sizes []int
}

type item[V any] struct {
	owner string
	value V
}

// New returns an empty map for at most limit keys.
func New[V any](limit int) Map[V] { return Map[V]{limit: limit} }

// Len returns the number of keys.
func (m *Map[V]) Len() int { return len(m.items) }

// Get returns the value of a key.
func (m *Map[V]) Get(key string) (V, bool) {
	i, ok := m.items[key]
	return i.value, ok
}

// Lookup is Get without a conversion of the key.
func (m *Map[V]) Lookup(key []byte) (V, bool) {
	i, ok := m.items[string(key)]
	return i.value, ok
}

// Owner returns who owns a key.
func (m *Map[V]) Owner(key string) (string, bool) {
	i, ok := m.items[key]
	return i.owner, ok
}

// Keys returns the keys of an owner, oldest first. The list must not be changed.
func (m *Map[V]) Keys(owner string) []string { return m.order[owner] }

// Put sets the value of a key; an existing one keeps its owner and age. A full map forgets
// another key, whose value it returns.
func (m *Map[V]) Put(owner, key string, v V) (forgotten V, full bool) {
	if old, known := m.items[key]; known {
		m.items[key] = item[V]{old.owner, v}
		return forgotten, false
	}
	if m.items == nil {
		m.items, m.order = map[string]item[V]{}, map[string][]string{}
	}
	if len(m.items) >= m.limit {
		forgotten, full = m.Evict(owner)
	}
	m.items[key] = item[V]{owner, v}
	m.setOrder(owner, append(m.order[owner], key))
	return forgotten, full
}

// Evict forgets the oldest key of the owner with most keys, preferring the given one, and
// returns its value; false for an empty map.
func (m *Map[V]) Evict(owner string) (V, bool) {
	if most := len(m.sizes) - 1; len(m.order[owner]) < most {
		for o, keys := range m.order {
			if len(keys) == most {
				owner = o
				break
			}
		}
	}
	keys := m.order[owner]
	if len(keys) == 0 {
		var none V
		return none, false
	}
	v := m.items[keys[0]].value
	delete(m.items, keys[0])
	m.setOrder(owner, keys[1:])
	return v, true
}

// Drop forgets a key.
func (m *Map[V]) Drop(key string) {
	i, known := m.items[key]
	if !known {
		return
	}
	delete(m.items, key)
	keys := m.order[i.owner]
	at := slices.Index(keys, key)
	m.setOrder(i.owner, slices.Delete(keys, at, at+1))
}

func (m *Map[V]) setOrder(owner string, keys []string) {
	if n := len(m.order[owner]); n > 0 {
		m.sizes[n]--
	}
	for len(m.sizes) <= len(keys) {
		m.sizes = append(m.sizes, 0)
	}
	if len(keys) == 0 {
		delete(m.order, owner)
	} else {
		m.order[owner] = keys
		m.sizes[len(keys)]++
	}
	for len(m.sizes) > 0 && m.sizes[len(m.sizes)-1] == 0 {
		m.sizes = m.sizes[:len(m.sizes)-1]
	}
}
