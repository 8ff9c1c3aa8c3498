//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/install"
)

// TestChangeOfSettings: a change that takes away, alters or switches off hooks of Grapnel is refused; others, and what
// install and uninstall do, are not.
func TestChangeOfSettings(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())

	h, dir := install.Lookup("claude-code"), t.TempDir()
	place := placesOf(h, dir)[0]
	wanted := wantedOf(t, h, "PreToolUse", "ConfigChange")
	put(t, place.Path, "{\n  \"model\": \"opus\"\n}\n")
	asked := func(source, path string) string {
		return refuseChange(&agent.Event{Host: "claude-code", Source: source, File: path, Dir: dir})
	}
	if why := asked("user_settings", place.Path); why != "" {
		t.Errorf("before the installation: %s", why)
	}
	installHooks(t, place, wanted)
	data := must(os.ReadFile(place.Path))(t)
	with, local := string(data), filepath.Join(filepath.Dir(place.Path), "settings.local.json")
	for _, tt := range []struct {
		name, text string
		refused    bool
	}{
		{"as installed", with, false},
		{"another model", strings.Replace(with, "opus", "haiku", 1), false},
		{"another hook", strings.Replace(with, `"PreToolUse": [`, `"PreToolUse": [{"hooks": [{"type": "command", "command": "mine"}]},`, 1), false},
		{"formatted anew", strings.ReplaceAll(with, "  ", "\t"), false},
		{"no hooks", "{}", true},
		{"empty", "", true},
		{"no JSON", with[:len(with)/2], true},
		{"one event less", strings.Replace(with, "PreToolUse\": [", "Stop\": [", 1), true},
		{"a matcher", strings.Replace(with, `"hooks": [`+"\n", `"matcher": "Never", "hooks": [`+"\n", 1), true},
		{"another program", strings.Replace(with, "grapnel-hook\"", "true\"", 1), true},
		{"not blocked on failure", strings.Replace(with, `"onFailure": "block"`, `"onFailure": "continue"`, 1), true},
		{"the event twice", strings.Replace(with, "\n  }\n}", ",\n    \"PreToolUse\": []\n  }\n}", 1), true},
		{"all hooks twice", strings.TrimSuffix(strings.TrimSpace(with), "}") + `, "hooks": {}}`, true},
		{"switched off", strings.Replace(with, `"model"`, `"disableAllHooks": true, "model"`, 1), true},
	} {
		if tt.text == with && tt.name != "as installed" {
			t.Fatalf("%s changes nothing", tt.name)
		}
		proposed := filepath.Join(filepath.Dir(place.Path), "settings.json.proposed-0123abcd")
		for _, path := range []string{place.Path, proposed} {
			put(t, path, tt.text)
			if why := asked("user_settings", path); (why != "") != tt.refused {
				t.Errorf("%s: %q", tt.name, why)
			}
		}
	}
	if err := os.Remove(place.Path); err != nil {
		t.Fatal(err)
	}
	if asked("user_settings", place.Path) == "" {
		t.Error("the file may be removed")
	}
	put(t, local, `{"disableAllHooks": true}`)
	if asked("local_settings", local) == "" || asked("policy_settings", local) != "" || asked("skills", local) != "" {
		t.Error("other settings are judged otherwise")
	}
	for _, text := range []string{ // Claude Code 2.1.332 takes the last of a name that is there twice
		`{"disableAllHooks": false, "disableAllHooks": true}`, `{"disableAllHooks": true, "env": {"A": "1", "A": "2"}}`,
	} {
		if put(t, local, text); asked("local_settings", local) == "" {
			t.Errorf("local settings may say %s", text)
		}
	}
	for _, name := range []string{"HOME", "XDG_RUNTIME_DIR", "GRAPNEL_CONFIG", "CLAUDE_CODE_SIMPLE"} { // the hooks would find another gateway, or not be run
		if put(t, place.Path, strings.Replace(with, `"model"`, `"env": {"`+name+`": "/tmp/x"}, "model"`, 1)); asked("user_settings", place.Path) == "" {
			t.Errorf("the user's settings may set %s", name)
		}
	}
	if put(t, local, `{"env": {"GRAPNEL_CONFIG": "x.yaml"}}`); asked("local_settings", local) == "" {
		t.Error("local settings may set GRAPNEL_CONFIG")
	}
	put(t, place.Path, with)
	installHooks(t, place, &install.Wanted{})
	if why := asked("user_settings", place.Path); why != "" {
		t.Errorf("after uninstalling: %s", why)
	}
}

// TestChangeBehindLink: a directory that is a link, such as one of dotfiles, hides no installation, not even one that made
// the file.
func TestChangeBehindLink(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())

	h, dir := install.Lookup("claude-code"), t.TempDir()
	place := placesOf(h, dir)[0]
	if err := os.Symlink(t.TempDir(), filepath.Dir(place.Path)); err != nil {
		t.Fatal(err)
	}
	installHooks(t, place, wantedOf(t, h, "PreToolUse", "ConfigChange"))
	put(t, place.Path, "{}")
	if why := refuseChange(&agent.Event{Host: "claude-code", Source: "user_settings", File: place.Path, Dir: dir}); why == "" {
		t.Error("the hooks may be removed")
	}
}
