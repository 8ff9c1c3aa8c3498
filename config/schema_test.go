package config

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/rogpeppe/go-internal/txtar"
)

// validator returns what checks YAML text against the schema, as an editor does.
func validator(t *testing.T) func(text string) error {
	t.Helper()

	var schema jsonschema.Schema
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) error {
		r := newReport("f", text)
		root := parseYAML(text, r)
		if root == nil {
			t.Fatalf("no YAML: %v", r.err())
		}
		var value any
		if err := json.Unmarshal(encode(root, plainText), &value); err != nil {
			t.Fatal(err)
		}
		return resolved.Validate(value)
	}
}

func TestSchemaAcceptsWhatParseAccepts(t *testing.T) {
	t.Parallel()

	validate := validator(t)
	for name, text := range map[string]string{
		"specification": section11, "template": string(Template()), "template in use": templateInUse(), "located": located, "secrets": withSecrets,
		"empty lists":  "version: 1\nbudgets:\nplugins:\nmanifest:\n",
		"empty plugin": "version: 1\nplugins: [{name: p, grants: , env: , limits: , subscriptions: {p.h: }, config: }]",
		"words":        "version: 1\npin: required\nplugins: [{name: p, command: x, sha256: '" + strings.Repeat("aB", 32) + "', sandbox: T1, reload: exclusive, subscriptions: {p.h: {phase: x.host.own, role: validate, on_failure: {crash: fail_closed}}}}]",
		"sandbox":      "version: 1\nplugins: [{name: p, sandbox: T2, tls: true, grants: {read: [/a, ./b, '*'], net: ['*', '*:443', 'listen:8080']}}]",
		"units":        "version: 1\nbudgets: {turn: {time: 1h2m3.5s}}\nplugins: [{name: p, limits: {memory: 5GB, start: 1.5s}}]",
	} {
		if err := validate(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"version: 1\nplugins: [{name: p, grants: , env: , limits: , subscriptions: {p.h: }, config: }]", "version: 1\nbudgets:\nplugins:\nmanifest:\n"} {
		parse(t, text)
	}
}

// TestSchemaRefusesMistakes validates the mistakes that one value shows by
// itself: all archives but those of rules that need several keys or code.
func TestSchemaRefusesMistakes(t *testing.T) {
	t.Parallel()

	beyond := map[string]bool{
		// The tree keeps the first of two keys.
		"double": true, "double-in-config": true,
		// These are no JSON, or the same in JSON.
		"leading-zero": true, "infinity": true, "long-exponent": true, "version-float": true,
		// The schema has no bounds for texts with units, nor exact grammar.
		"zero": true, "memory-zero": true, "overflow": true, "chars-huge": true,
		// An unknown phase of a host's own.
		"custom-phase": true,
	}
	validate := validator(t)
	for _, name := range []string{"keys", "values", "units"} {
		archive, err := txtar.ParseFile("testdata/mistakes/" + name + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if name, ok := strings.CutSuffix(f.Name, ".yaml"); ok && !beyond[name] {
				if validate(string(f.Data)) == nil {
					t.Errorf("%s: the schema accepts\n%s", name, f.Data)
				}
			}
		}
	}
	for _, text := range []string{
		"version: 1\nplugins: [{name: p, builtin: a, command: b}]",
		"version: 1\nplugins: [{name: p, args: [a]}]",
		"version: 1\nplugins: [{name: p, subscriptions: {p.h: {fallback: [{kind: decision, verdict: denied}]}}}]",
		"version: 1\nplugins: [{name: p, subscriptions: {p.h: {fallback: [{kind: noop, text: a}]}}}]",
		"version: 1\nplugins: [{name: p, subscriptions: {p.h: {fallback: [{verdict: deny}]}}}]",
		"version: 1\nplugins: [{name: p, subscriptions: {p.h: {on_failure: {default: never}}}}]",
		"version: 1\nplugins: [{name: p, config: [a]}]",
	} {
		if validate(text) == nil {
			t.Errorf("the schema accepts %s", text)
		}
	}
}

// TestEveryKeyHasARule walks all types of the file: each key has a description,
// and each row of the table belongs to a key.
func TestEveryKeyHasARule(t *testing.T) {
	t.Parallel()

	tokens := []string{"Tokens.tokens"}
	for _, f := range fieldsOf(reflect.TypeFor[Token]()) {
		tokens = append(tokens, f.owner+"."+f.key)
	}
	for _, file := range []struct {
		rules map[string]rule
		keys  []string
	}{{maps.Clone(keyRules), allKeys()}, {maps.Clone(tokenRules), tokens}} {
		for _, key := range file.keys {
			if !strings.HasSuffix(file.rules[key].doc, ".") {
				t.Errorf("%s has no description in a sentence: %q", key, file.rules[key].doc)
			}
		}
		for _, key := range file.keys {
			delete(file.rules, key)
		}
		for key := range file.rules {
			t.Errorf("%s is in the table and not in the file", key)
		}
	}
}

// allKeys lists "STRUCT.KEY" of all structs that a file can hold.
func allKeys() []string {
	var keys []string
	seen := map[reflect.Type]bool{}
	g := &generator{rules: keyRules, defs: map[string]*jsonschema.Schema{}}
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		if seen[t] || t.Kind() == reflect.Struct && g.special(t, rule{}) != nil {
			return
		}
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			if t.Elem().Kind() != reflect.Interface {
				walk(t.Elem())
			}
		case reflect.Struct:
			seen[t] = true
			for _, f := range fieldsOf(t) {
				keys = append(keys, f.owner+"."+f.key)
				walk(f.typ)
			}
		default:
		}
	}
	walk(reflect.TypeFor[Config]())
	return keys
}
