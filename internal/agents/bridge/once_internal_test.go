package bridge

import (
	"testing"
	"time"
)

// TestIdleSessionKeepsWhatItHas: a session that goes on after an idle time is given nothing twice.
func TestIdleSessionKeepsWhatItHas(t *testing.T) {
	t.Parallel()

	now, k := time.Unix(1, 0), key{"w", "codex", "s"}
	b := New(nil, func() time.Time { return now })
	s, err := b.session(k)
	if err != nil {
		t.Fatal(err)
	}
	s.has = map[string]given{"agents_md": {hash: "x"}}
	now = now.Add(2 * idleTime)
	if err := b.Sweep(t.Context()); err != nil || len(b.sessions) != 0 {
		t.Fatalf("%d sessions, %v", len(b.sessions), err)
	}
	if s, err := b.session(k); err != nil || len(s.has) != 1 {
		t.Errorf("it has %v, %v", s.has, err)
	}
}
