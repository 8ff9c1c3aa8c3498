package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// base is embedded, as params of methods often have something in common.
type base struct {
	WorkspaceID string `json:"workspace_id"`
}

// nullable is a string of which the empty one is null.
type nullable string

func (n nullable) MarshalJSON() ([]byte, error) {
	if n == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(n))
}

type params struct {
	base

	FolderID nullable        `json:"folder_id,omitzero"`
	Limit    *int            `json:"limit,omitempty"`
	Deep     []base          `json:"deep,omitempty"`
	Free     json.RawMessage `json:"free,omitempty"`
	At       time.Time       `json:"at,omitzero"`
	Plain    bool
	Skipped  string `json:"-"`
}

func TestTyped(t *testing.T) {
	t.Parallel()

	five := 5
	tests := []struct {
		name, params string
		want         params
		wantErr      string
	}{
		{name: "absent", wantErr: "workspace_id: it is missing"},
		{name: "null for what is needed", params: `{"workspace_id":null,"Plain":true}`, wantErr: "workspace_id: it is missing"},
		{name: "another is needed too", params: `{"workspace_id":"w","limit":5}`, wantErr: "Plain: it is missing"},
		{name: "only what is needed", params: `{"Plain":false,"workspace_id":""}`, want: params{}},
		{name: "all", params: `{"workspace_id":"w","folder_id":"f","limit":5,"deep":[{"workspace_id":"v"}],"free":{"x":[1]},"Plain":true}`, want: params{
			base: base{"w"}, FolderID: "f", Limit: &five, Deep: []base{{"v"}}, Free: json.RawMessage(`{"x":[1]}`), Plain: true,
		}},
		{name: "null is absent", params: `{"workspace_id":"w","Plain":true,"limit":null,"deep":null}`, want: params{base: base{"w"}, Plain: true}},
		{name: "array", params: `["w"]`, wantErr: "params: this method takes them by name: an object, not an array"},
		{name: "unknown member", params: `{"workspace":"w"}`, wantErr: `params: unknown member "workspace" (did you mean "workspace_id"?)`},
		{name: "other case", params: `{"Workspace_ID":"w"}`, wantErr: `params: unknown member "Workspace_ID"`},
		{name: "the name of a skipped field", params: `{"Skipped":""}`, wantErr: `params: unknown member "Skipped"`},
		{name: "unknown member deep down", params: `{"deep":[{"x":1}]}`, wantErr: `params: unknown member "x"`},
		{name: "wrong type", params: `{"limit":"5"}`, wantErr: "params.limit: a string is not a valid integer of its size"},
		{name: "wrong type deep down", params: `{"deep":[{"workspace_id":7}]}`, wantErr: "params.deep.workspace_id: a number is not a valid string"},
		{name: "wrong list", params: `{"deep":{}}`, wantErr: "params.deep: a object is not a valid array"},
		{name: "too large a number", params: `{"limit":1e99}`, wantErr: "params.limit: a number 1e99 is not a valid integer of its size"},
		{name: "wrong time", params: `{"at":"today"}`, wantErr: "params: parsing time"},
	}
	for _, tt := range tests {
		var got params
		m := Typed("m", NoRight, "", func(_ context.Context, _ *Caller, p params) (none, error) {
			got = p
			return none{}, nil
		})
		_, err := m.Call(t.Context(), &Caller{Open: true}, json.RawMessage(tt.params))
		if tt.wantErr != "" {
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Code != CodeInvalid || !strings.HasPrefix(e.Message, tt.wantErr) {
				t.Errorf("%s: got %v, want %q", tt.name, err, tt.wantErr)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, tt.want, cmp.AllowUnexported(params{})); diff != "" {
			t.Errorf("%s: params (-got +want):\n%s", tt.name, diff)
		}
	}
}
