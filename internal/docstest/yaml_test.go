package docstest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/builtin"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/tree/treetest"
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

// TestConfigurations reads every configuration in the documents, and lets an
// engine plan those that need no program.
func TestConfigurations(t *testing.T) {
	t.Parallel()

	for _, b := range blocksOf(t, "yaml") {
		t.Run(fmt.Sprintf("%s:%d", b.doc, b.line), func(t *testing.T) {
			t.Parallel()

			if strings.HasPrefix(b.text, "tokens:") {
				readTokens(t, b.text)
				return
			}
			cfg, err := config.Loader{LookupEnv: environment}.Parse([]byte(b.text), "grapnel.yaml")
			if err != nil {
				t.Fatal(err)
			}
			opts := runtime.Options{
				InProcess: map[string]runtime.Plugin{},
				Services:  map[string]runtime.Service{gateway.ServiceDocuments: gateway.Documents(treetest.NewModel(nil))},
			}
			for _, p := range cfg.Plugins {
				if p.Command != "" {
					return // there is no such program here
				}
				if opts.InProcess[p.Name], err = builtin.Plugin(p.Builtin); err != nil {
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
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
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

// TestEveryKey wants each key of grapnel.yaml in the operator's guide.
func TestEveryKey(t *testing.T) {
	t.Parallel()

	guide := text(t, "docs/CONFIGURATION.md")
	keys := map[string]bool{}
	var schema map[string]any
	if err := json.Unmarshal(config.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	defs, ok := schema["$defs"].(map[string]any)
	if !ok {
		t.Fatal("the schema has no definitions")
	}
	delete(schema, "$defs")
	collectKeys(schema, defs, keys)
	if len(keys) < 50 {
		t.Fatalf("found %d keys: the search does not work", len(keys))
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !regexp.MustCompile("[`{ .]" + regexp.QuoteMeta(key) + "[`:.]").MatchString(guide) {
			t.Errorf("docs/CONFIGURATION.md does not mention %s", key)
		}
	}
}

// collectKeys notes the names of all properties of a schema, definitions that it
// refers to included. Contributions are the subject of PLUGINS.md.
func collectKeys(schema any, defs map[string]any, keys map[string]bool) {
	switch s := schema.(type) {
	case map[string]any:
		if properties, ok := s["properties"].(map[string]any); ok {
			for name := range properties {
				keys[name] = true
			}
		}
		if ref, ok := s["$ref"].(string); ok && ref != "#/$defs/contribution" {
			collectKeys(defs[strings.TrimPrefix(ref, "#/$defs/")], defs, keys)
		}
		for _, part := range s {
			collectKeys(part, defs, keys)
		}
	case []any:
		for _, part := range s {
			collectKeys(part, defs, keys)
		}
	}
}

// TestJSON wants every block of JSON to be JSON.
func TestJSON(t *testing.T) {
	t.Parallel()

	for _, b := range blocksOf(t, "json") {
		dec := json.NewDecoder(strings.NewReader(b.text))
		for dec.More() {
			var v any
			if err := dec.Decode(&v); err != nil {
				t.Errorf("%s:%d: %v", b.doc, b.line, err)
				break
			}
		}
	}
}
