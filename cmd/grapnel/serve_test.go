package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/phases"
)

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
