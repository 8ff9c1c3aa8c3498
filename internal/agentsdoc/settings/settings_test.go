package settings

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/phases"
)

// vars is an environment; HOME is /h unless it says otherwise.
type vars map[string]string

func (v vars) get(name string) string {
	if value, ok := v[name]; ok || name != "HOME" {
		return value
	}
	return "/h"
}

// options compares options, of which some fields are not exported.
// options leave out Places, which depend on the environment alone.
func options() cmp.Option {
	places := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Places" }, cmp.Ignore())
	return cmp.Options{places, cmp.Exporter(func(reflect.Type) bool { return true })}
}

func TestNew(t *testing.T) {
	t.Parallel()
	set := func(preset chain.Preset, change func(*Settings)) Settings {
		o, err := chain.ForPreset(preset, chain.Places{Home: "/h"})
		if err != nil {
			t.Fatal(err)
		}
		s := Settings{Options: o, Source: SourceFiles, Enabled: true, Subtasks: SubtasksInherit, Watch: true}
		change(&s)
		return s
	}
	of := func(preset chain.Preset, change func(o *chain.Options)) Settings {
		return set(preset, func(s *Settings) { change(&s.Options) })
	}
	tests := []struct {
		name, config string
		env          vars
		flags        string
		want         Settings
	}{
		{"nothing", "", nil, "", of("default", func(*chain.Options) {})},
		{"everything that is no option", `{"source":"tree","enabled":false,"subtasks":"managed_only","watch":false}`, nil, "", set("default", func(s *Settings) {
			s.Source, s.Enabled, s.Subtasks, s.Watch = SourceTree, false, SubtasksManagedOnly, false
		})},
		{"lists", `{"names":["A"],"fallback_names":["B"],"local_names":[],"markers":[],"exclude":["x"]}`, nil, "", of("default", func(o *chain.Options) {
			o.Names, o.FallbackNames, o.LocalNames, o.Markers, o.Exclude = []string{"A"}, []string{"B"}, []string{}, []string{}, []string{"x"}
		})},
		{"limits", `{"budget":{"file":5,"total":2,"files":3,"floor":4}}`, nil, "", of("default", func(o *chain.Options) {
			o.Budget = chain.Limits{File: 2, Total: 2, Files: 3, Floor: 4, GlobalFloor: 4096}
		})},
		{"trust", `{"trust":"listed","untrusted":"text","allow":["~/src","/x"]}`, nil, "", of("default", func(o *chain.Options) {
			o.Trust, o.Untrusted, o.Allow = chain.TrustListed, chain.UntrustedText, []string{"/h/src", "/x"}
		})},
		{"the user's files", `{"global":"~/x/RULES.md","managed":"/etc/M.md","root":"~/r"}`, nil, "", of("default", func(o *chain.Options) {
			o.GlobalDir, o.GlobalNames, o.Managed, o.Root = "/h/x", []string{"RULES.md"}, "/etc/M.md", "/h/r"
		})},
		{"no global file", `{"global":false}`, nil, "", of("default", func(o *chain.Options) { o.GlobalDir = "" })},
		{"extras", `{"imports":true,"child_hint":true}`, nil, "", of("default", func(o *chain.Options) { o.Imports, o.ChildHint = chain.ImportLines, true })},
		{"nested files off", `{"resolver":{"enabled":false,"max_files":1,"max_file":2,"max_event":3}}`, nil, "", of("default", func(o *chain.Options) {
			o.Resolver = chain.Resolver{Delivery: chain.DeliverOff, ChangedWhen: chain.ChangedByHash, MaxFiles: 1, MaxFile: 2, MaxEvent: 3}
		})},
		{"nested files on where the preset has none", `{"preset":"codex","resolver":{"enabled":true}}`, nil, "", of("codex", func(o *chain.Options) {
			o.Resolver.Delivery, o.Resolver.ChangedWhen = chain.DeliverReminder, chain.ChangedByHash
		})},
		{"a tool's block in its preset", `{"preset":"codelia","markers":["x"],"codelia":{"enabled":false,"root":{"projectRootOverride":"~/r","markers":[".m"]},
			"initial":{"maxFiles":2,"maxBytes":3},"resolver":{"enabled":false,"maxFilesPerResolve":4}}}`, nil, "", set("codelia", func(s *Settings) {
			s.Enabled = false
			o := &s.Options
			o.Root, o.Markers, o.Budget.Files, o.Budget.Total = "/h/r", []string{".m"}, 2, 3
			o.Resolver.Delivery, o.Resolver.MaxFiles = chain.DeliverOff, 4
		})},
		{"a tool's block in another preset", `{"codelia":{"enabled":false,"initial":{"maxBytes":3}}}`, nil, "", of("default", func(*chain.Options) {})},
		{"a tool's variables in its preset", `{"codelia":{"root":{"projectRootOverride":"/block"}}}`, vars{
			"GRAPNEL_AGENTS_PRESET": "codelia", "CODELIA_AGENTS_ROOT": "/e", "CODELIA_AGENTS_MARKERS": " .a ,, .b", "CODELIA_SANDBOX_ROOT": "/sandbox",
		}, "", of("codelia", func(o *chain.Options) { o.Root, o.Markers = "/e", []string{".a", ".b"} })},
		{"a tool's variables in another preset", "", vars{"CODELIA_AGENTS_ROOT": "/e", "CODELIA_AGENTS_MARKERS": "x"}, "", of("default", func(*chain.Options) {})},
		{"environment over configuration", `{"root":"/r","markers":["m"],"trust":"all","budget":{"total":5}}`, vars{
			"GRAPNEL_AGENTS_ROOT": "/e", "GRAPNEL_AGENTS_MARKERS": ".a,.b", "GRAPNEL_AGENTS_MAX_BYTES": "77", "GRAPNEL_AGENTS_TRUST": "none",
		}, "", of("default", func(o *chain.Options) {
			o.Root, o.Markers, o.Trust, o.Budget.Total, o.Budget.File = "/e", []string{".a", ".b"}, chain.TrustNone, 77, 77
		})},
		{
			"flags over all", `{"preset":"codelia","budget":{"total":1}}`,
			vars{"GRAPNEL_AGENTS_PRESET": "default", "GRAPNEL_AGENTS_ROOT": "/e", "GRAPNEL_AGENTS_MAX_BYTES": "77"},
			`{"preset":"codex","root":"/f","budget":{"total":100000,"files":9}}`, of("codex", func(o *chain.Options) {
				o.Root, o.Budget.Total, o.Budget.Files = "/f", 100000, 9
			}),
		},
		{"no markers by the environment", "", vars{"GRAPNEL_AGENTS_MARKERS": ","}, "", of("default", func(o *chain.Options) { o.Markers = []string{} })},
		{"a root that cannot be one is not refused here", "", vars{"GRAPNEL_AGENTS_ROOT": "x"}, "", of("default", func(o *chain.Options) { o.Root = "x" })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var layers [2]Config
			for i, text := range []string{tt.config, tt.flags} {
				var err error
				if layers[i], err = Parse(json.RawMessage(text)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := New(layers[0], tt.env.get, layers[1])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, tt.want, options()); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		env        vars
		config     string
		home, dir  string
		configDirs []string
	}{
		{"home only", nil, "", "/h", "/h/.config/grapnel", []string{"/h/.config", "/h/.codex"}},
		{"no home", vars{"HOME": ""}, "", "", "", []string{}},
		{"directories of configuration", vars{"XDG_CONFIG_HOME": "/x", "CODEX_HOME": "/c/"}, "", "/h", "/x/grapnel", []string{"/x", "/c", "/h/.config", "/h/.codex"}},
		{"codex", vars{"CODEX_HOME": "/c/"}, `{"preset":"codex"}`, "/h", "/c", []string{"/c", "/h/.config", "/h/.codex"}},
		{"codex in its usual place", nil, `{"preset":"codex"}`, "/h", "/h/.codex", []string{"/h/.config", "/h/.codex"}},
		{"codelia", nil, `{"preset":"codelia"}`, "/h", "", []string{"/h/.config", "/h/.codex"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := Parse(json.RawMessage(tt.config))
			if err != nil {
				t.Fatal(err)
			}
			got, err := New(c, tt.env.get, Config{})
			if err != nil {
				t.Fatal(err)
			}
			o := got.Options
			if o.Home != tt.home || o.GlobalDir != tt.dir || !cmp.Equal(o.ConfigDirs, tt.configDirs) {
				t.Errorf("got home %q, global %q, configuration %q", o.Home, o.GlobalDir, o.ConfigDirs)
			}
		})
	}
}

func TestBadLayers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		config Config
		env    vars
		flags  Config
		want   string
	}{
		{"number", Config{}, vars{"GRAPNEL_AGENTS_MAX_BYTES": "32KiB"}, Config{}, `GRAPNEL_AGENTS_MAX_BYTES in the environment: "32KiB" is not a number of bytes`},
		{"negative", Config{}, vars{"GRAPNEL_AGENTS_MAX_BYTES": "-1"}, Config{}, "GRAPNEL_AGENTS_MAX_BYTES"},
		{"trust", Config{}, vars{"GRAPNEL_AGENTS_TRUST": "x"}, Config{}, `GRAPNEL_AGENTS_TRUST in the environment: unknown word "x", want one of all, listed, none`},
		{"marker", Config{}, vars{"GRAPNEL_AGENTS_MARKERS": "a,../x"}, Config{}, `GRAPNEL_AGENTS_MARKERS in the environment: "../x" is not a plain file name`},
		{"flag", Config{}, nil, Config{Markers: []string{"a/b"}}, "/markers/0"},
		{"configuration", Config{Root: "x"}, nil, Config{}, "/root"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := New(tt.config, tt.env.get, tt.flags)
			if _, ok := errors.AsType[*phases.ConfigError](err); !ok || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want something of %s", err, tt.want)
			}
		})
	}
}
