package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

const located = `version: 1
budgets:
  phases:
    turn.pre_prompt_compile: {require: [a.prompt]}
plugins:
  - name: a
    builtin: agentsdok
    subscriptions:
      a.prompt:
        when: 'turn.mod == "x"'
        after: [b.x]
      a.prompt.more: {timeout: 9s}
    config:
      preset: unknown
      list:
        - {a/b: 1, c~d: 2}
        - deep: [x, y]
      hooks:
        - id: h
  - {name: b}
`

func TestErrorAt(t *testing.T) {
	t.Parallel()

	c := parse(t, located)
	const refuses = `plugin "a" refuses its configuration: `
	tests := []struct{ name, plugin, pointer, want string }{
		{"member", "a", "/preset", "grapnel.yaml:14:15: " + refuses + "bad\n |       preset: unknown\n |               ^"},
		{"whole", "a", "", "grapnel.yaml:13:5: " + refuses + "bad\n |     config:\n |     ^"},
		{"escaped slash", "a", "/list/0/a~1b", "grapnel.yaml:16:17: " + refuses + "bad\n |         - {a/b: 1, c~d: 2}\n |                 ^"},
		{"block in a list", "a", "/hooks/0", "grapnel.yaml:19:11: " + refuses + "bad\n |         - id: h\n |           ^"},
		{"missing member", "a", "/hooks/0/ph~1ase", "grapnel.yaml:19:11: " + refuses + "ph~1ase: bad\n |         - id: h\n |           ^"},
		{"no configuration", "b", "/x", "grapnel.yaml:20:12: plugin \"b\" refuses its configuration: /x: bad\n |   - {name: b}\n |            ^"},
		{"no such plugin", "z", "/x", "grapnel.yaml: plugin \"z\" refuses its configuration: /x: bad"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			cause := &phases.ConfigError{Pointer: tt.pointer, Message: "bad"}
			err := c.ErrorAt(tt.plugin, cause)
			if diff := cmp.Diff(err.Error(), tt.want); diff != "" {
				t.Errorf("error (-got +want):\n%s", diff)
			}
			cause.AtKey = tt.pointer == "/preset"
			if err := c.ErrorAt(tt.plugin, cause); cause.AtKey && !strings.HasPrefix(err.Error(), "grapnel.yaml:14:7: ") {
				t.Errorf("not at the key: %v", err)
			}
			if got, ok := errors.AsType[*phases.ConfigError](err); !ok || got != cause {
				t.Error("the plugin's own error is not wrapped")
			}
		})
	}
}

func TestPlanError(t *testing.T) {
	t.Parallel()

	c := parse(t, located)
	tests := []struct{ name, plugin, field, want string }{
		{"field", "a", "subscriptions.a.prompt.when", "grapnel.yaml:10:16: bad\n |         when: 'turn.mod == \"x\"'\n |                ^"},
		{"longest id", "a", "subscriptions.a.prompt.more.timeout", "grapnel.yaml:12:32: bad\n |       a.prompt.more: {timeout: 9s}\n |                                ^"},
		{"field that a plugin proposed", "a", "subscriptions.a.prompt.phase", "grapnel.yaml:9:7: phase: bad\n |       a.prompt:\n |       ^"},
		{"subscription without override", "a", "subscriptions.a.other.when", "grapnel.yaml:8:5: a.other.when: bad\n |     subscriptions:\n |     ^"},
		{"plugin without overrides", "b", "subscriptions.b.x.when", "grapnel.yaml:20:12: plugin \"b\": subscriptions.b.x.when: bad\n |   - {name: b}\n |            ^"},
		{"plugin that is not in the file", "z", "subscriptions.z.x.when", "grapnel.yaml: plugin \"z\": subscriptions.z.x.when: bad"},
		{"value of the file", "", "plugins.0.builtin", "grapnel.yaml:7:14: bad\n |     builtin: agentsdok\n |              ^"},
		{"item of a list", "", "plugins.1", "grapnel.yaml:20:5: bad\n |   - {name: b}\n |     ^"},
		{"key with a dot", "", "budgets.phases.turn.pre_prompt_compile.require.0", "grapnel.yaml:4:41: bad\n |     turn.pre_prompt_compile: {require: [a.prompt]}\n |                                         ^"},
		{"index that is not there", "", "plugins.7.name", "grapnel.yaml:5:1: 7.name: bad\n | plugins:\n | ^"},
		{"not in the file", "", "store", "grapnel.yaml: store: bad"},
		{"the whole file", "", "", "grapnel.yaml: bad"},
		{"the file", "", "budgets.phases.turn.pre_prompt_compile.require", "grapnel.yaml:4:40: bad\n |     turn.pre_prompt_compile: {require: [a.prompt]}\n |                                        ^"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(c.PlanError(tt.plugin, tt.field, "bad", thirdLine{}).Error(), tt.want); diff != "" {
				t.Errorf("error (-got +want):\n%s", diff)
			}
		})
	}
}

// TestErrorsWithoutFile makes errors for a Config that code built.
func TestErrorsWithoutFile(t *testing.T) {
	t.Parallel()

	c := &Config{Version: 1, Plugins: []Plugin{{Name: "a"}}}
	for want, err := range map[string]error{
		`plugin "a" refuses its configuration: /x: bad`: c.ErrorAt("a", &phases.ConfigError{Pointer: "/x", Message: "bad"}),
		`plugin "a": subscriptions.a.x: bad`:            c.PlanError("a", "subscriptions.a.x", "bad", nil),
		"budgets: bad":                                  c.PlanError("", "budgets", "bad", nil),
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

func TestErrorsUnwrap(t *testing.T) {
	t.Parallel()

	_, err := Parse([]byte("version: 2\npin: x\n"), "f")
	if got, ok := errors.AsType[Errors](err); !ok || len(got) != 2 {
		t.Fatalf("got %v, want 2 mistakes", err)
	}
	if first, ok := errors.AsType[*Error](err); !ok || first.Line != 1 || first.Column != 10 || first.File != "f" {
		t.Errorf("got %+v", first)
	}
}

func TestManyMistakes(t *testing.T) {
	t.Parallel()

	_, err := Parse([]byte("version: 1\nplugins: ["+strings.Repeat("1,", 501)+"]"), "f")
	all, ok := errors.AsType[Errors](err)
	if !ok || len(all) != maxMistakes+1 {
		t.Fatalf("got %d mistakes, want %d", len(all), maxMistakes+1)
	}
	if got, want := all[maxMistakes].Error(), "f: and 401 more mistakes"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// thirdLine is a mistake in the third line of a text, as in a condition that a plugin proposes.
type thirdLine struct{}

func (thirdLine) Error() string     { return "3:1: bad" }
func (thirdLine) Plain() string     { return "bad" }
func (thirdLine) Place() (int, int) { return 3, 1 }
