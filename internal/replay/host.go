package replay

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// Host answers a plugin's host calls from the record. It is safe for concurrent use.
type Host struct {
	mu sync.Mutex
	// known are all recorded calls by what was asked, in the recorded order.
	known map[question][]*answer
	// now are those of the call that is being played, and unknown what it has asked
	// beside them.
	now     []*answer
	unknown []string
}

var _ phases.Host = (*Host)(nil)

// question is a method with its parameters in canonical form.
type question struct{ method, params string }

// answer is one recorded call; used says that it has been given.
type answer struct {
	asked question
	call  runtime.HostCall
	used  bool
}

func newHost() *Host { return &Host{known: map[question][]*answer{}} }

// ask is a question as it is compared.
func ask(service, method string, params json.RawMessage) question {
	canonical, err := digest.JSON(nil, params)
	if err != nil {
		canonical = params // nothing, or what is no JSON: as it is
	}
	return question{service + "." + method, string(canonical)}
}

// learn adds recorded calls.
func (h *Host) learn(calls []runtime.HostCall) []*answer {
	var list []*answer
	for _, c := range calls {
		a := &answer{asked: ask(c.Service, c.Method, c.Params), call: c}
		h.known[a.asked] = append(h.known[a.asked], a)
		list = append(list, a)
	}
	return list
}

// begin says whose calls come next.
func (h *Host) begin(asked []*answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now, h.unknown = asked, nil
}

// end returns what was asked since begin and is not in the record.
func (h *Host) end() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	unknown := h.unknown
	h.now, h.unknown = nil, nil
	slices.Sort(unknown) // concurrent calls come in any order
	return slices.Compact(unknown)
}

// Call implements phases.Host. What was asked several times is answered in the
// recorded order: first by the answers that belong to the call that is being played,
// then by others, and at last by the last one again.
func (h *Host) Call(_ context.Context, service, method string, params json.RawMessage) (json.RawMessage, error) {
	q := ask(service, method, params)
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.next(q)
	if a == nil {
		h.unknown = append(h.unknown, q.method)
		return nil, phases.Errorf(phases.CauseUnavailable, "the record has no answer of %s to these parameters, and a replay has no host to ask", q.method)
	}
	a.used = true
	if a.call.Err != nil {
		failed := *a.call.Err
		return nil, &failed
	}
	return slices.Clone(a.call.Result), nil
}

// next is the answer to give; nil for none.
func (h *Host) next(q question) *answer {
	fresh := func(a *answer) bool { return !a.used && a.asked == q }
	if i := slices.IndexFunc(h.now, fresh); i >= 0 {
		return h.now[i]
	}
	all := h.known[q]
	if i := slices.IndexFunc(all, fresh); i >= 0 {
		return all[i]
	}
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// Invalidate implements phases.Host: nothing is kept in memory that could be wrong.
func (h *Host) Invalidate(context.Context, phases.Invalidation) error { return nil }
