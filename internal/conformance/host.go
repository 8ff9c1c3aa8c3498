package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	incarnation = 7 // of every start: a plugin that assumes 0 or 1 is found out
	instance    = "checked"
	quiet       = 150 * time.Millisecond // how long to wait for another frame before giving up on one
	quickly     = time.Second            // how long a pong may take
	leave       = 2 * time.Second        // how long the end of the process may take
)

// Frames of the host without fields.
const (
	cancel wire.RawWord = "cancel"
	ping   wire.RawWord = "ping"
	drain  wire.RawWord = "drain"
)

// host is one started plugin with its session. It keeps all frames.
type host struct {
	t         *trial
	process   *proc.Process
	peer      *wire.RawPeer
	limit     int
	described *phases.Description // the last one
	id        uint64              // the last one of the host's frames
	reader    sync.WaitGroup
	refusal   atomic.Pointer[phases.Cause] // answers host calls
	asked     atomic.Int64                 // counts host calls

	mu      sync.Mutex
	sent    []sentFrame
	came    []wire.RawFrame
	ended   error         // of the stream
	changed chan struct{} // closed by each frame, and by the end
}

type sentFrame struct {
	id   uint64
	text string
}

// start starts the plugin and opens a session. The end of the check stops it.
func (t *trial) start(limit int) (*host, error) {
	p, err := proc.Start(t.ctx, t.spec())
	if err != nil {
		return nil, err
	}
	h := &host{t: t, process: p, limit: limit, changed: make(chan struct{})}
	if s := p.TakeStreams(); s != nil {
		h.peer = wire.OpenRawLines(s.Out, s.In)
	} else if h.peer, err = wire.OpenRaw(t.ctx, p.Conn()); err != nil {
		_ = p.Stop(t.ctx)
		return nil, fmt.Errorf("the plugin opens no session: %w", err)
	}
	refusal := phases.CauseForbidden
	h.refusal.Store(&refusal)
	context.AfterFunc(t.ctx, h.peer.Close)
	t.hosts = append(t.hosts, h)
	h.reader.Go(h.read)
	return h, nil
}

// ready starts the plugin and configures it.
func (t *trial) ready(limit int) (*host, error) {
	h, err := t.start(limit)
	if err == nil {
		h.described, err = h.hello()
	}
	if err == nil {
		h.described, err = h.configure(t.o.Config)
	}
	return h, err
}

// inSession makes a check of one that needs a configured plugin.
func inSession(check func(*host) error) func(*trial) error {
	return func(t *trial) error {
		h, err := t.ready(wire.DefaultFrame)
		if err != nil {
			return err
		}
		return check(h)
	}
}

func (h *host) stop() {
	h.peer.Close()
	_ = h.process.Stop(context.WithoutCancel(h.t.ctx)) // end.children is about what is left
	h.reader.Wait()
}

func (h *host) read() {
	for {
		f, err := h.peer.Recv()
		h.mu.Lock()
		if err != nil {
			h.ended = err
		} else {
			h.came = append(h.came, f)
		}
		close(h.changed)
		h.changed = make(chan struct{})
		h.mu.Unlock()
		if err != nil {
			return
		}
		if f.Body == bodyHostCall || f.Body == bodyInvalidate && f.ID != 0 {
			h.asked.Add(1)
			h.write(f.ID, incarnation, phases.Errorf(*h.refusal.Load(), "the check grants no services"), false)
		}
	}
}

// send sends a frame with an id of its own.
func (h *host) send(m any) uint64 { return h.sendAs(incarnation, m, false) }

func (h *host) sendAll(list []any) (ids []uint64) {
	for _, m := range list {
		ids = append(ids, h.send(m))
	}
	return ids
}

func (h *host) sendAs(start uint64, m any, later bool) uint64 {
	h.id++
	h.write(h.id, start, m, later)
	return h.id
}

// write sends a frame. If the plugin has gone, its answer is missing. If it does not read, the session ends.
func (h *host) write(id, start uint64, m any, later bool) {
	stuck := time.AfterFunc(2*h.t.o.Patience, h.peer.Close)
	text, err := h.peer.Send(id, start, m, later)
	stuck.Stop()
	if err != nil {
		text = fmt.Sprintf("%s (not sent: %v)", cut(text), err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent = append(h.sent, sentFrame{id, cut(text)})
}

// frames returns what has come so far.
func (h *host) frames() []wire.RawFrame {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clip(h.came)
}

// forget drops the frames so far: a check of many calls would search them each time.
func (h *host) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.came, h.sent = nil, nil
}

// until waits until done says so of the frames. It returns false if the time is over or the stream ends before.
func (h *host) until(limit time.Duration, done func([]wire.RawFrame) bool) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		h.mu.Lock()
		came, changed, ended := slices.Clip(h.came), h.changed, h.ended
		h.mu.Unlock()
		switch {
		case done(came):
			return true
		case ended != nil:
			return false
		}
		select {
		case <-changed:
		case <-timer.C:
			return false
		}
	}
}

// settle waits until no frame has come for a while.
func (h *host) settle() {
	for limit := time.Now().Add(h.t.o.Patience); time.Now().Before(limit); {
		before := len(h.frames())
		if !h.until(quiet, func(now []wire.RawFrame) bool { return len(now) > before }) {
			return
		}
	}
}

