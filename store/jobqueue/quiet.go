package jobqueue

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// sayAgain is how long a message of River's is not repeated.
const sayAgain = 10 * time.Second

// maxSaid is how many messages are remembered.
const maxSaid = 500

// quiet is a log for River, which says the same many times a second while a
// database is away. Its messages come a level lower, for what matters to
// operators this package says itself, and each once in a while.
type quiet struct {
	next slog.Handler
	said *said
}

var _ slog.Handler = (*quiet)(nil)

// said is when each message came last. River has a few dozen; those with text of a
// failure in them are bounded.
type said struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// lower is the level that a message of River's gets.
func lower(l slog.Level) slog.Level { return l - (slog.LevelWarn - slog.LevelInfo) }

// Enabled implements slog.Handler.
func (q *quiet) Enabled(ctx context.Context, l slog.Level) bool { return q.next.Enabled(ctx, lower(l)) }

// Handle implements slog.Handler.
func (q *quiet) Handle(ctx context.Context, r slog.Record) error {
	if !q.said.due(r.Message, r.Time) {
		return nil
	}
	r.Level = lower(r.Level)
	return q.next.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q *quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &quiet{next: q.next.WithAttrs(attrs), said: q.said}
}

// WithGroup implements slog.Handler.
func (q *quiet) WithGroup(name string) slog.Handler {
	return &quiet{next: q.next.WithGroup(name), said: q.said}
}

// due notes a message and says whether it was long silent.
func (s *said) due(message string, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, ok := s.last[message]; ok && at.Sub(last) < sayAgain {
		return false
	}
	if s.last == nil || len(s.last) >= maxSaid {
		s.last = map[string]time.Time{}
	}
	s.last[message] = at
	return true
}
