package gateway

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/gateway/rpc"
)

// How many calls of clients read the database at once. A store has eight connections
// for reading: two are left for turns, whatever clients do.
const (
	maxReads    = 6
	maxVerifies = 2 // beside other reads
	maxLight    = maxReads - maxVerifies
)

// laneWait is how long a call waits for a place before it is refused.
const laneWait = 5 * time.Second

// lane bounds how many calls of a kind run at once. One token gets half of the
// places, so that its clients cannot keep others out.
type lane struct {
	places chan struct{}
	// tokens are the places of each token, by its name: chan struct{}.
	tokens sync.Map
}

func newLane(places int) *lane { return &lane{places: make(chan struct{}, places)} }

// admit makes a method wait for a place.
func (l *lane) admit(m rpc.Method) rpc.Method {
	call := m.Call
	m.Call = func(ctx context.Context, c *rpc.Caller, params json.RawMessage) (any, error) {
		leave, err := l.enter(ctx, c)
		if err != nil {
			return nil, err
		}
		defer leave()
		return call(ctx, c, params)
	}
	return m
}

// enter waits for a place, and returns what gives it back.
func (l *lane) enter(ctx context.Context, c *rpc.Caller) (leave func(), err error) {
	needed := []chan struct{}{l.places}
	if !c.Open {
		own, _ := l.tokens.LoadOrStore(c.Name, make(chan struct{}, max(1, cap(l.places)/2)))
		needed = []chan struct{}{own.(chan struct{}), l.places} //nolint:forcetypeassert // nothing else is stored
	}
	taken := 0
	leave = func() {
		for _, places := range needed[:taken] {
			<-places
		}
	}
	late := time.NewTimer(laneWait)
	defer late.Stop()
	for _, places := range needed {
		select {
		case places <- struct{}{}:
			taken++
		case <-ctx.Done():
			leave()
			return nil, wireError(ctx.Err())
		case <-late.C:
			leave()
			bad := rpc.Errorf(rpc.CodeOverloaded, "too many calls of this kind are running: wait for the answers to earlier ones, then try again")
			bad.Data = map[string]any{"share": "calls", "retry_after_ms": laneWait.Milliseconds()}
			return nil, bad
		}
	}
	if ctx.Err() != nil { // both were ready
		leave()
		return nil, wireError(ctx.Err())
	}
	return leave, nil
}
