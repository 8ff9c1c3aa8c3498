package agentsdoc

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
)

func TestParseConfig(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     Config
	}{
		{"nothing", "", Config{}},
		{"empty", " {} ", Config{}},
		{
			"everything", `{"source":"files","preset":"default","enabled":false,"names":["A"],"fallback_names":[],"markers":["m"],"root":"~/r",
				"global":"/g/F.md","budget":{"file":1,"total":0,"files":2,"floor":3}}`,
			Config{
				Source: "files", Preset: "default", Enabled: new(false), Names: []string{"A"}, FallbackNames: []string{}, Markers: []string{"m"},
				Root: "~/r", Global: Global{Path: "/g/F.md"}, Budget: Budget{new(1), new(0), new(2), new(3)},
			},
		},
		{"no global file", `{"global":false}`, Config{Global: Global{Off: true}}},
		{"global file", `{"global":true}`, Config{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseConfig(json.RawMessage(tt.in))
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
			again, err := ParseConfig(data)
			if diff := cmp.Diff(again, got, cmp.Comparer(slices.Equal[[]string])); diff != "" || err != nil {
				t.Errorf("%s is read back as another (error %v)\n%s", data, err, diff)
			}
		})
	}
}

func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, pointer, message string }{
		{"no object", `[]`, "", "cannot unmarshal"},
		{"unknown key", `{"name":["x"]}`, "", `unknown field "name"`},
		{"source of another version", `{"source":"both"}`, "/source", `"both" is not available in this version of the plugin, only "files" is`},
		{"mistyped source", `{"source":"file"}`, "/source", `did you mean "files"?`},
		{"preset of another version", `{"preset":"codex"}`, "/preset", `"codex" is not available in this version of the plugin, only "default" is`},
		{"mistyped preset", `{"preset":"defalt"}`, "/preset", `did you mean "default"?`},
		{"name with a folder", `{"names":["AGENTS.md","a/b"]}`, "/names/1", "not a plain file name"},
		{"parent folder", `{"fallback_names":[".."]}`, "/fallback_names/0", "not a plain file name"},
		{"empty name", `{"markers":[""]}`, "/markers/0", "not a plain file name"},
		{"folder itself", `{"markers":["."]}`, "/markers/0", "not a plain file name"},
		{"NUL", `{"markers":["a\u0000"]}`, "/markers/0", "not a plain file name"},
		{"relative root", `{"root":"src"}`, "/root", "not an absolute path"},
		{"relative global file", `{"global":"AGENTS.md"}`, "/global", "not an absolute path"},
		{"global of another type", `{"global":3}`, "/global", "want true, false, or the path of a file"},
		{"global without a path", `{"global":""}`, "/global", "want true, false, or the path of a file"},
		{"number as a text", `{"budget":{"total":"32KiB"}}`, "/budget/total", "want int, got string"},
		{"negative total", `{"budget":{"total":-1}}`, "/budget/total", "less than 0"},
		{"no file", `{"budget":{"files":0}}`, "/budget/files", "less than 1"},
		{"no bytes of a file", `{"budget":{"file":0}}`, "/budget/file", "less than 1"},
		{"no floor", `{"budget":{"floor":0}}`, "/budget/floor", "less than 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := newPlugin(chain.OS{}, environment(nil)).Configure(t.Context(), &phases.Configuration{Config: json.RawMessage(tt.in)})
			got, ok := errors.AsType[*phases.ConfigError](err)
			if !ok || got.Pointer != tt.pointer || !strings.Contains(got.Message, tt.message) {
				t.Errorf("got %+v, want %s: %s", err, tt.pointer, tt.message)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	home := map[string]string{"HOME": "/h"}
	with := func(vars ...string) map[string]string {
		out := maps.Clone(home)
		for i := 0; i < len(vars); i += 2 {
			out[vars[i]] = vars[i+1]
		}
		return out
	}
	set := func(change func(*Settings)) Settings {
		s := Settings{Options: chain.Default(), MaxBytes: 32 << 10}
		s.Options.Home, s.Options.GlobalDir = "/h", "/h/.config/grapnel"
		s.Options.ConfigDirs = []string{"/h/.config", "/h/.codex"}
		change(&s)
		return s
	}
	tests := []struct {
		name, config string
		env          map[string]string
		want         Settings
	}{
		{"home only", "", home, set(func(*Settings) {})},
		{"no environment", "", nil, set(func(s *Settings) {
			s.Options.Home, s.Options.GlobalDir, s.Options.ConfigDirs = "", "", []string{}
		})},
		{"relative folders do not count", "", map[string]string{"HOME": "h", "XDG_CONFIG_HOME": "x", "CODEX_HOME": "c"}, set(func(s *Settings) {
			s.Options.Home, s.Options.GlobalDir, s.Options.ConfigDirs = "", "", []string{}
		})},
		{"folders of configuration", "", with("XDG_CONFIG_HOME", "/x", "CODEX_HOME", "/c/"), set(func(s *Settings) {
			s.Options.GlobalDir, s.Options.ConfigDirs = "/x/grapnel", []string{"/x", "/c", "/h/.config", "/h/.codex"}
		})},
		{"names and limits", `{"names":["A"],"fallback_names":["B"],"markers":[],"budget":{"file":1,"total":2,"files":3,"floor":4}}`, home, set(func(s *Settings) {
			s.Options.Names, s.Options.FallbackNames, s.Options.Markers = []string{"A"}, []string{"B"}, []string{}
			s.Options.Budget = chain.Limits{File: 1, Total: 2, Files: 3, Floor: 4, GlobalFloor: 4096}
			s.MaxBytes = 2
		})},
		{"nothing at all", `{"budget":{"total":0}}`, home, set(func(s *Settings) { s.MaxBytes, s.Options.Budget.Total = 0, 0 })},
		{"no global file", `{"global":false}`, home, set(func(s *Settings) { s.Options.GlobalDir = "" })},
		{"global file below home", `{"global":"~/x/RULES.md"}`, home, set(func(s *Settings) {
			s.Options.GlobalDir, s.Options.GlobalNames = "/h/x", []string{"RULES.md"}
		})},
		{"root below home", `{"root":"~/src"}`, home, set(func(s *Settings) { s.Options.Root = "/h/src" })},
		{"environment stands above", `{"root":"/r","markers":["m"],"budget":{"total":5}}`, with(
			"GRAPNEL_AGENTS_ROOT", "/e", "GRAPNEL_AGENTS_MARKERS", " .a ,, .b", "GRAPNEL_AGENTS_MAX_BYTES", "77",
		), set(func(s *Settings) {
			s.Options.Root, s.Options.Markers, s.Options.Budget.Total, s.MaxBytes = "/e", []string{".a", ".b"}, 77, 77
		})},
		{"no markers by the environment", "", with("GRAPNEL_AGENTS_MARKERS", ","), set(func(s *Settings) { s.Options.Markers = []string{} })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg, err := ParseConfig(json.RawMessage(tt.config))
			if err != nil {
				t.Fatal(err)
			}
			got, err := cfg.Settings(environment(tt.env))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, tt.want, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
	for _, bad := range []string{"32KiB", "-1", "1.5"} {
		_, err := new(Config).Settings(environment(with("GRAPNEL_AGENTS_MAX_BYTES", bad)))
		if _, ok := errors.AsType[*phases.ConfigError](err); !ok || !strings.Contains(err.Error(), "GRAPNEL_AGENTS_MAX_BYTES") {
			t.Errorf("%q: error is %v", bad, err)
		}
	}
}

func TestGlobalFile(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{
		"x/grapnel/AGENTS.md": "all trees", "h/.config/grapnel/AGENTS.md": "at home", "h/mine.md": "mine", "r/.git/HEAD": "", "r/AGENTS.md": "this tree",
	})
	tests := []struct {
		name, config string
		env          map[string]string
		want         string
	}{
		{"folder of configuration", "", map[string]string{"HOME": base + "/h", "XDG_CONFIG_HOME": base + "/x"}, "all trees"},
		{"home", "", map[string]string{"HOME": base + "/h"}, "at home"},
		{"named", `{"global":"~/mine.md"}`, map[string]string{"HOME": base + "/h"}, "mine"},
		{"none", `{"global":false}`, map[string]string{"HOME": base + "/h"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := askSection(t, configured(t, tt.config, tt.env), inDir(base, "r"), phases.Room{})
			files := 1
			if tt.want != "" {
				files = 2
			}
			if !strings.Contains(s.Content, tt.want+"\n") || !strings.HasSuffix(s.Content, "\nthis tree") || len(s.SourceRefs) != files {
				t.Errorf("%d files; the content is\n%s", len(s.SourceRefs), s.Content)
			}
		})
	}
}

// TestSchemaAgrees compares the schema with the Go type, key by key, and with
// what ParseConfig takes.
func TestSchemaAgrees(t *testing.T) {
	t.Parallel()
	var schema jsonschema.Schema
	if err := json.Unmarshal(configSchema, &schema); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(schema.Properties)), jsonNames(reflect.TypeFor[Config]())); diff != "" {
		t.Errorf("keys (-schema +type)\n%s", diff)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(schema.Properties["budget"].Properties)), jsonNames(reflect.TypeFor[Budget]())); diff != "" {
		t.Errorf("keys of the budget (-schema +type)\n%s", diff)
	}
	resolved, err := schema.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		in string
		ok bool
	}{
		{`{}`, true},
		{`{"source":"files","enabled":true,"names":["A"],"global":"/x","budget":{"total":0}}`, true},
		{`{"global":false}`, true},
		{`{"sources":"files"}`, false},
		{`{"budget":{"bytes":1}}`, false},
		{`{"budget":{"file":0}}`, false},
		{`{"global":3}`, false},
		{`{"names":"AGENTS.md"}`, false},
		{`[]`, false},
	} {
		var value any
		if err := json.Unmarshal([]byte(tt.in), &value); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(value); (err == nil) != tt.ok {
			t.Errorf("the schema says of %s: %v", tt.in, err)
		}
		if _, err := ParseConfig([]byte(tt.in)); (err == nil) != tt.ok {
			t.Errorf("ParseConfig says of %s: %v", tt.in, err)
		}
	}
}

