package gateway

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// notifyEvent is sent to those who watch the engine's events.
const notifyEvent = "event"

// mostEvents is how many events are remembered.
const mostEvents = 500

// mostDebug is how many events of the level debug are sent a second.
const mostDebug = 100

// Event is one of the engine's events, without what is for its log alone.
type Event struct {
	Time         time.Time         `json:"time"`
	Kind         runtime.EventKind `json:"kind"`
	Level        string            `json:"level"        jsonschema:"debug, info, warn or error"`
	Plugin       string            `json:"plugin"`
	Subscription string            `json:"subscription"`
	Phase        phases.Phase      `json:"phase"`
	State        string            `json:"state"`
	Code         string            `json:"code"`
	Message      string            `json:"message"`
}

// Events takes the engine's events for the methods events/watch and events/unwatch. The zero value is ready for use; its
// Observe is for runtime.Options.OnEvent.
type Events struct {
	watchers watchers[struct{}] // of ""; their lock also guards what is below

	recent []Event // the oldest first
	second int64   // in which sent events of the level debug were sent
	sent   int
}

// Observe remembers an event and sends it to those who watch. Events of the level debug, of which there are many, are only
// sent.
func (e *Events) Observe(ev runtime.Event) {
	level := ev.Level()
	if level < slog.LevelInfo && e.watchers.count() == 0 {
		return
	}
	out := Event{ev.Time, ev.Kind, strings.ToLower(level.String()), ev.Plugin, ev.Subscription, ev.Phase, ev.State, ev.Code, ev.Message}
	e.watchers.mu.Lock()
	defer e.watchers.mu.Unlock()
	if level >= slog.LevelInfo {
		if e.recent = append(e.recent, out); len(e.recent) > mostEvents {
			e.recent = e.recent[1:]
		}
	}
	if level < slog.LevelInfo && !e.mayDebug(ev.Time) {
		return
	}
	for c := range e.watchers.of[""] {
		c.Notify("", notifyEvent, out)
	}
}

// mayDebug reports whether one more event of the level debug may be sent in its second: a busy engine has more than a
// connection can take, which would be closed. The lock is held.
func (e *Events) mayDebug(at time.Time) bool {
	if second := at.Unix(); second != e.second {
		e.second, e.sent = second, 0
	}
	e.sent++
	return e.sent <= mostDebug
}

// watch returns the remembered events, the oldest first, and sends further ones over the connection until it ends.
func (e *Events) watch(c conn) ([]Event, error) {
	e.watchers.mu.Lock()
	defer e.watchers.mu.Unlock()
	return append([]Event{}, e.recent...), e.watchers.enter(c, "", struct{}{})
}

func (e *Events) unwatch(c conn) bool {
	e.watchers.mu.Lock()
	defer e.watchers.mu.Unlock()
	return e.watchers.leaveAll(c)
}

type watchedEvents struct {
	Events []Event `json:"events" jsonschema:"those that are remembered, the oldest first"`
}

func eventMethods(e *Events) []rpc.Method {
	of := group{everywhere: true, connected: true}.unless(e == nil, "this gateway has no events")
	return []rpc.Method{
		method(of, "events/watch", rpc.AdminRight, "Returns the last events of the engine, and sends "+notifyEvent+" for further ones over this connection; of the level debug at most 100 a second.",
			func(_ context.Context, c call[anyone]) (watchedEvents, error) {
				list, err := e.watch(c.Conn)
				return watchedEvents{list}, err
			}),
		method(of, "events/unwatch", rpc.AdminRight, "Stops that.", func(_ context.Context, c call[anyone]) (struct{}, error) {
			if !e.unwatch(c.Conn) {
				return struct{}{}, rpc.Errorf(rpc.CodeNotFound, "this connection does not watch events")
			}
			return struct{}{}, nil
		}),
	}
}
