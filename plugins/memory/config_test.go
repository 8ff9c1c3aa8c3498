package memory

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/phases"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	home := map[string]string{"HOME": "/repo/home"}
	const below = "/grapnel/plugins/memory/memory.db"
	for _, tt := range []struct {
		config string
		env    map[string]string
		want   string
	}{
		{``, home, "sqlite:/repo/home/.local/share" + below},
		{`{}`, home, "sqlite:/repo/home/.local/share" + below},
		{`{}`, map[string]string{"HOME": "/repo/home", "XDG_DATA_HOME": "/data"}, "sqlite:/data" + below},
		{`{}`, map[string]string{"HOME": "/repo/home", "XDG_DATA_HOME": "data"}, "sqlite:/repo/home/.local/share" + below},
		{`{"dsn":"sqlite:/x/m.db"}`, nil, "sqlite:/x/m.db"},
		{`{"dsn":"sqlite:~/m.db"}`, home, "sqlite:/repo/home/m.db"},
		{`{"dsn":"postgres://h/m"}`, nil, "postgres://h/m"},
	} {
		got, err := parseSettings(json.RawMessage(tt.config), environment(tt.env))
		if want := (settings{DSN: tt.want, DefaultPolicy: turnpolicy.Normal, Extraction: readerAuto}); got != want || err != nil {
			t.Errorf("%s: %+v, %v, want %+v", tt.config, got, err, want)
		}
	}
	got, err := parseSettings(json.RawMessage(`{"dsn":"x","default_policy":"no_save","extraction":"model","user_scope_everywhere":true}`), environment(nil))
	if got != (settings{"x", turnpolicy.NoSave, readerModel, true}) || err != nil {
		t.Errorf("all: %+v, %v", got, err)
	}
}

// TestMistakesOfConfig: each is found with its place.
func TestMistakesOfConfig(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		config, pointer, want string
		env                   map[string]string
	}{
		{`{"dns":"x"}`, "", `unknown field "dns"`, nil},
		{`{"dsn":7}`, "/dsn", "want a text, got", nil},
		{`{"dsn":"sqlite:m.db"}`, "/dsn", "neither absolute nor below", nil},
		{`{"dsn":"sqlite:/m\u0000.db"}`, "/dsn", "NUL", nil},
		{`{"default_policy":"deny"}`, "/default_policy", `"deny" is not one of`, nil},
		{`{"extraction":"oracle"}`, "/extraction", `"oracle" is not one of`, nil},
		{`{}`, "/dsn", "pass HOME on", nil},
		{`{"dsn":"sqlite:~/m.db"}`, "/dsn", "pass HOME on", map[string]string{"XDG_DATA_HOME": "/data"}},
		{`{}`, "/dsn", "pass HOME on", map[string]string{"HOME": "home"}},
	} {
		_, err := parseSettings(json.RawMessage(tt.config), environment(tt.env))
		wrong, ok := errors.AsType[*phases.ConfigError](err)
		if !ok || wrong.Pointer != tt.pointer || !strings.Contains(wrong.Message, tt.want) {
			t.Errorf("%s: error %v, want %q at %q", tt.config, err, tt.want, tt.pointer)
		}
	}
}
