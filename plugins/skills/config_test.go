package skills

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/internal/skillset"
	"github.com/grapnelhq/grapnel/phases"
)

func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	many := `{"directories":["` + strings.Join(strings.Split(strings.Repeat("x", maxConfigDirectories+1), ""), `/a","b/`) + `"]}`
	tests := []struct{ name, in, pointer, message string }{
		{"no object", `[]`, "", "cannot unmarshal"},
		{"unknown key", `{"directory":["x"]}`, "", `unknown field "directory"`},
		{"parent", `{"directories":["a","../b"]}`, "/directories/1", "neither a path below the working directory"},
		{"working directory itself", `{"directories":["."]}`, "/directories/0", "neither a path below the working directory"},
		{"empty directory", `{"directories":[""]}`, "/directories/0", "neither a path below the working directory"},
		{"out of home", `{"directories":["~/../x"]}`, "/directories/0", "neither a path below the working directory"},
		{"NUL", `{"directories":["a\u0000"]}`, "/directories/0", "neither a path below the working directory"},
		{"twice", `{"directories":["a","b","a"]}`, "/directories/2", `"a" is there twice`},
		{"too many", many, "/directories", "at most 16"},
		{"home is unknown", `{"directories":["a","~/skills"]}`, "/directories/1", "env: {pass: [HOME]}"},
		{"marker with a directory", `{"markers":["a/b"]}`, "/markers/0", "not a plain file name"},
		{"slug", `{"include":["ok","No"]}`, "/include/1", "not a skill's slug"},
		{"wildcard inside", `{"exclude":["a*b"]}`, "/exclude/0", "not a skill's slug"},
		{"fewer than none", `{"max_active_bodies":-1}`, "/max_active_bodies", "less than 0"},
		{"too few characters", `{"max_chars":499}`, "/max_chars", "less than 500"},
		{"text as a number", `{"max_chars":"9"}`, "/max_chars", "want a whole number, got a text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := newPlugin(environment(nil), later).Configure(t.Context(), &phases.Configuration{Config: json.RawMessage(tt.in)})
			got, ok := errors.AsType[*phases.ConfigError](err)
			if !ok || got.Pointer != tt.pointer || !strings.Contains(got.Message, tt.message) {
				t.Errorf("got %+v, want %s: %s", err, tt.pointer, tt.message)
			}
		})
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
			if diff := cmp.Diff(got, tt.want, cmpopts.IgnoreFields(skillset.Options{}, "Keep"), cmpopts.EquateEmpty()); diff != "" || err != nil {
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

// TestSchema compares the schema with the Go type, its defaults with those in
// force, and its verdicts with those of the decoder.
func TestSchema(t *testing.T) {
	t.Parallel()
	var schema jsonschema.Schema
	if err := json.Unmarshal(configSchema, &schema); err != nil {
		t.Fatal(err)
	}
	var names, known []string
	for f := range reflect.TypeFor[config]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	for name := range schema.Properties {
		known = append(known, name)
	}
	slices.Sort(names)
	slices.Sort(known)
	if diff := cmp.Diff(known, names); diff != "" {
		t.Errorf("keys (-schema +type)\n%s", diff)
	}
	c, err := parseConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"directories": c.Directories, "markers": c.Markers, "exclude": []string{}, "max_active_bodies": c.MaxActiveBodies, "max_chars": c.MaxChars, "send_again": false,
	} {
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var wantValue, gotValue any
		if json.Unmarshal(data, &wantValue) != nil || json.Unmarshal(schema.Properties[key].Default, &gotValue) != nil || !cmp.Equal(gotValue, wantValue) {
			t.Errorf("%s: the schema says %s, in force is %s", key, schema.Properties[key].Default, data)
		}
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for in, ok := range map[string]bool{
		`{}`: true, `{"directories":["a","/b"],"markers":[],"include":["a-b*","*"],"exclude":[],"max_active_bodies":0,"max_chars":500}`: true,
		`[]`: false, `{"x":1}`: false, `{"directories":["a","a"]}`: false, `{"directories":[""]}`: false, `{"include":["A"]}`: false,
		`{"max_active_bodies":-1}`: false, `{"max_chars":499}`: false, `{"max_chars":1.5}`: false,
	} {
		var value any
		if err := json.Unmarshal([]byte(in), &value); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(value); (err == nil) != ok {
			t.Errorf("the schema says of %s: %v", in, err)
		}
		if _, err := parseConfig([]byte(in)); (err == nil) != ok {
			t.Errorf("parseConfig says of %s: %v", in, err)
		}
	}
}
