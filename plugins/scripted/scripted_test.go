package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/scripted"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/plugintest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// configure puts hooks, as JSON, in force.
func configure(t *testing.T, hooks string) (*sdk.Plugin, *phases.Description) {
	t.Helper()
	p := scripted.New()
	d, err := p.Configure(t.Context(), &phases.Configuration{Instance: "rules", Config: json.RawMessage(`{"hooks":` + hooks + `}`)})
	if err != nil {
		t.Fatal(err)
	}
	return p, d
}

// everything is a hook that uses every field.
const everything = `{
	"id": "all", "phase": "turn.pre_prompt_compile", "role": "contribute", "priority": 7, "after": ["a.b?"], "before": ["c.d"],
	"when": "turn.mode == \"agent\"", "timeout": "200ms", "on_failure": {"default": "best_effort", "timeout": "fallback"},
	"fallback": [{"kind": "reminder", "type": "sorry"}], "retry": {"attempts": 2, "backoff": "50ms"}, "budget": {"chars": 100, "tokens": 20},
	"cache": {"ttl": "5m", "vary": ["dir"], "tags": ["t"]}, "shadow": true, "visibility": "debug",
	"needs": ["tool_calling"],
	"respond": [{"kind": "prompt_section", "section_id": "house_rules", "title": "House Rules", "content": "Be brief."}],
	"delay": "1ms", "error": {"code": "sick", "message": "not today", "retryable": true}
}`

