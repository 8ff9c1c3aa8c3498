package agentsdoc

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, pointer, message string }{
		{"no object", `[]`, "", "cannot unmarshal"},
		{"unknown key", `{"name":["x"]}`, "", `unknown field "name"`},
		{"source that the host does not have", `{"source":"both"}`, "/source", `"both" takes documents of the thread tree from the host service "documents", which the plugin does not have: grant it with host: [documents]`},
		{"mistyped source", `{"source":"file"}`, "/source", `did you mean "files"?`},
		{"mistyped preset", `{"preset":"defalt"}`, "/preset", `did you mean "default"?`},
		{"name that leads up", `{"names":["AGENTS.md","../b"]}`, "/names/1", "not a plain file name"},
		{"relative root", `{"root":"src"}`, "/root", "not an absolute path"},
		{"global of another type", `{"global":3}`, "/global", "want true, false, or the path of a file"},
		{"number as a text", `{"budget":{"total":"32KiB"}}`, "/budget/total", "want a whole number, got a text"},
		{"no file", `{"budget":{"files":0}}`, "/budget/files", "want at least 1, got 0"},
		{"delivery", `{"resolver":{"delivery":"bodies"}}`, "/resolver/delivery", `did you mean "body"?`},
		{"subtasks", `{"subtasks":"all"}`, "/subtasks", "unknown word"},
		{"codelia unknown", `{"codelia":{"initial":{"maxFile":1}}}`, "", "unknown field"},
		{"codelia zero", `{"codelia":{"initial":{"maxFiles":0}}}`, "/codelia/initial/maxFiles", "want at least 1, got 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := withoutHome().Configure(t.Context(), &phases.Configuration{Config: json.RawMessage(tt.in)})
			got, ok := errors.AsType[*phases.ConfigError](err)
			if !ok || got.Pointer != tt.pointer || !strings.Contains(got.Message, tt.message) {
				t.Errorf("got %+v, want %s: %s", err, tt.pointer, tt.message)
			}
		})
	}
}

// TestHooks: only the text itself stops a turn.
func TestHooks(t *testing.T) {
	t.Parallel()
	p := withoutHome()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	d, err := p.Configure(t.Context(), &phases.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range d.Hooks[1:] {
		if h.OnFailure.Default == phases.FailClosed || slices.Contains(h.Kinds, phases.KindPromptSection) || h.Doc == "" {
			t.Errorf("the hook %s is %+v", h.Name, h)
		}
	}
}

func FuzzConfigure(f *testing.F) {
	f.Add([]byte(`{"names":["A"],"global":false,"budget":{"total":1}}`))
	f.Add([]byte(`{"preset":"codelia","codelia":{"initial":{"maxFiles":1}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := withoutHome().Configure(t.Context(), &phases.Configuration{Config: data})
		if _, ok := errors.AsType[*phases.ConfigError](err); err != nil && !ok {
			t.Fatalf("%T: %v", err, err)
		}
	})
}
