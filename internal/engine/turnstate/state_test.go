package turnstate

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// TestTextsOfEachRecord: each record of a turn may have its own share of texts, also of what comes while one is kept.
func TestTextsOfEachRecord(t *testing.T) {
	t.Parallel()

	s := New(config.TurnBudget{}, nil)
	s.KeepTexts = true
	hand := func(letter string) {
		s.Remind(phases.MergedReminder{Type: "note", Text: strings.Repeat(letter, maxTextBytes/2)})
		s.HandReminders(phases.ToolPostCall, func(*phases.MergedReminder) bool { return true })
	}
	hand("a")
	for _, letter := range []string{"b", "c", "d", "e"} {
		m := manifest.New()
		s.Events(&m, nil, config.TurnBudget{}, false)
		if texts := s.Texts(&m); len(texts) != 1 || len(texts[0].Text) != maxTextBytes/2 {
			t.Errorf("before %s there are %d texts", letter, len(texts))
		}
		hand(letter)
		s.Kept()
	}
	if s.textBytes != maxTextBytes/2 {
		t.Errorf("%d bytes are counted", s.textBytes)
	}
}

// TestOpen: turns that somebody holds are there until they are removed, and those that nobody holds take no memory.
func TestOpen(t *testing.T) {
	type turn [1 << 10]byte
	var o Open[turn]
	held := make([]*turn, 10)
	for i := range held {
		held[i] = &turn{}
		o.Add(held[i])
	}
	for i := range 10 * leastSweep {
		if o.Add(&turn{}); i%leastSweep == 0 {
			runtime.GC()
		}
	}
	if n := len(o.turns); n > 4*leastSweep {
		t.Errorf("%d turns are remembered", n)
	}
	runtime.GC()
	o.Remove(held[0])
	if n := len(o.All()); n != len(held)-1 {
		t.Errorf("%d turns are open of %d that are held", n, len(held)-1)
	}
	runtime.KeepAlive(held)
}

// TestModelAccount: steps of one account, in order.
func TestModelAccount(t *testing.T) {
	t.Parallel()

	type step struct {
		wanted, got int
		refused     string
		// used is settled at once; -1 leaves the call on its way.
		used int
	}
	const calls, tokens = "all calls of the model are used up (limits.model.calls)", "all output tokens of the model are used up (limits.model.output_tokens)"
	tests := []struct {
		name   string
		budget config.ModelBudget
		steps  []step
	}{
		{"the defaults", config.ModelBudget{}, []step{{wanted: 9000, got: 4000, used: 1000}, {wanted: 3000, got: 3000, used: 1}, {wanted: 1, got: 1}, {wanted: 1, got: 1}, {wanted: 1, refused: calls}}},
		{"no wish", config.ModelBudget{OutputTokens: 1500}, []step{{got: 1024, used: -1}, {got: 476, used: -1}, {refused: tokens}}},
		{"a wish below nothing", config.ModelBudget{}, []step{{wanted: -5, got: 1024}}},
		{"what is not used comes back", config.ModelBudget{OutputTokens: 100}, []step{{wanted: 100, got: 100, used: 10}, {wanted: 100, got: 90, used: 90}, {wanted: 1, refused: tokens}}},
		{"what is used twice is gone", config.ModelBudget{OutputTokens: 100}, []step{{wanted: 10, got: 10, used: 200}, {wanted: 1, refused: tokens}}},
		{"overdrawn by little", config.ModelBudget{OutputTokens: 100}, []step{{wanted: 10, got: 10, used: 60}, {wanted: 100, got: 40}}},
		{"calls before tokens", config.ModelBudget{Calls: 1, OutputTokens: 1}, []step{{wanted: 1, got: 1, used: 1}, {wanted: 1, refused: calls}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			a := New(config.TurnBudget{}, nil)
			for i, s := range tt.steps {
				got, err := a.ReserveModel("p", tt.budget, s.wanted)
				message := ""
				if err != nil {
					message = err.Message
				}
				if got != s.got || message != s.refused {
					t.Fatalf("step %d: %d, %v; want %d, %q", i, got, err, s.got, s.refused)
				}
				if err == nil && s.used >= 0 {
					a.SettleModel("p", got, s.used)
				}
			}
		})
	}
}

func TestHostTools(t *testing.T) {
	t.Parallel()

	var h HostTools
	tool := phases.Tool{Name: "shell", Description: "Runs a command.", InputSchema: json.RawMessage(`{"type": "object"}`)}
	names := h.Names([]string{"write", "read"}, []phases.Tool{tool})
	hash := manifest.HashRaw([]byte(`{"description":"Runs a command.","input_schema":{"type":"object"},"name":"shell"}`), nil)
	want := []manifest.HostTool{{Name: "read"}, {Name: "shell", Hash: hash}, {Name: "write"}}
	for range 2 { // the second time it is remembered
		if diff := cmp.Diff(h.Rows(names, []phases.Tool{tool}, nil), want); diff != "" {
			t.Errorf("rows (-got +want):\n%s", diff)
		}
	}
	tool.InputSchema[2] = 'T' // a host that uses the same bytes again
	if got := h.Rows(names, []phases.Tool{tool}, nil); got[1].Hash == hash {
		t.Error("a changed schema has the old hash")
	}
}
