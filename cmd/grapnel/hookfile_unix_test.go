//go:build unix

package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/install"
)

// hookTexts are files as people have them, which an installation and its end must leave as they were.
var hookTexts = map[string]string{
	"empty":            "",
	"blank":            " \n\n",
	"an empty object":  "{}",
	"empty hooks":      "{\n  \"hooks\": {}\n}\n",
	"an empty list":    "{\n\t\"hooks\" : {\"PreToolUse\":[ ], \"Stop\": [\n\n]}}",
	"no end of line":   "{\n  \"model\": \"opus\"\n}",
	"other hooks":      "{\n   \"hooks\": {\n     \"PreToolUse\": [ {\"matcher\": \"Bash\",\"hooks\": [ {\"type\": \"command\", \"command\": \"guard\"} ] } ]\n },\n\n   \"z\": 1, \"a\": 2 }\n",
	"Windows":          "\ufeff{\r\n\t\"a\": 1\r\n}\r\n",
	"comments":         "{\n  // one\n  \"a\": 1, // two\n  /* three */\n}\n// four\n",
	"a wrapper":        "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"env X=1 grapnel-hook codex\"}]}\n    ]\n  }\n}\n",
	"the same letters": "{\"hooks\":{\"PreToolUse\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"a-hook\",\"args\":[\"PreToolUse\"]}]}]}}",
}

// wantedOf is what a host is to have, with an MCP server.
func wantedOf(t *testing.T, h *install.Host, events ...string) *install.Wanted {
	t.Helper()
	list := h.Entries(&agent.Command{Program: "/bin/grapnel-hook"}, events)
	return &install.Wanted{Entries: list, Server: h.Server("/bin/grapnel", []string{"mcp", "--socket", "/s"}, os.Getenv)}
}

// placesOf are the files of a host, in a directory.
func placesOf(h *install.Host, dir string) []install.Place {
	return h.Places(h.Scopes()[0], dir, dir, func(string) string { return "" })
}

