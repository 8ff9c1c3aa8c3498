package hostservice

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

func echo(_ context.Context, _ Caller, params json.RawMessage) (json.RawMessage, error) {
	return params, nil
}

func TestServices(t *testing.T) {
	t.Parallel()

	strict := Method{Params: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"n":{"type":"integer"}}}`), Call: echo}
	s, err := New(map[string]Service{"clock": {"now": {Call: echo}, "set": strict}, "other": {"x": {Call: echo}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Granted([]string{"clock.now", "others"}); !slices.Equal(got, []string{"clock"}) {
		t.Errorf("Granted = %v", got)
	}
	for _, tt := range []struct {
		grants, service, method, params, want string
	}{
		{"clock", "clock", "set", `{"n":1}`, ""},
		{"clock.set", "clock", "set", ``, ""},
		{"clock.now", "clock", "set", ``, "has no grant"},
		{"*", "clok", "set", ``, `did you mean "clock"`},
		{"*", "clock", "sett", ``, `did you mean "set"`},
		{"*", "clock", "set", `{"n":"1"}`, "params"},
		{"*", "clock", "set", `{"n":`, "params"},
		{"*", "clock", "now", strings.Repeat("[", phases.MaxJSONDepth+1), "params"},
	} {
		m, err := s.Find([]string{tt.grants}, "p", tt.service, tt.method)
		if err == nil {
			err = m.Check(json.RawMessage(tt.params))
		}
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()

	for want, m := range map[string]Method{
		"no function": {},
		"result":      {Call: echo, Result: json.RawMessage(`{"type":1}`)},
		"parameters":  {Call: echo, Params: json.RawMessage(`[`)},
	} {
		if _, err := New(map[string]Service{"s": {"m": m}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestMemoryStateIsBounded: a plugin that keeps too much loses its own oldest values.
func TestMemoryStateIsBounded(t *testing.T) {
	t.Parallel()

	m := NewMemoryState()
	value := json.RawMessage(strings.Repeat("1", MaxState))
	put := func(plugin, session string) int {
		n, err := m.PutState(t.Context(), phases.StateKey{WorkspaceID: "w", SessionID: session, Plugin: plugin}, value)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	put("other", "0")
	evicted := 0
	for i := range maxMemoryState/MaxState + 5 {
		evicted += put("p", strconv.Itoa(i))
	}
	if evicted != 5 {
		t.Errorf("%d values were evicted, want 5", evicted)
	}
	for key, kept := range map[phases.StateKey]bool{
		{WorkspaceID: "w", SessionID: "4", Plugin: "p"}:     false,
		{WorkspaceID: "w", SessionID: "5", Plugin: "p"}:     true,
		{WorkspaceID: "w", SessionID: "0", Plugin: "other"}: true,
		{WorkspaceID: "v", SessionID: "5", Plugin: "p"}:     false,
	} {
		if got, err := m.GetState(t.Context(), key); err != nil || (got != nil) != kept {
			t.Errorf("%+v: %d bytes, %v", key, len(got), err)
		}
	}
}