func TestEveryField(t *testing.T) {
	t.Parallel()
	_, d := configure(t, "["+everything+"]")
	want := []phases.Hook{{
		Name: "all", Doc: "scripted", Phase: phases.PrePromptCompile, Kinds: []phases.Kind{phases.KindPromptSection, phases.KindReminder},
		Role: phases.RoleContribute, Priority: 7, After: []string{"a.b?"}, Before: []string{"c.d"}, When: `turn.mode == "agent"`,
		Timeout:   phases.Duration(200 * time.Millisecond),
		OnFailure: phases.OnFailure{Default: phases.BestEffort, ByCause: map[phases.Cause]phases.FailureWord{phases.CauseTimeout: phases.UseInstead}},
		Fallback:  phases.Contributions{&phases.Reminder{Type: "sorry"}}, Retry: &phases.Retry{Attempts: 2, Backoff: phases.Duration(50 * time.Millisecond)},
		Idempotent: true, Budget: phases.TextBudget{Chars: 100, Tokens: 20},
		Cache: &phases.Cache{TTL: phases.Duration(5 * time.Minute), Vary: []string{"dir"}, Tags: []string{"t"}}, Shadow: true,
		Visibility: phases.VisibilityDebug, Needs: []string{"tool_calling"},
	}}
	if diff := cmp.Diff(d.Hooks, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	// Every field of a proposal has a field here, but for what is fixed.
	fields := map[string]bool{}
	for f := range reflect.TypeFor[scripted.Hook]().Fields() {
		fields[f.Name] = true
	}
	for f := range reflect.TypeFor[phases.Hook]().Fields() {
		if fixed := slices.Contains([]string{"Name", "Doc", "Kinds", "Idempotent"}, f.Name); !fixed && !fields[f.Name] {
			t.Errorf("a script cannot say %s", f.Name)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, hook string
		want       plugintest.Answer
	}{
		{"nothing", `{"id":"h","phase":"turn.post_turn"}`, plugintest.Answer{Contributions: phases.Contributions{}}},
		{
			"decision, after a while", `{"id":"h","phase":"tool.pre_call","role":"validate","delay":"1ms","respond":[{"kind":"decision","verdict":"deny","reason":"no"}]}`,
			plugintest.Answer{Contributions: phases.Contributions{&phases.Decision{Verdict: phases.VerdictDeny, Reason: "no"}}},
		},
		{
			"error instead of an answer", `{"id":"h","phase":"tool.pre_call","respond":[{"kind":"decision","verdict":"deny"}],"error":{"code":"sick","message":"m","retryable":true}}`,
			plugintest.Answer{Error: &plugintest.Failure{Code: "sick", Message: "m", Retryable: true}},
		},
		{"a host's own phase", `{"id":"h","phase":"x.acme.idle","respond":[{"kind":"noop"}]}`, plugintest.Answer{Contributions: phases.Contributions{&phases.Noop{}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := plugintest.Case{Hook: "h", Config: `{"hooks":[` + tt.hook + `]}`}
			if tt.want.Error != nil {
				c.WantCode = tt.want.Error.Code
			}
			if diff := cmp.Diff(plugintest.Run(t, scripted.New(), c), tt.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
}

// TestDelay measures on a fake clock.
func TestDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _ := configure(t, `[{"id":"h","phase":"turn.post_turn","delay":"1h"}]`)
		ask := func(ctx context.Context) (time.Duration, error) {
			began := time.Now()
			_, err := p.Dispatch(ctx, &phases.Dispatch{Hook: "h", Input: &phases.PostTurnInput{}})
			return time.Since(began), err
		}
		if took, err := ask(t.Context()); took != time.Hour || err != nil {
			t.Errorf("took %v, error %v", took, err)
		}
		late := errors.New("too late")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, late)
		defer cancel()
		if took, err := ask(ctx); took != time.Minute || !errors.Is(err, late) {
			t.Errorf("cancelled: took %v, error %v", took, err)
		}
	})
}

func TestAnswerBelongsToTheHost(t *testing.T) {
	t.Parallel()
	p, _ := configure(t, `[{"id":"h","phase":"turn.post_turn","respond":[{"kind":"audit","event_kind":"e","details":{"a":1}}]}]`)
	for range 2 {
		res, err := p.Dispatch(t.Context(), &phases.Dispatch{Hook: "h", Input: &phases.PostTurnInput{}})
		if err != nil {
			t.Fatal(err)
		}
		got, _ := res.Contributions[0].(*phases.Audit)
		if string(got.Details) != `{"a":1}` {
			t.Errorf("details are %s", got.Details)
		}
		got.Details[0] = 'x'
		res.Contributions[0] = nil
	}
}

func TestSeveralInstances(t *testing.T) {
	t.Parallel()
	a, _ := configure(t, `[{"id":"one","phase":"turn.post_turn"}]`)
	_, db := configure(t, `[{"id":"two","phase":"turn.post_turn"},{"id":"three","phase":"session.end"}]`)
	da, err := a.Describe(t.Context())
	if err != nil || len(da.Hooks) != 1 || len(db.Hooks) != 2 || db.Hooks[1].Phase != phases.SessionEnd {
		t.Errorf("described %+v and %+v, error %v", da, db, err)
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, config, pointer, message string }{
		{"nothing", `{"hooks":[{}]}`, "/hooks/0", `name ""`},
		{"no object", `[]`, "", "cannot unmarshal"},
		{"unknown key", `{"hook":[]}`, "", `unknown field "hook"`},
		{"unknown key of a hook", `{"hooks":[{"id":"a","phase":"session.end"},{"id":"h","phase":"session.end","respnd":[]}]}`, "/hooks/1/respnd", `unknown field "respnd"`},
		{"key that needs escaping", `{"hooks":[{"a/b~c":1}]}`, "/hooks/0/a~1b~0c", "unknown field"},
		{"hook that is none", `{"hooks":["h"]}`, "/hooks/0", "cannot unmarshal"},
		{"bare number", `{"hooks":[{"id":"h","phase":"session.end","delay":5}]}`, "/hooks/0/delay", "5 is not a duration"},
		{"contribution", `{"hooks":[{"id":"h","phase":"session.end","respond":[{"kind":"nop"}]}]}`, "/hooks/0/respond", `contribution 0: unknown kind "nop" (did you mean "noop"?)`},
		{"failure policy", `{"hooks":[{"id":"h","phase":"session.end","on_failure":"open"}]}`, "/hooks/0/on_failure", `unknown failure policy "open"`},
		{"unknown phase", `{"hooks":[{"id":"h","phase":"session.ends"}]}`, "/hooks/0", `unknown phase "session.ends" (did you mean "session.end"?)`},
		{"no id", `{"hooks":[{"phase":"session.end"}]}`, "/hooks/0", `name ""`},
		{"id twice", `{"hooks":[{"id":"h","phase":"session.end"},{"id":"h","phase":"turn.post_turn"}]}`, "/hooks/1/id", `the hook "h" is a duplicate of hooks[0]`},
		{"kind of another phase", `{"hooks":[{"id":"h","phase":"session.end","respond":[{"kind":"decision","verdict":"deny"}]}]}`, "/hooks/0", "does not take decision"},
		{"reminder without type", `{"hooks":[{"id":"h","phase":"session.start","respond":[{"kind":"noop"},{"kind":"reminder","text":"x"}]}]}`, "/hooks/0/respond/1", "reminder: type is not a name"},
		{"in a host's own phase", `{"hooks":[{"id":"h","phase":"x.acme.idle","respond":[{"kind":"reminder","text":"x"}]}]}`, "/hooks/0/respond/0", "reminder: type is not a name"},
		{"fallback without contributions", `{"hooks":[{"id":"h","phase":"session.end","on_failure":"fallback"}]}`, "/hooks/0", "no fallback contributions"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := scripted.New().Configure(t.Context(), &phases.Configuration{Config: json.RawMessage(tt.config)})
			got, ok := errors.AsType[*phases.ConfigError](err)
			if !ok || got.Pointer != tt.pointer || !strings.Contains(got.Message, tt.message) {
				t.Errorf("got %v, want %s: %s", err, tt.pointer, tt.message)
			}
		})
	}
}

// names are the JSON names of a struct's fields, sorted.
func names(of reflect.Type) []string {
	var out []string
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// keys are the properties of a schema, sorted.
func keys(s *jsonschema.Schema) []string {
	var out []string
	for name := range s.Properties {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func TestSchemaAgrees(t *testing.T) {
	t.Parallel()
	d, err := scripted.New().Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(d.ConfigSchema, &schema); err != nil {
		t.Fatal(err)
	}
	hook := schema.Defs["hook"]
	for name, pair := range map[string]struct {
		schema *jsonschema.Schema
		of     reflect.Type
	}{
		"hook":   {hook, reflect.TypeFor[scripted.Hook]()},
		"error":  {hook.Properties["error"], reflect.TypeFor[scripted.Failure]()},
		"retry":  {hook.Properties["retry"], reflect.TypeFor[phases.Retry]()},
		"budget": {hook.Properties["budget"], reflect.TypeFor[phases.TextBudget]()},
		"cache":  {hook.Properties["cache"], reflect.TypeFor[phases.Cache]()},
	} {
		if diff := cmp.Diff(keys(pair.schema), names(pair.of)); diff != "" {
			t.Errorf("%s (-schema +type)\n%s", name, diff)
		}
	}
	for _, role := range phases.Roles() {
		if !slices.Contains(hook.Properties["role"].Enum, any(string(role))) {
			t.Errorf("the schema does not know the role %s", role)
		}
	}
}

func FuzzConfigure(f *testing.F) {
	f.Add([]byte(`{"hooks":[` + everything + `]}`))
	f.Add([]byte(`{"hooks":[{"id":"h","phase":"x.acme.idle"}]}`))
	f.Fuzz(func(t *testing.T, config []byte) {
		p := scripted.New()
		d, err := p.Configure(t.Context(), &phases.Configuration{Config: config})
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // whatever the delay
		for i := range d.Hooks {
			if res, err := p.Dispatch(ctx, &phases.Dispatch{Hook: d.Hooks[i].Name}); (res == nil) == (err == nil) {
				t.Fatalf("%s: result %v and error %v", config, res, err)
			}
		}
	})
}