// installHooks installs what is wanted into a file, or with nothing uninstalls.
func installHooks(t *testing.T, place install.Place, w *install.Wanted) *hookFile {
	t.Helper()
	f, err := openHookFile(place, agent.User)
	if err == nil {
		err = f.install(w)
	}
	if err == nil {
		err = errors.Join(f.mayReplace(), f.write())
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestHookFiles: a file that is installed into, twice and with other events, and uninstalled from, is what it was.
func TestHookFiles(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())

	for _, name := range agents.Names() {
		h := install.Lookup(name)
		if h.Plugin != "" {
			continue
		}
		for i := range placesOf(h, "/") {
			if strings.Contains(placesOf(h, "/")[i].Path, "/skills/") {
				continue // the files of the mod are ours as a whole: see install_mod.txtar
			}
			for what, text := range hookTexts {
				if strings.HasSuffix(placesOf(h, "/")[i].Path, ".toml") {
					if text = tableTexts[what]; text == "" {
						continue
					}
				}
				backAndForth(t, h, name+", "+what, text, i)
			}
		}
	}
	left, err := filepath.Glob(filepath.Join(os.Getenv("XDG_DATA_HOME"), "grapnel", "installed", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("records are left: %v, %v", left, err)
	}
}

// tableTexts are files of Codex's.
var tableTexts = map[string]string{
	"blank":          "\n\n",
	"other hooks":    "model = \"x\" # mine\n\n[mcp_servers.files]\ncommand = \"files\"\n\n  [mcp_servers.files.env]\n  A = \"[b]\"\n",
	"no end of line": "[features]\nhooks = true",
	"Windows":        "a = 1\r\n\r\n[b]\r\nc = 2\r\n",
	"comments":       "# one\n[a] # two\nb = [\n  [1], # three\n]\n\n# four\n",
}

// backAndForth installs into the i-th file of a host and uninstalls again.
func backAndForth(t *testing.T, h *install.Host, name, text string, i int) {
	t.Helper()
	few, more, nothing := wantedOf(t, h, "PreToolUse"), wantedOf(t, h, "SessionStart", "PreToolUse", "Stop"), &install.Wanted{}
	more.Server.Args = append(more.Server.Args, "--config", "/c.yaml")
	dir := t.TempDir()
	place := placesOf(h, dir)[i]
	if err := errors.Join(os.MkdirAll(filepath.Dir(place.Path), 0o700), os.WriteFile(place.Path, []byte(text), 0o600), os.Chmod(place.Path, 0o640)); err != nil {
		t.Fatal(err)
	}
	if f := installHooks(t, place, few); !f.changed() {
		t.Errorf("%s: nothing was installed", name)
	}
	if f := installHooks(t, place, few); f.changed() {
		t.Errorf("%s: installing twice changes\n%s\nto\n%s", name, f.data, f.after)
	}
	installHooks(t, place, more)
	installHooks(t, place, nothing)
	got, err := os.ReadFile(place.Path)
	if err != nil || string(got) != text {
		t.Errorf("%s: %v, it was\n%q and is\n%q", name, err, text, got)
	}
	if info, err := os.Stat(place.Path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%s: the mode is %v, %v", name, info.Mode(), err)
	}
	if f := installHooks(t, place, nothing); f.changed() {
		t.Errorf("%s: uninstalling twice changes something", name)
	}
	missing := placesOf(h, filepath.Join(dir, "new"))[i]
	installHooks(t, missing, more)
	installHooks(t, missing, nothing)
	if _, err := os.Lstat(missing.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: a file that was not there is there: %v", name, err)
	}
}

// TestHookFilesChanged: what others change between an installation and its end stays.
func TestHookFilesChanged(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())

	h := install.Lookup("claude-code")
	place := placesOf(h, t.TempDir())[0]
	path, wanted := place.Path, wantedOf(t, h, "PreToolUse", "Stop")
	put(t, path, "{\n  \"model\": \"opus\"\n}\n")
	installHooks(t, place, wanted)
	edit := func(from, to string) {
		data := must(os.ReadFile(path))(t)
		put(t, path, strings.Replace(string(data), from, to, 1))
	}
	edit("opus", "haiku")
	if f := installHooks(t, place, wanted); f.changed() {
		t.Errorf("the entries are there, and it changes\n%s\nto\n%s", f.data, f.after)
	}
	edit(`"Stop": [`, `"Stop": [{"hooks": [{"type": "command", "command": "mine"}]},`)
	installHooks(t, place, &install.Wanted{})
	got, err := os.ReadFile(path)
	if want := "{\n  \"model\": \"haiku\",\n  \"hooks\": {\n    \"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}\n    ]\n  }\n}\n"; err != nil || string(got) != want {
		t.Errorf("%v:\n%s\nwant\n%s", err, got, want)
	}
}

// TestHookFilesLinked: a file behind a link is changed where it is, and the link stays; what cannot or must not be
// replaced is refused with the reason, and untouched.
func TestHookFilesLinked(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())

	h, dir := install.Lookup("claude-code"), t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	plant(t, dir, map[string]string{
		"dotfiles/settings.json": "{}\n", "readonly": "{}\n", "broken": "{\n  \"a\": 1,\n  oops\n}\n",
		"settings.json": "-> dotfiles/settings.json", "dangling": "-> nowhere",
	})
	if err := errors.Join(os.Chmod(in("readonly"), 0o444), os.Mkdir(in("directory"), 0o700)); err != nil {
		t.Fatal(err)
	}
	at := func(name string) install.Place {
		place := placesOf(h, dir)[0]
		place.Path = in(name)
		return place
	}
	wanted := wantedOf(t, h, "PreToolUse")
	installHooks(t, at("settings.json"), wanted)
	if data, err := os.ReadFile(in("dotfiles/settings.json")); err != nil || !bytes.Contains(data, []byte("grapnel-hook")) {
		t.Errorf("the file behind the link: %s, %v", data, err)
	}
	if to, err := os.Readlink(in("settings.json")); err != nil || to != "dotfiles/settings.json" {
		t.Errorf("the link: %s, %v", to, err)
	}
	for name, want := range map[string]string{
		"dangling": "a link to a file that is not there", "readonly": "read-only (mode 0444)", "directory": "it is not a file", "broken": "line 3, column 3",
	} {
		before, _ := os.ReadFile(in(name))
		f, err := openHookFile(at(name), agent.User)
		if err == nil {
			err = f.install(wanted)
		}
		if err == nil {
			err = f.mayReplace()
		}
		after, _ := os.ReadFile(in(name))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), in(name)) || !bytes.Equal(before, after) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	f, err := openHookFile(at("settings.json"), agent.User)
	if err == nil {
		err = f.install(&install.Wanted{})
	}
	if err != nil {
		t.Fatal(err)
	}
	put(t, in("settings.json"), "{}\n")
	if err := f.mayReplace(); err == nil || !strings.Contains(err.Error(), "meanwhile") {
		t.Errorf("a file that changes meanwhile: %v", err)
	}
}
