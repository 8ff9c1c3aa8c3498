package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
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
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var got params
			m := Typed("m", NoRight, "", func(_ context.Context, _ *Caller, p params) (none, error) {
				got = p
				return none{}, nil
			})
			_, err := m.Call(t.Context(), &Caller{Open: true}, json.RawMessage(tt.params))
			if tt.wantErr != "" {
				e, ok := errors.AsType[*Error](err)
				if !ok || e.Code != CodeInvalid || !strings.HasPrefix(e.Message, tt.wantErr) {
					t.Errorf("got %v, want %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, tt.want, cmp.AllowUnexported(params{})); diff != "" {
				t.Errorf("params (-got +want):\n%s", diff)
			}
		})
	}
}

func TestTypedRaw(t *testing.T) {
	t.Parallel()

	m := Typed("m", NoRight, "", func(_ context.Context, _ *Caller, p json.RawMessage) (string, error) { return string(p), nil })
	for _, want := range []string{"", "[1]", `{"Any":1}`} {
		var params json.RawMessage
		if want != "" {
			params = json.RawMessage(want)
		}
		if got, err := m.Call(t.Context(), nil, params); err != nil || got != want {
			t.Errorf("got %v, %v, want %q", got, err, want)
		}
	}
}

func TestErrorJSON(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		err  *Error
		want string
	}{
		{"number of the code", &Error{Code: CodeNotFound, Message: "m"}, `{"code":-32002,"message":"m","data":{"code":"not_found"}}`},
		{"own number", &Error{Number: 5, Code: "mine", Message: "m"}, `{"code":5,"message":"m","data":{"code":"mine"}}`},
		{"unknown code", &Error{Code: "mine", Message: "m"}, `{"code":-32603,"message":"m","data":{"code":"mine"}}`},
		{"data", &Error{Code: CodeCycle, Data: map[string]any{"a": nil, "code": "x"}}, `{"code":-32602,"message":"","data":{"a":null,"code":"cycle"}}`},
		{"the cause stays inside", asError(errors.New("secret")), `{"code":-32603,"message":"internal error; the gateway's log says more","data":{"code":"internal"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, err := json.Marshal(tt.err)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(got), tt.want); diff != "" {
				t.Errorf("error (-got +want):\n%s", diff)
			}
		})
	}
}

// Each code has its number, as the specification of the API says.
func TestCodes(t *testing.T) {
	t.Parallel()

	want := map[string]int{
		CodeParse: -32700, CodeRequest: -32600, CodeMethod: -32601, CodeInvalid: -32602, CodeTooLarge: -32602, CodeCycle: -32602,
		CodeTurnNeeded: -32602, CodeTurnUnknown: -32002,
		CodeInternal: -32603, CodeConflict: -32001, CodeNotFound: -32002, CodeUnauthorized: -32003, CodeUnavailable: -32004, CodeOverloaded: -32004,
	}
	got := map[string]int{}
	for _, row := range codes() {
		var object struct {
			Code int `json:"code"`
		}
		text, err := json.Marshal(&Error{Code: row.Code})
		if err = errors.Join(err, json.Unmarshal(text, &object)); err != nil {
			t.Fatal(err)
		}
		got[row.Code] = object.Code
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("numbers (-got +want):\n%s", diff)
	}
}

// An error in an error's data must not keep the client from its code.
func TestRespondBadData(t *testing.T) {
	t.Parallel()

	got := string(refusal(&Error{Code: CodeConflict, Message: "100 % bad", Data: map[string]any{"f": func() {}}}))
	want := `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"100 % bad","data":{"code":"version_conflict"}}}`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()

	srv, err := New(Options{
		Methods:       []Method{Typed("b", WriteRight, "Does b.", func(context.Context, *Caller, params) ([]nullable, error) { return nil, nil })},
		Notifications: []Notification{TypedNotification[base]("n", "Says n.")},
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := srv.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	m := doc.Methods["b"]
	if m.Doc != "Does b." || m.Right != "write" || len(doc.Errors) != len(codes()) || doc.Notifications["n"].Params == nil {
		t.Errorf("got %+v", doc)
	}
	tests := []struct {
		name     string
		schema   *jsonschema.Schema
		instance string
		valid    bool
	}{
		{"params", m.Params, `{"workspace_id":"w","folder_id":"f","Plain":false,"deep":[]}`, true},
		{"params, unknown member", m.Params, `{"workspace_id":"w","Plain":false,"x":1}`, false},
		{"params, missing member", m.Params, `{"Plain":false}`, false},
		{"result", m.Result, `["f"]`, true},
	}
	for _, tt := range tests {
		resolved, err := tt.schema.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal([]byte(tt.instance), &v); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(v); (err == nil) != tt.valid {
			t.Errorf("%s: %s: %v", tt.name, tt.instance, err)
		}
	}
}
