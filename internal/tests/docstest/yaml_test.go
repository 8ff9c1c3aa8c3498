package docstest

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

// environment answers for every variable that a document's configuration names.
func environment(name string) (string, bool) {
	if name == "PATH" {
		return "", false
	}
	return "sqlite:value-of-" + name, true
}

// newEngine starts an engine and ends it with the test.
func newEngine(t *testing.T, cfg *config.Config, o runtime.Options) *runtime.Engine {
	t.Helper()
	eng, err := runtime.New(t.Context(), cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return eng
}

// homeOfMe is the directory of somebody who has hooks for Claude Code, as documents name it.
func homeOfMe(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, "src/app/.claude/settings.json")
	const settings = `{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./tidy.sh", "timeout": 5}, {"type": "command", "command": "./guard.sh", "timeout": 5}]}]}}`
	writeFile(t, file, settings)
	return home
}

// TestConfigurations reads every configuration in the documents and of the examples, and lets an
// engine plan those of the documents that need no program.
func TestConfigurations(t *testing.T) {
	t.Parallel()

	examples, err := filepath.Glob(filepath.Join(root(t), "examples", "*", "grapnel.yaml"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("examples %q, %v", examples, err)
	}
	for _, name := range examples {
		if _, err := (config.Loader{LookupEnv: environment}).Load(name); err != nil {
			t.Error(err)
		}
	}
	for _, b := range blocksOf(t, "yaml") {
		t.Run(fmt.Sprintf("%s:%d", b.doc, b.line), func(t *testing.T) {
			t.Parallel()

			if strings.HasPrefix(b.text, "tokens:") {
				readTokens(t, b.text)
				return
			}
			text := strings.ReplaceAll(b.text, "/home"+"/me", homeOfMe(t))
			cfg, err := config.Loader{LookupEnv: environment}.Parse([]byte(text), "grapnel.yaml")
			if err != nil {
				t.Fatal(err)
			}
			opts := runtime.Options{
				InProcess: map[string]runtime.Plugin{},
				Services:  map[string]runtime.Service{gateway.ServiceDocuments: gateway.Documents(storetest.Tree(t, nil))},
			}
			for _, p := range cfg.Plugins {
				if p.Command != "" {
					return // there is no such program here
				}
				if opts.InProcess[p.Name], err = firstParty().New(p.Builtin); err != nil {
					t.Fatal(err)
				}
			}
			kept := tempStore(t)
			if opts.State = kept; cfg.Store.Value != "" {
				opts.Sink = kept
			}
			eng := newEngine(t, cfg, opts)
			for _, d := range eng.Diagnostics() {
				t.Errorf("the plan says: %s: %s", d.Code, d.Message)
			}
		})
	}
}

// readTokens reads a gateway's file of tokens.
func readTokens(t *testing.T, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	writeFile(t, path, text)
	if _, err := config.LoadTokens(path); err != nil {
		t.Error(err)
	}
}

// tempStore opens a store that goes away with the test.
func tempStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "log.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
