package memory

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/phases"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	home := map[string]string{"HOME": "/repo/home"}
	standard := settings{
		DSN: "sqlite:/repo/home/.local/share/grapnel/plugins/memory/memory.db", DefaultPolicy: turnpolicy.Normal, Extraction: readerAuto,
	}
	with := func(change func(s *settings)) settings {
		s := standard
		change(&s)
		return s
	}
	tests := []struct {
		name, config string
		env          map[string]string
		want         settings
	}{
		{"nothing", ``, home, standard},
		{"empty", `{}`, home, standard},
		{
			"data folder", `{}`,
			map[string]string{"HOME": "/repo/home", "XDG_DATA_HOME": "/data"},
			with(func(s *settings) { s.DSN = "sqlite:/data/grapnel/plugins/memory/memory.db" }),
		},
		{"relative data folder", `{}`, map[string]string{"HOME": "/repo/home", "XDG_DATA_HOME": "data"}, standard},
		{"file", `{"dsn":"sqlite:/x/m.db"}`, nil, with(func(s *settings) { s.DSN = "sqlite:/x/m.db" })},
		{"below home", `{"dsn":"sqlite:~/m.db"}`, home, with(func(s *settings) { s.DSN = "sqlite:/repo/home/m.db" })},
		{"server", `{"dsn":"postgres://h/m"}`, nil, with(func(s *settings) { s.DSN = "postgres://h/m" })},
		{
			"all", `{"default_policy":"no_save","extraction":"model","user_scope_everywhere":true}`, home,
			with(func(s *settings) {
				s.DefaultPolicy, s.Extraction, s.UserScopeEverywhere = turnpolicy.NoSave, readerModel, true
			}),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseSettings(json.RawMessage(tt.config), environment(tt.env))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

// TestMistakesOfConfig: each is found with its place.
func TestMistakesOfConfig(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, config, pointer, want string
		env                         map[string]string
	}{
		{"unknown key", `{"dns":"x"}`, "", `unknown field "dns"`, nil},
		{"no object", `[]`, "", "cannot unmarshal", nil},
		{"wrong type", `{"dsn":7}`, "/dsn", "want a text, got", nil},
		{"relative file", `{"dsn":"sqlite:m.db"}`, "/dsn", "neither absolute nor below", nil},
		{"NUL", `{"dsn":"sqlite:/m\u0000.db"}`, "/dsn", "NUL", nil},
		{"default", `{"default_policy":"deny"}`, "/default_policy", `"deny" is not one of`, nil},
		{"extraction", `{"extraction":"oracle"}`, "/extraction", `"oracle" is not one of`, nil},
		{"no home", `{}`, "/dsn", "pass HOME on", nil},
		{"no home for a path below it", `{"dsn":"sqlite:~/m.db"}`, "/dsn", "pass HOME on", map[string]string{"XDG_DATA_HOME": "/data"}},
		{"relative home", `{}`, "/dsn", "pass HOME on", map[string]string{"HOME": "home"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parseSettings(json.RawMessage(tt.config), environment(tt.env))
			wrong, ok := errors.AsType[*phases.ConfigError](err)
			if !ok || wrong.Pointer != tt.pointer || !strings.Contains(wrong.Message, tt.want) {
				t.Errorf("error %v, want %q at %q", err, tt.want, tt.pointer)
			}
		})
	}
}
