package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/rpc"
)

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
	for _, name := range []string{a.file, a.secretFile} {
		if info, err := os.Stat(name); err != nil || info.Mode() != 0o600 && runtime.GOOS != "windows" {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	put(t, a.file, "tokens: mine")
	if err := makeTokens(&a); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(a.file); err != nil || string(data) != "tokens: mine" {
		t.Errorf("%s, %v", data, err)
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
