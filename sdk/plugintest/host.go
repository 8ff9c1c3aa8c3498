package plugintest

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/grapnelhq/grapnel/phases"
)

// Host is a fake host: it answers host calls from a script and records them. The zero value refuses every call, as a
// host does without the grant. Set Services before use; methods are safe for concurrent use. The record of one [Run]
// holds the calls of all its attempts.
type Host struct {
	Services map[string]Service // Services answers by "service/method", such as "model/complete"; see [Reply]

	mu          sync.Mutex
	calls       []HostCall
	invalidated []phases.Invalidation
}

var _ phases.Host = (*Host)(nil)

// Service answers one host call. An error should be a *phases.Error.
type Service func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)

// Reply is a service that always answers with the same JSON.
func Reply(answer string) Service {
	return func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(answer), nil }
}

// HostCall is one recorded call.
type HostCall struct {
	Name   string // "service/method"
	Params json.RawMessage
}

// Call implements phases.Host.
func (h *Host) Call(ctx context.Context, service, method string, params json.RawMessage) (json.RawMessage, error) {
	name := service + "/" + method
	h.mu.Lock()
	h.calls = append(h.calls, HostCall{name, slices.Clone(params)})
	h.mu.Unlock()
	if serve := h.Services[name]; serve != nil {
		return serve(ctx, params)
	}
	return nil, phases.Errorf(phases.CauseForbidden, "the service %s is not in the test's script", name)
}

// Invalidate implements phases.Host.
func (h *Host) Invalidate(_ context.Context, what phases.Invalidation) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.invalidated = append(h.invalidated, what)
	return nil
}

// Calls returns the calls so far, sorted by name and parameters.
func (h *Host) Calls() []HostCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(h.calls), func(a, b HostCall) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(string(a.Params), string(b.Params)))
	})
}

// Invalidations returns what was invalidated so far, in order.
func (h *Host) Invalidations() []phases.Invalidation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.invalidated)
}

func (h *Host) services() []string {
	var names []string
	for name := range h.Services {
		service, _, _ := strings.Cut(name, "/")
		names = append(names, service)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