// TestSchemaDefaults compares the defaults that the schema tells with those in
// force.
func TestSchemaDefaults(t *testing.T) {
	t.Parallel()
	var schema jsonschema.Schema
	if err := json.Unmarshal(configSchema, &schema); err != nil {
		t.Fatal(err)
	}
	o := chain.Default()
	for key, want := range map[string]any{
		"names": o.Names, "fallback_names": o.FallbackNames, "markers": o.Markers, "preset": o.Preset,
		"budget/file": o.Budget.File, "budget/total": o.Budget.Total, "budget/files": o.Budget.Files, "budget/floor": o.Budget.Floor,
	} {
		of := &schema
		for name := range strings.SplitSeq(key, "/") {
			of = of.Properties[name]
		}
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var wantValue, gotValue any
		if json.Unmarshal(data, &wantValue) != nil || json.Unmarshal(of.Default, &gotValue) != nil || !cmp.Equal(gotValue, wantValue) {
			t.Errorf("%s: the schema says %s, in force is %s", key, of.Default, data)
		}
	}
}

// jsonNames are the JSON names of a struct's fields, sorted.
func jsonNames(of reflect.Type) []string {
	var names []string
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"names":["A"],"global":false,"budget":{"total":1}}`))
	f.Add([]byte(`{"global":"~/x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig(data)
		if err != nil {
			if _, ok := errors.AsType[*phases.ConfigError](err); !ok {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		out, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseConfig(out); err != nil {
			t.Fatalf("%s is refused: %v", out, err)
		}
	})
}
