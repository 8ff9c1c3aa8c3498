package config

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, path, text string, mode fs.FileMode) string {
	t.Helper()

	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "grapnel.yaml"), "version: 1\nplugins: [{name: p, command: bin/p}]\n", 0o600)
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Plugins[0].Path, filepath.Join(dir, "bin", "p"); got != want {
		t.Errorf("path: got %s, want %s", got, want)
	}
	bad := write(t, filepath.Join(dir, "bad.yaml"), "version: 3\n", 0o600)
	if _, err := Load(bad); err == nil || !strings.HasPrefix(err.Error(), bad+":1:10: ") {
		t.Errorf("got %v, want the path in front", err)
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	if _, err := Load(filepath.Join(dir, "absent.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: got %v", err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("folder: got %v", err)
	}
}

func TestResolveCommand(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("programs are found by their extension")
	}

	dir := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	write(t, at("bin", "tool"), "", 0o700)
	write(t, at("bin", "data"), "", 0o600)
	write(t, at("later", "tool"), "", 0o700)
	write(t, at("later", "data"), "", 0o700)
	write(t, at("conf", "own"), "", 0o700)
	path := strings.Join([]string{".", "", "conf", at("bin"), at("later")}, string(filepath.ListSeparator))
	tests := []struct {
		name, command, path, want string
		err                       error
	}{
		{"absolute", at("bin", "tool"), "", at("bin", "tool"), nil},
		{"absolute is cleaned", at("bin") + "/../bin//tool", "", at("bin", "tool"), nil},
		{"relative to the file", "./own", path, at("conf", "own"), nil},
		{"above the file", "../bin/tool", path, at("bin", "tool"), nil},
		{"bare name, first in PATH", "tool", path, at("bin", "tool"), nil},
		{"bare name, not executable comes later", "data", path, at("later", "data"), nil},
		{"bare name beside the file is not found", "own", path, at("bin", "own"), fs.ErrNotExist},
		{"no PATH", "tool", "", "", fs.ErrNotExist},
		{"only relative folders in PATH", "tool", ".:bin", "", fs.ErrNotExist},
		{"absent", "./absent", path, at("conf", "absent"), fs.ErrNotExist},
		{"not executable", at("bin", "data"), path, at("bin", "data"), fs.ErrPermission},
		{"dots are no names", "..", path, dir, syscall.EISDIR},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, err := ResolveCommand(at("conf"), tt.command, loader(map[string]string{"PATH": tt.path}).LookupEnv)
			if got != tt.want || (err == nil) != (tt.err == nil) {
				t.Errorf("got %q (%v), want %q (%v)", got, err, tt.want, tt.err)
			}
			if err != nil && !errors.Is(err, tt.err) {
				t.Errorf("got error %v, want %v", err, tt.err)
			}
		})
	}
	if _, err := ResolveCommand(dir, "", os.LookupEnv); err == nil {
		t.Error("no error for no command")
	}
}

func TestTemplate(t *testing.T) {
	t.Parallel()

	c := parse(t, string(Template()))
	if len(c.Plugins) != 0 || c.Store != (Secret{}) {
		t.Errorf("the template configures something: %+v", c)
	}
	if c.Budgets.Turn.Time.D() != DefaultTurnTime || c.Budgets.Turn.Chars != DefaultTurnChars {
		t.Errorf("the template's budgets are not the defaults: %+v", c.Budgets.Turn)
	}
	Template()[0] = 'x'
	if Template()[0] == 'x' {
		t.Error("the template can be changed")
	}
	for _, key := range allKeys() {
		owner, key, _ := strings.Cut(key, ".")
		switch owner {
		case "Config", "Budgets", "TurnBudget", "PhaseBudget", "Plugin", "Grants", "Env", "Limits", "ModelBudget", "Manifest", "Override", "Retry", "TextBudget", "Cache", "Serve":
			if !strings.Contains(string(Template()), key+": ") && !strings.Contains(string(Template()), key+":\n") {
				t.Errorf("the template does not name %s.%s", owner, key)
			}
		}
	}
}

// TestJSONRoundTrip: a configuration without secrets, printed and read again, is
// the same.
func TestJSONRoundTrip(t *testing.T) {
	t.Parallel()

	for _, text := range []string{section11, templateInUse(), located} {
		first := parse(t, text)
		out, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		second := parse(t, string(out))
		if diff := cmp.Diff(first, second, ignoring(), cmp.AllowUnexported(Config{}, Plugin{})); diff != "" {
			t.Errorf("read again from\n%s\n(-first +second):\n%s", out, diff)
		}
	}
}
