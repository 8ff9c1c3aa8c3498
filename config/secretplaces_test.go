package config

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSecretsAndFilled takes the secrets out of a configuration, and puts them back.
func TestSecretsAndFilled(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, yaml, shown string
		want              map[string]string
	}{
		{"none", `{a: "***", n: 1.50}`, `{"a":"***","n":1.50}`, nil},
		{"one", `{token: "${TOKEN}"}`, `{"token":"***"}`, map[string]string{"/token": "TOKEN"}},
		{"in a text", `{token: "a ${TOKEN}"}`, `{"token":"a ${TOKEN}"}`, nil},
		{
			"deep", `{list: [x, {a/b: "${TOKEN}", "~": ["${OTHER}"]}], z: "***"}`, `{"list":["x",{"a/b":"***","~":["***"]}],"z":"***"}`,
			map[string]string{"/list/1/a~1b": "TOKEN", "/list/1/~0/0": "OTHER"},
		},
		{"large numbers", `{n: 12345678901234567890, t: "${TOKEN}"}`, `{"n":12345678901234567890,"t":"***"}`, map[string]string{"/t": "TOKEN"}},
	}
	values := map[string]string{"TOKEN": "s3cret", "OTHER": `a "quoted" one`}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			c, err := loader(values).Parse([]byte("version: 1\nplugins:\n  - {name: p, builtin: b, config: "+tt.yaml+"}\n"), "grapnel.yaml")
			if err != nil {
				t.Fatal(err)
			}
			p := &c.Plugins[0]
			if diff := cmp.Diff(p.Secrets(), tt.want); diff != "" {
				t.Errorf("secrets (-got +want):\n%s", diff)
			}
			if got := string(p.Shown()); got != tt.shown {
				t.Errorf("shown %s, want %s", got, tt.shown)
			}
			filled, err := Filled(p.Shown(), p.Secrets(), func(_, name string) (string, error) { return values[name], nil })
			if err != nil || string(filled) != string(p.Config) {
				t.Errorf("filled %s, %v; want %s", filled, err, p.Config)
			}
		})
	}
}

func TestFilledFails(t *testing.T) {
	t.Parallel()

	absent := errors.New("it is not set")
	at := ""
	_, err := Filled(json.RawMessage(`{"a":["***"]}`), map[string]string{"/a/0": "TOKEN"}, func(pointer, name string) (string, error) {
		at = pointer + " " + name
		return "", absent
	})
	if !errors.Is(err, absent) || at != "/a/0 TOKEN" {
		t.Errorf("error %v at %q", err, at)
	}
	if _, err := Filled(json.RawMessage(`{"a"`), map[string]string{"/a": "TOKEN"}, nil); err == nil {
		t.Error("no error for what is no JSON")
	}
}
