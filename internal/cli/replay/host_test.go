package replay

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestHostOrder: what belongs to the call comes first, each recorded answer once, the
// last one again and again.
func TestHostOrder(t *testing.T) {
	t.Parallel()

	h := newHost()
	say := func(answer string) runtime.HostCall {
		return runtime.HostCall{Service: "state", Method: "get", Params: json.RawMessage(`{"b":1,"a":2.0}`), Result: json.RawMessage(answer)}
	}
	h.learn([]runtime.HostCall{say("1"), say("2")})
	second := h.learn([]runtime.HostCall{say("3"), {Service: "vault", Method: "open", Err: &phases.Error{Code: phases.CauseForbidden, Message: "no"}}})
	h.begin(second)
	var got []string
	for range 5 {
		answer, err := h.Call(t.Context(), "state", "get", json.RawMessage(`{"a": 2, "b": 1}`))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(answer))
	}
	if diff := cmp.Diff(got, []string{"3", "1", "2", "3", "3"}); diff != "" {
		t.Errorf("answers (-got +want):\n%s", diff)
	}
	if _, err := h.Call(t.Context(), "vault", "open", nil); phases.CodeOf(err) != phases.CauseForbidden {
		t.Errorf("error %v", err)
	}
	for range 2 {
		if _, err := h.Call(t.Context(), "state", "get", json.RawMessage(`{"a":2,"b":2}`)); phases.CodeOf(err) != phases.CauseUnavailable {
			t.Errorf("error %v", err)
		}
	}
	if diff := cmp.Diff(h.end(), []string{"state.get"}); diff != "" {
		t.Errorf("unrecorded (-got +want):\n%s", diff)
	}
	if err := h.Invalidate(t.Context(), phases.Invalidation{}); err != nil {
		t.Error(err)
	}
}

func TestDifferences(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, a, b string
		want       []Difference
	}{
		{"same in another order", `{"a":[1,{"b":null}],"c":"d"}`, `{"c":"d","a":[1,{"b":null}]}`, []Difference{}},
		{"a number", `{"a":1}`, `{"a":2}`, []Difference{{"/a", json.RawMessage("1"), json.RawMessage("2")}}},
		{"another type", `{"a":{"b":1}}`, `{"a":[1]}`, []Difference{{"/a", json.RawMessage(`{"b":1}`), json.RawMessage("[1]")}}},
		{"scalar and object", `"x"`, `{"x":1}`, []Difference{{"", json.RawMessage(`"x"`), json.RawMessage(`{"x":1}`)}}},
		{"null is a value", `{"a":null}`, `{}`, []Difference{{"/a", json.RawMessage("null"), nil}}},
		{"a longer list", `[1]`, `[1,2,3]`, []Difference{{"/1", nil, json.RawMessage("2")}, {"/2", nil, json.RawMessage("3")}}},
		{"odd names", `{"a/b":{"~":1}}`, `{"a/b":{"~":2}}`, []Difference{{"/a~1b/~0", json.RawMessage("1"), json.RawMessage("2")}}},
		{"tags stay", `"<a>"`, `"<b>"`, []Difference{{"", json.RawMessage(`"<a>"`), json.RawMessage(`"<b>"`)}}},
	}
	for _, tt := range tests {
		got := differences(decoded([]byte(tt.a)), decoded([]byte(tt.b)))
		if diff := cmp.Diff(got, tt.want); diff != "" {
			t.Errorf("%s: differences (-got +want):\n%s", tt.name, diff)
		}
	}
	long := make([]any, 100)
	if got := differences([]any{}, long); len(got) != maxDifferences {
		t.Errorf("%d differences", len(got))
	}
}
