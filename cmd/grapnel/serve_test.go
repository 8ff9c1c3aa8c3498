package main

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/phases"
)

// TestServeDefaults: the built-in configuration is valid, asks for documents, and
// grants what that needs.
func TestServeDefaults(t *testing.T) {
	t.Parallel()

	cfg, err := config.Parse(serveDefaults, "serve_defaults.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := cfg.Plugins[0]
	if len(cfg.Plugins) != 1 || string(p.Config) != `{"source":"both"}` || p.Builtin == "" {
		t.Errorf("plugins: %+v", cfg.Plugins)
	}
	if diff := cmp.Diff(p.Grants.Host, []string{"documents", "state"}) + cmp.Diff(p.Grants.Domains, []string{"thread_agents_doc"}); diff != "" {
		t.Errorf("grants (-got +want):\n%s", diff)
	}
	// Everything else is as it is for the other commands.
	plain, err := config.Parse(defaults, "defaults.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p.Grants.Host, p.Grants.Domains, p.Config = nil, nil, plain.Plugins[0].Config
	if diff := cmp.Diff(p.String(), plain.Plugins[0].String()); diff != "" {
		t.Errorf("beside that (-serve +others):\n%s", diff)
	}
}

func TestThreadPromptChars(t *testing.T) {
	t.Parallel()

	const frame = 15_814 // of 16,000, the frame taken away
	plugin := func(name, json string, o map[string]phases.Override) config.Plugin {
		return config.Plugin{Name: name, Builtin: agentsName, Config: []byte(json), Subscriptions: o}
	}
	budget := func(chars int) map[string]phases.Override {
		return map[string]phases.Override{"a.thread_prompt": {Budget: &phases.TextBudget{Chars: chars}}}
	}
	full := threadPromptChars(&config.Config{Plugins: []config.Plugin{plugin("a", `{"source":"tree"}`, nil)}})
	if full < frame-100 || full > frame+100 {
		t.Fatalf("the room is %d", full)
	}
	for _, tt := range []struct {
		name string
		cfg  config.Config
		want int
	}{
		{"no plugin", config.Config{}, 0},
		{"files", config.Config{Plugins: []config.Plugin{plugin("a", `{"source":"files"}`, nil)}}, 0},
		{"files by default", config.Config{Plugins: []config.Plugin{plugin("a", `{}`, nil)}}, 0},
		{"switched off", config.Config{Plugins: []config.Plugin{plugin("a", `{"source":"both","enabled":false}`, nil)}}, 0},
		{"off", config.Config{Plugins: []config.Plugin{plugin("a", `{"source":"both"}`, map[string]phases.Override{"a.thread_prompt": {Enabled: new(false)}})}}, 0},
		{"both", config.Config{Plugins: []config.Plugin{{Name: "x", Builtin: "scripted"}, plugin("a", `{"source":"both"}`, nil)}}, full},
		{"less", config.Config{Plugins: []config.Plugin{plugin("a", `{"source":"both"}`, budget(1000))}}, full - 15_000},
		{"more", config.Config{Plugins: []config.Plugin{plugin("a", `{"source":"both"}`, budget(90_000))}}, full + 48_000},
		{"nearly nothing", config.Config{Plugins: []config.Plugin{plugin("a", `{"source":"both"}`, budget(10))}}, 0},
		{"a small turn", config.Config{Budgets: config.Budgets{Turn: config.TurnBudget{Chars: 15_000}}, Plugins: []config.Plugin{plugin("a", `{"source":"both"}`, nil)}}, full - 1_000},
	} {
		if got := threadPromptChars(&tt.cfg); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestMakeTokens: several starts at once make one token, and one that the operator
// has changed stays.
func TestMakeTokens(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(t.TempDir(), "data")
	a := access{file: filepath.Join(dir, madeTokens), secretFile: filepath.Join(dir, madeSecret)}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			own := a
			if err := makeTokens(&own); err != nil {
				t.Error(err)
			}
			if tokens, err := readTokens(own.file); err != nil || len(tokens) != 1 || len(tokens[0].Rights) != len(rpc.Rights()) {
				t.Errorf("%+v, %v", tokens, err)
			}
		})
	}
	wg.Wait()
	if list, err := os.ReadDir(dir); err != nil || len(list) != 2 {
		t.Errorf("files: %v, %v", list, err)
	}
	if err := os.WriteFile(a.file, []byte("tokens: mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := makeTokens(&a); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(a.file); err != nil || string(data) != "tokens: mine" {
		t.Errorf("%s, %v", data, err)
	}
}

func TestReadSecret(t *testing.T) {
	t.Parallel()

	for text, says := range map[string]string{
		"abc\n":                   "",
		" abc \r\n":               "",
		"":                        "holds no token",
		"a b":                     "holds no token",
		"a\nb":                    "holds no token",
		"tokens: []":              "has hashes",
		"# x\ntokens:\n":          "has hashes",
		strings.Repeat("x", 5000): "holds no token",
	} {
		path := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readSecret(path)
		if (err != nil) != (says != "") || err != nil && !strings.Contains(err.Error(), says) || err == nil && got != "abc" {
			t.Errorf("%.20q: %q, %v", text, got, err)
		}
	}
}

func TestDoorsTarget(t *testing.T) {
	t.Parallel()

	lan := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5), Port: 80}
	for _, tt := range []struct {
		name   string
		doors  doors
		target string
		hosts  []string
	}{
		{"a port", doors{tcp: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7}}, "http://127.0.0.1:7", nil},
		{"IPv6", doors{tcp: &net.TCPAddr{IP: net.IPv6loopback, Port: 7}}, "http://[::1]:7", nil},
		{"a socket", doors{socket: "/run/g"}, "unix:/run/g", nil},
		{"both", doors{tcp: lan, socket: "/run/g"}, "http://10.0.0.5:80", []string{"10.0.0.5"}},
		{"every address", doors{tcp: &net.TCPAddr{IP: net.IPv4zero, Port: 7}}, "http://0.0.0.0:7", nil},
	} {
		if got := tt.doors.target(); got != tt.target {
			t.Errorf("%s: %s", tt.name, got)
		}
		if diff := cmp.Diff(tt.doors.hosts(), tt.hosts); diff != "" {
			t.Errorf("%s: hosts (-got +want):\n%s", tt.name, diff)
		}
	}
}

