package recent

import (
	"slices"
	"strconv"
	"testing"
)

func TestForgetsOldest(t *testing.T) {
	t.Parallel()

	m := New[int](3)
	for i := range 5 {
		forgotten, full := m.Put("", strconv.Itoa(i), i)
		if full != (i > 2) || full && forgotten != i-3 {
			t.Errorf("%d: forgot %d %v", i, forgotten, full)
		}
	}
	m.Put("", "2", 22) // keeps its place
	if v, ok := m.Get("2"); v != 22 || !ok || !slices.Equal(m.Keys(""), []string{"2", "3", "4"}) || m.Len() != 3 {
		t.Error(v, ok, m.Keys(""), m.Len())
	}
	m.Drop("3")
	m.Drop("never")
	if v, ok := m.Lookup([]byte("4")); v != 4 || !ok || !slices.Equal(m.Keys(""), []string{"2", "4"}) {
		t.Error(v, ok, m.Keys(""))
	}
	for range 3 {
		m.Evict("")
	}
	if m.Len() != 0 || len(m.order) != 0 {
		t.Error(m.items, m.order)
	}
}

// TestFloodOfOneOwner: an owner that floods the map forgets keys of its own, and only
// as many as others need.
func TestFloodOfOneOwner(t *testing.T) {
	t.Parallel()

	m := New[int](8)
	m.Put("a", "a0", 0)
	m.Put("b", "b0", 0)
	for i := range 100 {
		m.Put("flood", strconv.Itoa(i), i)
	}
	if got := m.Keys("flood"); !slices.Equal(got, []string{"94", "95", "96", "97", "98", "99"}) {
		t.Error(got)
	}
	m.Put("a", "a1", 1)
	if a, b, flood := len(m.Keys("a")), len(m.Keys("b")), len(m.Keys("flood")); a != 2 || b != 1 || flood != 5 {
		t.Error(a, b, flood)
	}
	if owner, ok := m.Owner("b0"); owner != "b" || !ok {
		t.Error(owner, ok)
	}
	m.Put("flood", "b0", 9) // not its key
	if owner, _ := m.Owner("b0"); owner != "b" || m.Len() != 8 {
		t.Error(owner, m.Len())
	}
}