// Bodies of a plugin's frames.
const (
	bodyHostCall    = "host_call"
	bodyInvalidate  = "invalidate"
	bodyPong        = "pong"
	bodyUnsupported = "unsupported"
)

func isAnswer(f *wire.RawFrame) bool {
	return !f.Noise && f.Body != bodyHostCall && f.Body != bodyInvalidate
}

// ask sends a frame and waits for its answer.
func (h *host) ask(m any) (*wire.RawFrame, error) { return h.answer(h.send(m)) }

func (h *host) answer(id uint64) (*wire.RawFrame, error) { return h.answerIn(h.t.o.Patience, id) }

func (h *host) answerIn(limit time.Duration, id uint64) (found *wire.RawFrame, err error) {
	if h.until(limit, func(came []wire.RawFrame) bool {
		i := slices.IndexFunc(came, func(f wire.RawFrame) bool { return isAnswer(&f) && f.ID == id })
		if i >= 0 {
			found = &came[i]
		}
		return found != nil
	}) {
		return found, nil
	}
	return nil, failf([]uint64{id}, "no answer to frame %d%s", id, h.state(limit))
}

// state says why nothing comes: how the process has ended, or how long the wait was.
func (h *host) state(waited time.Duration) string {
	h.mu.Lock()
	ended := h.ended
	h.mu.Unlock()
	if ended == nil {
		return fmt.Sprintf(" within %v", waited)
	}
	select {
	case <-h.process.Done():
		e := h.process.Exit()
		if said := e.Err("").Detail; said != "" {
			return fmt.Sprintf("; the process has ended (%s); %s", e, said)
		}
		return fmt.Sprintf("; the process has ended (%s)", e)
	case <-time.After(h.t.o.Patience):
		return fmt.Sprintf("; the session has ended (%v)", ended)
	}
}

// all waits for the answers to frames.
func (h *host) all(ids []uint64) error {
	if h.until(h.t.o.Patience, func(came []wire.RawFrame) bool { return len(missingIn(came, ids)) == 0 }) {
		return nil
	}
	missing := missingIn(h.frames(), ids)
	return failf(missing, "%d of %d calls have no answer%s", len(missing), len(ids), h.state(h.t.o.Patience))
}

// answers counts the answers by id.
func answers(came []wire.RawFrame) map[uint64]int {
	count := map[uint64]int{}
	for i := range came {
		if isAnswer(&came[i]) {
			count[came[i].ID]++
		}
	}
	return count
}

func missingIn(came []wire.RawFrame, ids []uint64) []uint64 {
	count := answers(came)
	return slices.DeleteFunc(slices.Clone(ids), func(id uint64) bool { return count[id] > 0 })
}

// once fails unless each of the frames was answered once, and nothing else was.
func (h *host) once(ids []uint64) error {
	if err := h.all(ids); err != nil {
		return err
	}
	h.settle()
	for id, n := range answers(h.frames()) {
		if slices.Contains(ids, id) && n > 1 {
			return failf([]uint64{id}, "frame %d is answered %d times", id, n)
		}
	}
	return h.ownIDs()
}

func (h *host) hello() (*phases.Description, error) {
	f, err := h.ask(wire.RawHello{Frame: h.limit, HostCalls: 64})
	if err != nil {
		return nil, err
	}
	return h.description(f, "describe")
}

func (h *host) configure(config json.RawMessage) (*phases.Description, error) {
	f, err := h.ask(&phases.Configuration{Instance: instance, Config: config})
	if err != nil {
		return nil, err
	}
	return h.description(f, "configured")
}

func (h *host) description(f *wire.RawFrame, want string) (*phases.Description, error) {
	ids := []uint64{f.ID}
	switch {
	case f.Invalid != nil:
		return nil, failf(ids, "%s %v", want, f.Invalid)
	case f.Body != want:
		return nil, failf(ids, "the answer is %q, want %q", f.Body, want)
	case f.Rejected != nil:
		return nil, failf(ids, "the plugin refuses its configuration (%s at %q); give it one with --config", f.Rejected.Message, f.Rejected.Pointer)
	case f.Err != nil:
		return nil, failf(ids, "the plugin answers with an error: %s (%s)", f.Err.Message, f.Err.Code)
	case f.Description == nil:
		return nil, failf(ids, "%s has no description", want)
	}
	return f.Description, nil
}

const (
	shownFrames = 4   // how many frames of a failure are shown
	shownText   = 400 // and how much of each
)

// evidence returns what was sent and came, as far as a failure is about it.
func (h *host) evidence(err error) (sent, came []string) {
	f, _ := errors.AsType[*failure](err)
	about := func(id uint64) bool { return f == nil || len(f.ids) == 0 || slices.Contains(f.ids, id) }
	h.mu.Lock()
	defer h.mu.Unlock()
	sent, came = []string{}, []string{}
	for _, frame := range h.sent {
		if about(frame.id) {
			sent = append(sent, frame.text)
		}
	}
	for i := range h.came {
		if frame := &h.came[i]; about(frame.ID) || frame.Noise {
			came = append(came, cut(frame.Text))
		}
	}
	return sent[max(0, len(sent)-shownFrames):], came[max(0, len(came)-shownFrames):]
}

func cut(s string) string {
	if len(s) <= shownText {
		return s
	}
	return strings.ToValidUTF8(s[:shownText], "") + "…"
}
