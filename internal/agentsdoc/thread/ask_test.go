package thread

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     Answer
		says     string // of an error
	}{
		{"no document", `{"effective":null,"diagnostics":[]}`, Answer{}, ""},
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
		{"a document without an id", `{"effective":{"doc":{"content":"x"}}}`, Answer{}, `"id"`},
		{"a document without a text", `{"effective":{"doc":{"id":"d"}}}`, Answer{}, `"content"`},
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
