package openaihttp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/framework"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
)

// turn is an open turn.
type turn struct {
	root *loop.Turn
	// ready is closed when the turn has begun, or could not.
	ready  chan struct{}
	failed error
	// salt keeps what is remembered for the turn from other conversations; it is empty if the client names its thread.
	salt string
	// named is where other requests find the turn, if the client names it.
	named place
	// users are the requests under way, and the answers that the client has to answer. The last one ends the turn.
	users int
}

func (t *turn) stitches(at place) place { return at.then("stitch").then(t.salt) }

// waiting is an answer of the model's with calls that the client has to answer.
type waiting struct {
	turn   *turn
	calls  map[string]loop.Call
	judged map[string]bool // whose results the plugins have seen
	since  time.Time
	keys   []place
	timer  *time.Timer
	live   bool // it waits
}

// errIdle ends a turn whose client does not come back. The turn was interrupted.
var errIdle = fmt.Errorf("the client has not answered the calls of the model in time: %w", context.Canceled)

// join finds out who asks and where the conversation is.
func (x *exchange) join() (err error) {
	if x.where, err = x.p.o.Context(x.in); err != nil {
		return &badRequest{http.StatusForbidden, err}
	}
	if err := phases.CheckContext(&x.where); err != nil {
		return &badRequest{http.StatusBadRequest, err}
	}
	x.named = place{}.then(x.p.secret)
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key"} {
		x.named = x.named.then(x.in.Header.Get(name))
	}
	x.named = x.named.then(x.where.WorkspaceID).then(x.where.ThreadID)
	x.scope = x.named.then(x.where.AgentID).then(x.shape.path)
	x.named = x.named.then(x.where.TurnID)
	at := x.scope.then(x.body.text("previous_response_id"))
	x.places = []place{at}
	for _, message := range x.list {
		at = at.then(digest(message))
		x.places = append(x.places, at)
	}
	return nil
}

// key is where a turn waits for the result of a call. A named thread goes on wherever its client says.
func (x *exchange) key(at place, id string) place {
	if x.where.ThreadID != "" {
		at = x.scope
	}
	return at.then("call").then(id)
}

// after are the places where the client may go on.
func (x *exchange) after() []place {
	places := []place{x.places[x.end]}
	if x.id != "" { // the provider knows what was before
		places = append(places, x.scope.then(x.id))
	}
	return places
}

// lookBack is before how many of the model's answers a request may go on: some APIs have an item per call.
const lookBack = 8

// answered returns the keys of the calls that a request answers.
func (x *exchange) answered() []place {
	start := x.end
	for start > 0 && x.roles[start-1] != "assistant" {
		start--
	}
	places := []place{x.places[0]}
	for i := start; i > 0 && len(places) < lookBack; i-- {
		if x.roles[i-1] == "assistant" && (i == 1 || x.roles[i-2] != "assistant") {
			places = append(places, x.places[i-1])
		}
	}
	var keys []place
	each(x.list[start:x.end], x.shape.resultsIn, x.shape.isResult, func(o *object) bool {
		for _, at := range places {
			keys = append(keys, x.key(at, o.text(x.shape.resultID)))
		}
		return false
	})
	return keys
}

// enter finds the turn of a request, or begins one.
func (p *Proxy) enter(x *exchange, o loop.Options) (err error) {
	if x.group = p.take(x.answered()); x.group != nil {
		x.turn = x.group.turn
		if raw, ok := p.memory.get(x.turn.stitches(x.places[x.end])); ok {
			_ = json.Unmarshal(raw, &x.stitch) // of a request that failed
		}
	} else if err := p.begin(x, o); err != nil {
		return err
	}
	x.agent, err = x.turn.root.ForAgent(x.where.AgentID, o)
	return err
}

var errClosed = errors.New("the proxy is closed")

func (p *Proxy) begin(x *exchange, o loop.Options) error {
	t := &turn{ready: make(chan struct{}), users: 1, named: x.named}
	if x.where.ThreadID == "" {
		t.salt = rand.Text()
	}
	named := x.where.TurnID != ""
	if !named {
		x.where.TurnID = rand.Text()
		t.named = t.named.then(x.where.TurnID)
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return errClosed
	}
	if other := p.named[t.named]; other != nil {
		other.users++
		p.mu.Unlock()
		<-other.ready
		if other.failed == nil {
			x.turn = other
		}
		return other.failed
	}
	p.named[t.named] = t
	p.mu.Unlock()
	t.root, t.failed = loop.Begin(x.ctx, p.o.Engine, x.where, o)
	if close(t.ready); t.failed == nil {
		x.turn = t
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.named, t.named)
	return t.failed
}

// release is the end of a turn's user. The last one ends the turn.
func (p *Proxy) release(ctx context.Context, t *turn, text string, err error) {
	p.mu.Lock()
	t.users--
	last := t.users == 0
	if last {
		delete(p.named, t.named)
	}
	p.mu.Unlock()
	if last {
		if ended := framework.End(ctx, t.root, text, err); ended != nil {
			p.o.Logger.Info("a turn has not succeeded", "turn", t.root.Context().TurnID, "error", ended)
		}
	}
}

// wait lets a turn wait for its client.
func (p *Proxy) wait(w *waiting) {
	p.mu.Lock()
	var oldest *waiting
	if p.closed {
		oldest = w
	} else {
		for _, k := range w.keys {
			if _, taken := p.open[k]; taken && w.turn.salt != "" {
				p.open[k] = nil // two conversations that are the same so far: nobody knows which one goes on
			} else {
				p.open[k] = w
			}
		}
		w.live, w.timer = true, time.AfterFunc(p.o.Idle, func() { p.expire(context.Background(), w) })
		p.waits = append(p.waits, w)
		if p.waits = slices.DeleteFunc(p.waits, func(w *waiting) bool { return !w.live }); len(p.waits) > p.o.MaxOpen {
			oldest = p.waits[0]
			p.drop(oldest)
		}
	}
	p.mu.Unlock()
	if oldest != nil {
		p.release(context.Background(), oldest.turn, "", errIdle)
	}
}

// drop lets nobody find an answer any more. The proxy is locked.
func (p *Proxy) drop(w *waiting) {
	w.live = false
	w.timer.Stop()
	for _, k := range w.keys {
		if other := p.open[k]; other == w || other == nil {
			delete(p.open, k)
		}
	}
}

// take returns the answer whose calls a request answers.
func (p *Proxy) take(keys []place) *waiting {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range keys {
		if w := p.open[k]; w != nil {
			p.drop(w)
			return w
		}
	}
	return nil
}

func (p *Proxy) expire(ctx context.Context, w *waiting) {
	p.mu.Lock()
	live := w.live
	if live {
		p.drop(w)
	}
	p.mu.Unlock()
	if live {
		p.release(ctx, w.turn, "", errIdle)
	}
}

// Close ends the turns that wait for their clients, as interrupted. Later requests fail, those under way go on.
func (p *Proxy) Close(ctx context.Context) {
	p.mu.Lock()
	p.closed = true
	all := slices.Clone(p.waits)
	p.mu.Unlock()
	for _, w := range all {
		p.expire(ctx, w)
	}
}