// TestCreateWhole: a file is there whole or not at all, for its owner alone, and
// never replaces another one.
func TestCreateWhole(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "x")
	for i, want := range []error{nil, fs.ErrExist} {
		if err := createWhole(path, []byte{byte('a' + i)}); (err == nil) != (want == nil) {
			t.Errorf("%d: %v, want %v", i, err, want)
		}
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "a" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestServedRoots: only who can read everything by himself has it read for him.
func TestServedRoots(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name   string
		flags  serveFlags
		made   bool
		roots  []string
		served []string
	}{
		{"a socket", serveFlags{Socket: "/s"}, true, nil, []string{"/"}},
		{"a socket and roots", serveFlags{Socket: "/s"}, true, []string{"/work"}, []string{"/work"}},
		{"an address", serveFlags{Listen: "127.0.0.1:0"}, false, nil, nil},
		{"an address and the made token", serveFlags{Listen: "127.0.0.1:0"}, true, nil, nil},
		{"both", serveFlags{Socket: "/s", Listen: "127.0.0.1:0"}, true, nil, nil},
		{"others' tokens", serveFlags{Socket: "/s", TokenFile: "/t"}, false, nil, nil},
	} {
		cfg := &config.Config{}
		cfg.Serve.Roots = tt.roots
		if got := servedRoots(&tt.flags, &access{made: tt.made}, cfg); !slices.Equal(got, tt.served) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.served)
		}
	}
}
