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

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/skills/skillset"
)

func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	many := `{"folders":["` + strings.Join(strings.Split(strings.Repeat("x", maxConfigFolders+1), ""), `/a","b/`) + `"]}`
	tests := []struct{ name, in, pointer, message string }{
		{"no object", `[]`, "", "cannot unmarshal"},
		{"unknown key", `{"folder":["x"]}`, "", `unknown field "folder"`},
		{"parent", `{"folders":["a","../b"]}`, "/folders/1", "neither a path below the working folder"},
		{"working folder itself", `{"folders":["."]}`, "/folders/0", "neither a path below the working folder"},
		{"empty folder", `{"folders":[""]}`, "/folders/0", "neither a path below the working folder"},
		{"out of home", `{"folders":["~/../x"]}`, "/folders/0", "neither a path below the working folder"},
		{"NUL", `{"folders":["a\u0000"]}`, "/folders/0", "neither a path below the working folder"},
		{"twice", `{"folders":["a","b","a"]}`, "/folders/2", `"a" is there twice`},
		{"too many", many, "/folders", "at most 16"},
		{"home is unknown", `{"folders":["a","~/skills"]}`, "/folders/1", "env: {pass: [HOME]}"},
		{"marker with a folder", `{"markers":["a/b"]}`, "/markers/0", "not a plain file name"},
		{"slug", `{"include":["ok","No"]}`, "/include/1", "not a skill's slug"},
		{"wildcard inside", `{"exclude":["a*b"]}`, "/exclude/0", "not a skill's slug"},
		{"fewer than none", `{"max_active_bodies":-1}`, "/max_active_bodies", "less than 0"},
		{"too few characters", `{"max_chars":499}`, "/max_chars", "less than 500"},
		{"text as a number", `{"max_chars":"9"}`, "/max_chars", "want int, got string"},
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

func TestSettings(t *testing.T) {
	t.Parallel()
	defaults := Settings{
		Options:         skillset.Options{Folders: []string{".agents/skills", ".claude/skills"}, Markers: []string{".git", ".jj", ".hg"}},
		MaxActiveBodies: 3, MaxChars: 12_000,
	}
	set := func(change func(*Settings)) Settings {
		s := defaults
		change(&s)
		return s
	}
	tests := []struct {
		name, in string
		env      map[string]string
		want     Settings
	}{
		{"nothing", "", nil, defaults},
		{"home", "{}", map[string]string{"HOME": "/h/"}, set(func(s *Settings) { s.Options.Home = "/h" })},
		{"odd home", "{}", map[string]string{"HOME": "h"}, defaults},
		{
			"everything", `{"folders":["x/y","~/s","/abs"],"markers":[],"include":["a*"],"exclude":["ab"],"max_active_bodies":0,"max_chars":500}`,
			map[string]string{"HOME": "/h"},
			Settings{Options: skillset.Options{Folders: []string{"x/y", "/h/s", "/abs"}, Markers: []string{}, Home: "/h"}, MaxChars: 500},
		},
		{"no folders", `{"folders":[]}`, nil, set(func(s *Settings) { s.Options.Folders = []string{} })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := ParseConfig(json.RawMessage(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Settings(environment(tt.env))
			if diff := cmp.Diff(got, tt.want, cmpopts.IgnoreFields(skillset.Options{}, "Keep")); diff != "" || err != nil {
				t.Errorf("%v (-got +want)\n%s", err, diff)
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
		c, err := ParseConfig(json.RawMessage(tt.in))
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
	for f := range reflect.TypeFor[Config]().Fields() {
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
	s, err := (&Config{}).Settings(environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"folders": s.Options.Folders, "markers": s.Options.Markers, "exclude": []string{}, "max_active_bodies": s.MaxActiveBodies, "max_chars": s.MaxChars,
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
		`{}`: true, `{"folders":["a","/b"],"markers":[],"include":["a-b*","*"],"exclude":[],"max_active_bodies":0,"max_chars":500}`: true,
		`[]`: false, `{"x":1}`: false, `{"folders":["a","a"]}`: false, `{"folders":[""]}`: false, `{"include":["A"]}`: false,
		`{"max_active_bodies":-1}`: false, `{"max_chars":499}`: false, `{"max_chars":1.5}`: false,
	} {
		var value any
		if err := json.Unmarshal([]byte(in), &value); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(value); (err == nil) != ok {
			t.Errorf("the schema says of %s: %v", in, err)
		}
		if _, err := ParseConfig([]byte(in)); (err == nil) != ok {
			t.Errorf("ParseConfig says of %s: %v", in, err)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"folders":["~/x"],"include":["a*"],"max_chars":900}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig(data)
		if err != nil {
			if _, ok := errors.AsType[*phases.ConfigError](err); !ok {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		out, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseConfig(out); err != nil {
			t.Fatalf("%s is refused: %v", out, err)
		}
		s, err := c.Settings(environment(map[string]string{"HOME": "/h"}))
		if err != nil || slices.ContainsFunc(s.Options.Folders, func(f string) bool { return strings.HasPrefix(f, "~/") }) {
			t.Fatalf("%v, %q", err, s.Options.Folders)
		}
	})
}
