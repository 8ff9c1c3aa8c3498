package api_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

var _ api.Finder = (*store.Store)(nil)

// TestCompileInput checks that no field of the JSON is lost on its way to the
// engine: a new one that is forgotten leaves a zero behind.
func TestCompileInput(t *testing.T) {
	t.Parallel()

	const full = `{"user_text": "u", "model": "m", "provider": "p", "tool_calling": true, "existing_tools": ["e"], "recall_plan": {"r": 1},
		"host_tools": [{"name": "e"}], "history": {"entries": 2, "hash": "h"},
		"texts": {"identity": "a", "safety": "b", "soul_core": "c", "identity_core": "d", "user_persona": "e", "tool_recovery": true,
		"tool_recovery_policy": "f", "task_tools": true, "task_orchestration": "g", "recovery_continuation": "h", "retry_instruction": "i", "dynamic_context": "j"}}`
	var in api.TurnInput
	if err := json.Unmarshal([]byte(full), &in); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]reflect.Value{"input": reflect.ValueOf(in), "texts": reflect.ValueOf(in.Texts)} {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%s: the test has no %s", name, v.Type().Field(i).Name)
			}
		}
	}
	want := runtime.CompileInput{
		UserText: "u", Model: "m", Provider: "p", ToolCalling: true, ExistingTools: []string{"e"}, HostTools: []phases.Tool{{Name: "e"}},
		History: &manifest.History{Entries: 2, Hash: "h"}, RecallPlan: json.RawMessage(`{"r": 1}`),
		Host: compiler.HostTexts{
			Identity: "a", Safety: "b", SoulCore: "c", IdentityCore: "d", UserPersona: "e", ToolRecovery: true, ToolRecoveryPolicy: "f",
			TaskTools: true, TaskOrchestration: "g", RecoveryContinuation: "h", RetryInstruction: "i", DynamicContext: "j",
		},
	}
	got := in.CompileInput()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// word is a vocabulary of this test's own.
type word string

// TestSchemas checks that what reflection does not see is in the schemas, whether
// it is ours or the caller's.
func TestSchemas(t *testing.T) {
	t.Parallel()

	own := api.Schemas{}
	api.AddWords(own, word("yes"), word("no"))
	m, err := api.NewSchemas(own)
	if err != nil {
		t.Fatal(err)
	}
	type sample struct {
		Word     word              `json:"word"`
		At       time.Time         `json:"at"`
		List     []string          `json:"list"`
		Outcome  *phases.Outcome   `json:"outcome"`
		Compiled *runtime.Compiled `json:"compiled"`
		Manifest manifest.Manifest `json:"manifest,omitzero"`
	}
	s, err := m.Of(reflect.TypeFor[sample]())
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Properties["word"].Enum; !reflect.DeepEqual(got, []any{"yes", "no"}) {
		t.Errorf("words: %v", got)
	}
	if got := s.Properties["list"]; got.Type != "array" || got.Types != nil {
		t.Errorf("a list may be %q %v, want an array only", got.Type, got.Types)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for value, valid := range map[string]bool{
		`{"word": "yes", "at": "2026-01-02T03:04:05Z", "list": [], "outcome": null, "compiled": null}`:   true,
		`{"word": "maybe", "at": "2026-01-02T03:04:05Z", "list": [], "outcome": null, "compiled": null}`: false,
		`{"word": "yes", "at": "2026-01-02T03:04:05Z", "list": null, "outcome": null, "compiled": null}`: false,
	} {
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(v); (err == nil) != valid {
			t.Errorf("%s: %v, want valid: %v", value, err, valid)
		}
	}
}
