package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const withSecrets = `version: 1
store: ${TOKEN_DSN}
manifest: {fingerprint_key: "${TOKEN}", chain_key: "${TOKEN}"}
plugins:
  - name: p
    command: x
    args: ['${TOKEN}', 'a${TOKEN}']
    env: {set: {A: '${TOKEN}', B: 'x${TOKEN}', C: plain}}
    config:
      z: ['${TOKEN}', ' ${TOKEN}', '${TOKEN-x}', '${}', '$TOKEN']
      '${TOKEN}': {n: 1.10}
`

func secretConfig(t *testing.T) *Config {
	t.Helper()

	c, err := loader(map[string]string{"TOKEN": "s3c\"ret", "TOKEN_DSN": "postgres://s3c\"ret@h/d"}).Parse([]byte(withSecrets), "grapnel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSecretsAreFilledIn(t *testing.T) {
	t.Parallel()

	c := secretConfig(t)
	if want := (Secret{Value: "postgres://s3c\"ret@h/d", FromEnv: "TOKEN_DSN"}); c.Store != want {
		t.Errorf("store: got %#v", c.Store)
	}
	wantEnv := map[string]Secret{"A": {"s3c\"ret", "TOKEN"}, "B": {"x${TOKEN}", ""}, "C": {"plain", ""}}
	if diff := cmp.Diff(c.Plugins[0].Env.Set, wantEnv); diff != "" {
		t.Errorf("env (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(c.Plugins[0].Args, []string{"${TOKEN}", "a${TOKEN}"}); diff != "" {
		t.Errorf("args are no secrets (-got +want):\n%s", diff)
	}
	want := `{"${TOKEN}":{"n":1.10},"z":["s3c\"ret"," ${TOKEN}","${TOKEN-x}","${}","$TOKEN"]}`
	if diff := cmp.Diff(string(c.Plugins[0].Config), want); diff != "" {
		t.Errorf("config (-got +want):\n%s", diff)
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	t.Parallel()

	c := secretConfig(t)
	out, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"version":1,"plugins":[{"name":"p","command":"x","args":["${TOKEN}","a${TOKEN}"],"env":{"set":{"A":"***","B":"x${TOKEN}","C":"plain"}},` +
		`"config":{"${TOKEN}":{"n":1.10},"z":["***"," ${TOKEN}","${TOKEN-x}","${}","$TOKEN"]}}],"store":"***","manifest":{"fingerprint_key":"***","chain_key":"***"}}`
	if diff := cmp.Diff(string(out), want); diff != "" {
		t.Errorf("JSON (-got +want):\n%s", diff)
	}
	var logged bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)} {
		slog.New(handler).Info("loaded", "config", c, "plugin", c.Plugins[0], "plugins", c.Plugins, "store", c.Store)
	}
	for name, text := range map[string]string{
		"%v": fmt.Sprintf("%v", c), "%+v": fmt.Sprintf("%+v", *c), "%#v": fmt.Sprintf("%#v", *c), "%s": fmt.Sprintf("%s", c.Plugins),
		"log": logged.String(), "secret": fmt.Sprintf("%v %+v %#v %s %q", c.Store, c.Store, c.Store, c.Store, c.Store),
	} {
		if strings.Contains(text, "s3c") || strings.Contains(text, "115 51 99") {
			t.Errorf("%s shows a secret: %s", name, text)
		}
	}
}

// TestSameDeclaration pins what a reload compares: the order of keys and the
// place in the file say nothing, the value of a secret does.
func TestSameDeclaration(t *testing.T) {
	t.Parallel()

	declare := func(text, token string) Plugin {
		c, err := loader(map[string]string{"T": token}).Parse([]byte(text), "f")
		if err != nil {
			t.Fatal(err)
		}
		return c.Plugins[0]
	}
	first := declare("version: 1\nplugins: [{name: p, config: {a: 1, b: '${T}'}}]", "x")
	moved := declare("version: 1\n\nplugins:\n  - config: {b: \"${T}\", a: 1}\n    name: p\n", "x")
	if !reflect.DeepEqual(first, moved) {
		t.Errorf("got different declarations:\n%v\n%v", first, moved)
	}
	if other := declare("version: 1\nplugins: [{name: p, config: {a: 1, b: '${T}'}}]", "y"); reflect.DeepEqual(first, other) {
		t.Error("another secret is the same declaration")
	}
}
