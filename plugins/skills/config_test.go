package skills

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/internal/configschema"
	"github.com/grapnelhq/grapnel/internal/skillset"
	"github.com/grapnelhq/grapnel/phases"
)

// TestConfigMistakes: what the schema accepts and the plugin does not, and the other way round.
func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"directory":["x"]}`:                    "/directory: unknown key",
		`{"directories":["a","../b"]}`:           "/directories/1: \"../b\" is neither a path below the working directory",
		`{"directories":["."]}`:                  "/directories/0: \".\" is neither",
		`{"directories":["~/../x"]}`:             "/directories/0: \"~/../x\" is neither",
		`{"directories":["a\u0000"]}`:            "/directories/0: \"a\\x00\" is neither",
		`{"directories":["a","b","a"]}`:          "/directories: ",
		`{"directories":["a","~/skills"]}`:       "/directories/1: \"~/skills\" needs the variable HOME: pass it on with env: {pass: [HOME]}",
		`{"markers":["a/b"]}`:                    "/markers/0: \"a/b\" is not a plain file name",
		`{"include":["ok","a*","*","a-*","No"]}`: "/include/4: \"No\" is not of the form",
		`{"exclude":["a*b"]}`:                    "/exclude/0: \"a*b\" is not of the form",
		`{"exclude":["a--b"]}`:                   "/exclude/0: \"a--b\" is not of the form",
		`{"max_active_bodies":-1}`:               "/max_active_bodies: want at least 0",
		`{"max_chars":499}`:                      "/max_chars: want at least 500",
	} {
		err := configschema.Check(configSchema, json.RawMessage(in))
		if err == nil {
			_, err = newPlugin(environment(nil), later).Configure(t.Context(), &phases.Configuration{Config: json.RawMessage(in)})
		}
		got, ok := errors.AsType[*phases.ConfigError](err)
		if !ok || !strings.HasPrefix(got.Pointer+": "+got.Message, want) {
			t.Errorf("%s: got %+v, want %s", in, err, want)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	dirs, markers := []string{".agents/skills", ".claude/skills"}, []string{".git", ".jj", ".hg"}
	tests := []struct {
		name, in      string
		env           map[string]string
		want          skillset.Options
		bodies, chars int
	}{
		{"nothing", "", nil, skillset.Options{Directories: dirs, Markers: markers}, 3, 12_000},
		{"home", "{}", map[string]string{"HOME": "/h/"}, skillset.Options{Directories: dirs, Markers: markers, Home: "/h"}, 3, 12_000},
		{"odd home", "{}", map[string]string{"HOME": "h"}, skillset.Options{Directories: dirs, Markers: markers}, 3, 12_000},
		{
			"everything", `{"directories":["x/y","~/s","/abs"],"markers":[],"include":["a*"],"exclude":["ab"],"max_active_bodies":0,"max_chars":500}`,
			map[string]string{"HOME": "/h"},
			skillset.Options{Directories: []string{"x/y", "/h/s", "/abs"}, Markers: []string{}, Home: "/h"},
			0, 500,
		},
		{"no directories", `{"directories":[]}`, nil, skillset.Options{Directories: []string{}, Markers: markers}, 3, 12_000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := parseConfig(json.RawMessage(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.options(environment(tt.env))
			if diff := cmp.Diff(got, tt.want, cmpopts.IgnoreFields(skillset.Options{}, "Keep"), cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(skillset.Options{})); diff != "" || err != nil {
				t.Errorf("%v (-got +want)\n%s", err, diff)
			}
			if c.MaxActiveBodies != tt.bodies || c.MaxChars != tt.chars {
				t.Errorf("limits %d and %d, want %d and %d", c.MaxActiveBodies, c.MaxChars, tt.bodies, tt.chars)
			}
		})
	}
}

func TestKeep(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		want string
	}{
		{`{}`, "a ab b"},
		{`{"include":["a*"]}`, "a ab"},
		{`{"include":["a*"],"exclude":["a"]}`, "ab"},
		{`{"include":[]}`, ""},
		{`{"exclude":["*"]}`, ""},
	} {
		c, err := parseConfig(json.RawMessage(tt.in))
		if err != nil {
			t.Fatal(err)
		}
		kept := slices.DeleteFunc([]string{"a", "ab", "b"}, func(slug string) bool { return !c.keep(slug) })
		if got := strings.Join(kept, " "); got != tt.want {
			t.Errorf("%s keeps %q, want %q", tt.in, got, tt.want)
		}
	}
}

// TestSchemaDefaults compares the schema's defaults with those in force.
func TestSchemaDefaults(t *testing.T) {
	t.Parallel()
	var schema jsonschema.Schema
	if err := json.Unmarshal(configSchema, &schema); err != nil {
		t.Fatal(err)
	}
	c, err := parseConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]any{"directories": c.Directories, "markers": c.Markers, "max_active_bodies": c.MaxActiveBodies, "max_chars": c.MaxChars} {
		want, err := json.Marshal(value)
		if got := strings.ReplaceAll(string(schema.Properties[key].Default), ", ", ","); err != nil || got != string(want) {
			t.Errorf("%s: the schema says %s, in force is %s", key, got, want)
		}
	}
}
