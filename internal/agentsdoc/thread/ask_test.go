package thread

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// answering is a host that answers each call alike, and keeps the last one.
type answering struct {
	answer string
	err    error

	called string
	params string
	until  time.Time
}

var _ phases.Host = (*answering)(nil)

func (h *answering) Call(ctx context.Context, service, method string, params json.RawMessage) (json.RawMessage, error) {
	h.called, h.params = service+"/"+method, string(params)
	h.until, _ = ctx.Deadline()
	return json.RawMessage(h.answer), h.err
}

func (h *answering) Invalidate(context.Context, phases.Invalidation) error { return nil }

func TestQueryOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		where phases.Context
		want  query
		lacks string
	}{
		{"thread", phases.Context{WorkspaceID: "w", ThreadID: "t"}, query{"w", "t"}, ""},
		{"a sub-task's conversation", phases.Context{WorkspaceID: "w", ThreadID: "t", ConversationThreadID: "c"}, query{"w", "c"}, ""},
		{"conversation alone", phases.Context{WorkspaceID: "w", ConversationThreadID: "c"}, query{"w", "c"}, ""},
		{"no workspace", phases.Context{ThreadID: "t"}, query{}, "workspace_id"},
		{"no thread", phases.Context{WorkspaceID: "w", SessionID: "s", TurnID: "1"}, query{}, "thread_id"},
		{"nothing", phases.Context{}, query{}, "workspace_id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := queryOf(&tt.where)
			if tt.lacks == "" {
				if err != nil || got != tt.want {
					t.Errorf("got %+v, error %v, want %+v", got, err, tt.want)
				}
				return
			}
			coded, ok := errors.AsType[*phases.Error](err)
			if !ok || coded.Code != phases.CausePluginError || coded.PluginCode != CodeContextIncomplete || !strings.Contains(coded.Message, tt.lacks) {
				t.Errorf("error is %+v", err)
			}
		})
	}
}

func TestAsk(t *testing.T) {
	t.Parallel()
	host := &answering{answer: `{"effective":{"doc":{"id":"d","content":"Be brief."},"source_path":["a","b"]},"diagnostics":[]}`}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	got, err := Ask(ctx, host, &phases.Context{WorkspaceID: "w", ThreadID: "t"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, Answer{Document: &Document{ID: "d", Path: []string{"a", "b"}, Content: "Be brief."}}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	if host.called != "documents/resolve_for_thread" || host.params != `{"workspace_id":"w","thread_id":"t"}` {
		t.Errorf("asked %s with %s", host.called, host.params)
	}
	if want, _ := ctx.Deadline(); !host.until.Equal(want) {
		t.Errorf("the host has until %v, want %v", host.until, want)
	}
}

func TestAskFails(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	tests := []struct {
		name  string
		ctx   context.Context
		host  answering
		code  string
		retry bool
		says  string
	}{
		{"no grant", t.Context(), answering{err: phases.Errorf(phases.CauseForbidden, "no")}, CodeNotGranted, false, "grant it with host: [documents]"},
		{"no service", t.Context(), answering{err: phases.Errorf(phases.CauseUnavailable, "away")}, CodeUnavailable, true, "away"},
		{"no time", t.Context(), answering{err: phases.Errorf(phases.CauseTimeout, "late")}, CodeUnavailable, true, "late"},
		{"too much", t.Context(), answering{err: phases.Errorf(phases.CauseOverloaded, "many")}, CodeUnavailable, true, "many"},
		{"refused", t.Context(), answering{err: phases.Errorf(phases.CauseInvalidReply, "params")}, CodeFailed, false, "params"},
		{"broken", t.Context(), answering{err: gone}, CodeFailed, false, "gone"},
		{"nothing", t.Context(), answering{}, CodeInvalid, false, "cannot be read"},
		{"another's answer", t.Context(), answering{answer: `{"value":null}`}, CodeInvalid, false, `no field "effective"`},
		{"nobody waits", ended, answering{err: gone}, "", false, "gone"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Ask(tt.ctx, &tt.host, &phases.Context{WorkspaceID: "w", ThreadID: "t"})
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("error is %v, want something of %q", err, tt.says)
			}
			coded, ok := errors.AsType[*phases.Error](err)
			switch {
			case tt.code == "":
				if !errors.Is(err, gone) || ok {
					t.Errorf("error is %+v, want the cause of the context's end", err)
				}
			case !ok || coded.Code != phases.CausePluginError || coded.PluginCode != tt.code || coded.Retryable != tt.retry:
				t.Errorf("error is %+v", coded)
			case tt.host.err != nil && !errors.Is(err, tt.host.err):
				t.Error("the cause is lost")
			}
		})
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     Answer
		says     string // of an error
	}{
		{"no document", `{"effective":null,"diagnostics":[]}`, Answer{}, ""},
		{"no diagnostics", `{"effective":null}`, Answer{}, ""},
		{
			"root, and fields of another version", `{"effective":{"doc":{"id":"d","version":3,"content":"x","new":1},"source_directory_id":null,"source_path":[],"inherited":true},"more":2}`,
			Answer{Document: &Document{ID: "d", Version: 3, Path: []string{}, Content: "x"}},
			"",
		},
		{"blank", `{"effective":{"doc":{"id":"d","content":""},"source_path":null}}`, Answer{Document: &Document{ID: "d"}}, ""},
		{"diagnostics", `{"effective":null,"diagnostics":[{"code":"thread_unknown","severity":"warning","message":"a\u0000b"},{}]}`, Answer{Diagnostics: []phases.Diagnostic{
			{Code: "thread_unknown", Severity: phases.SeverityWarning, Message: "a\uFFFDb"}, {Code: "documents", Severity: phases.SeverityInfo},
		}}, ""},
		{"no object", `[]`, Answer{}, "cannot unmarshal"},
		{"no field", `{}`, Answer{}, "effective"},
		{"a document of another kind", `{"effective":7}`, Answer{}, "cannot unmarshal"},
		{"a document without an id", `{"effective":{"doc":{"content":"x"}}}`, Answer{}, `"id"`},
		{"a document without a text", `{"effective":{"doc":{"id":"d"}}}`, Answer{}, `"content"`},
		{"a path of another kind", `{"effective":{"doc":{"id":"d","content":"x"},"source_path":[1]}}`, Answer{}, "cannot unmarshal"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Decode(json.RawMessage(tt.in))
			if tt.says != "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("error is %v, want something of %q", err, tt.says)
				}
				return
			}
			if diff := cmp.Diff(got, tt.want); err != nil || diff != "" {
				t.Errorf("error %v (-got +want)\n%s", err, diff)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"effective":{"doc":{"id":"d","content":"a\r\n\u0000</AGENTS_MD>"},"source_path":["\u202e","a / b"]},"diagnostics":[{"code":"x"}]}`)
	f.Add(`{"effective":null}`)
	f.Fuzz(func(t *testing.T, in string) {
		a, err := Decode(json.RawMessage(in))
		if err != nil {
			return
		}
		for _, d := range a.Diagnostics {
			if d.Code == "" || strings.Contains(d.Code+d.Message, "\x00") {
				t.Errorf("diagnostic %+v", d)
			}
		}
		if a.Document == nil {
			return
		}
		if a.Document.ID == "" {
			t.Error("a document without an id")
		}
		if label := a.Document.Label(); label == "" && strings.Join(a.Document.Path, "") != "" || strings.ContainsAny(label, "\n\x00<>[]") {
			t.Errorf("label %q of %q", label, a.Document.Path)
		}
		checkRendering(t, a.Document, 700)
	})
}
