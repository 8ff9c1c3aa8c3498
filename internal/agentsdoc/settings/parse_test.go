package settings

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/phases"
)

// everything is a configuration with each key.
const everything = `{"source":"both","preset":"codelia","enabled":false,"names":["A"],"fallback_names":[],"local_names":["L"],"markers":["m"],
	"exclude":["vendor/**"],"root":"~/r","allow":["/a","~/b"],"trust":"listed","untrusted":"text","global":"/g/F.md","managed":"/m/M.md",
	"budget":{"file":1,"total":0,"files":2,"floor":3},
	"resolver":{"enabled":true,"delivery":"reminder","max_files":4,"max_file":5,"max_event":6},
	"imports":true,"child_hint":true,"subtasks":"none","watch":false,
	"codelia":{"enabled":true,"root":{"projectRootOverride":"/x","markers":[".m"],"stopAtFsRoot":true},
		"initial":{"maxFiles":7,"maxBytes":8},"resolver":{"enabled":false,"maxFilesPerResolve":9}}}`

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     Config
	}{
		{"nothing", "", Config{}},
		{"empty", " {} ", Config{}},
		{"everything", everything, Config{
			Source: SourceBoth, Preset: chain.PresetCodelia, Enabled: new(false), Names: []string{"A"}, FallbackNames: []string{}, LocalNames: []string{"L"},
			Markers: []string{"m"}, Exclude: []string{"vendor/**"}, Root: "~/r", Allow: []string{"/a", "~/b"}, Trust: chain.TrustListed, Untrusted: chain.UntrustedText,
			Global: Global{Path: "/g/F.md"}, Managed: "/m/M.md", Budget: Budget{new(1), new(0), new(2), new(3)},
			Resolver: Resolver{new(true), chain.DeliverReminder, new(4), new(5), new(6)}, Imports: new(true), ChildHint: new(true),
			Subtasks: SubtasksNone, Watch: new(false),
			Codelia: &Codelia{
				Enabled: new(true), Root: CodeliaRoot{new("/x"), []string{".m"}, new(true)},
				Initial: CodeliaInitial{new(7), new(8)}, Resolver: CodeliaResolver{new(false), new(9)},
			},
		}},
		{"no global file", `{"global":false}`, Config{Global: Global{Off: true}}},
		{"global file of the preset", `{"global":true}`, Config{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(json.RawMessage(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
			data, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Parse(data)
			if diff := cmp.Diff(again, got); diff != "" || err != nil {
				t.Errorf("%s is read back as another (error %v)\n%s", data, err, diff)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, pointer, message string }{
		{"no object", `[]`, "", "cannot unmarshal"},
		{"more than one", `{} {}`, "", "more than one JSON value"},
		{"unknown key", `{"name":["x"]}`, "", `unknown field "name"`},
		{"unknown key of codelia", `{"codelia":{"initial":{"maxChars":1}}}`, "", `unknown field "maxChars"`},
		{"key in another case", `{"NAMES":["x"]}`, "/NAMES", `unknown key "NAMES"`},
		{"key of codelia in another case", `{"codelia":{"initial":{"maxfiles":1}}}`, "/codelia/initial/maxfiles", `did you mean "maxFiles"?`},
		{"source", `{"source":"file"}`, "/source", `did you mean "files"?`},
		{"preset", `{"preset":"codexx"}`, "/preset", `did you mean "codex"?`},
		{"trust", `{"trust":"some"}`, "/trust", "want one of all, listed, none"},
		{"untrusted", `{"untrusted":"name"}`, "/untrusted", "names"},
		{"subtasks", `{"subtasks":"all"}`, "/subtasks", "unknown word"},
		{"delivery", `{"resolver":{"delivery":"on"}}`, "/resolver/delivery", "unknown word"},
		{"name that leads up", `{"names":["AGENTS.md","../b"]}`, "/names/1", "not a plain file name"},
		{"parent directory", `{"fallback_names":[".."]}`, "/fallback_names/0", "not a plain file name"},
		{"empty local name", `{"local_names":[""]}`, "/local_names/0", "not a plain file name"},
		{"NUL", `{"markers":["a\u0000"]}`, "/markers/0", "not a plain file name"},
		{"marker of codelia", `{"codelia":{"root":{"markers":["a/b"]}}}`, "/codelia/root/markers/0", "not a plain file name"},
		{"pattern", `{"exclude":["[a"]}`, "/exclude/0", "not a pattern"},
		{"relative allowed directory", `{"allow":["a"]}`, "/allow/0", "not an absolute path"},
		{"relative root", `{"root":"src"}`, "/root", "not an absolute path"},
		{"relative managed file", `{"managed":"RULES.md"}`, "/managed", "not an absolute path"},
		{"relative global file", `{"global":"AGENTS.md"}`, "/global", "not an absolute path"},
		{"relative root of codelia", `{"codelia":{"root":{"projectRootOverride":"x"}}}`, "/codelia/root/projectRootOverride", "not an absolute path"},
		{"global of another type", `{"global":3}`, "/global", "want true, false, or the path of a file"},
		{"global without a path", `{"global":""}`, "/global", "want true, false, or the path of a file"},
		{"global null", `{"global":null}`, "/global", "want true, false, or the path of a file"},
		{"number as a text", `{"budget":{"total":"32KiB"}}`, "/budget/total", "want a whole number, got a text"},
		{"negative total", `{"budget":{"total":-1}}`, "/budget/total", "want at least 0, got -1"},
		{"no file", `{"budget":{"files":0}}`, "/budget/files", "want at least 1, got 0"},
		{"no bytes of a file", `{"budget":{"file":0}}`, "/budget/file", "want at least 1, got 0"},
		{"no floor", `{"budget":{"floor":0}}`, "/budget/floor", "want at least 1, got 0"},
		{"no nested file", `{"resolver":{"max_files":0}}`, "/resolver/max_files", "want at least 1, got 0"},
		{"no file of codelia", `{"codelia":{"initial":{"maxFiles":0}}}`, "/codelia/initial/maxFiles", "want at least 1, got 0"},
		{"half a byte of codelia", `{"codelia":{"initial":{"maxBytes":1.5}}}`, "/codelia/initial/maxBytes", "want a whole number"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(json.RawMessage(tt.in))
			got, ok := errors.AsType[*phases.ConfigError](err)
			if !ok || got.Pointer != tt.pointer || !strings.Contains(got.Message, tt.message) {
				t.Errorf("got %+v, want %s: %s", err, tt.pointer, tt.message)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(everything)
	f.Add(`{"global":null,"budget":{}}`)
	f.Fuzz(func(t *testing.T, in string) {
		c, err := Parse(json.RawMessage(in))
		if err != nil {
			if _, ok := errors.AsType[*phases.ConfigError](err); !ok {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Parse(data); err != nil || !cmp.Equal(again, c) {
			t.Fatalf("%q is read back from %s as another: %v", in, data, err)
		}
		if _, err := New(c, func(string) string { return "" }, Config{}); err != nil {
			t.Fatalf("a checked configuration gives no settings: %v", err)
		}
	})
}
