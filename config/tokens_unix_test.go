//go:build unix

package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tokenFile writes a file of tokens with a mode.
func tokenFile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadTokens(t *testing.T) {
	t.Parallel()

	hash := strings.Repeat("ab", 32)
	path := tokenFile(t, "tokens:\n- {name: ci, sha256: "+strings.ToUpper(hash)+", workspaces: ['*'], rights: [read, write]}\n"+
		"- {name: web, sha256: \""+strings.Repeat("01", 32)+"\", workspaces: [w1, w2], rights: [read]}\n", 0o600)
	got, err := LoadTokens(path)
	want := Tokens{Tokens: []Token{
		{Name: "ci", SHA256: hash, Workspaces: []string{"*"}, Rights: []Right{"read", "write"}},
		{Name: "web", SHA256: strings.Repeat("01", 32), Workspaces: []string{"w1", "w2"}, Rights: []Right{"read"}},
	}}
	if diff := cmp.Diff(got, want); err != nil || diff != "" {
		t.Errorf("error %v (-got +want):\n%s", err, diff)
	}
}

// TestLoadTokensRefuses: a file that others can read gives its tokens' hashes
// away, and one that is wrong must not let anybody in.
func TestLoadTokensRefuses(t *testing.T) {
	t.Parallel()

	a, b := `"`+strings.Repeat("0a", 32)+`"`, `"`+strings.Repeat("0b", 32)+`"`
	entry := func(name, hash string) string {
		return "- {name: " + name + ", sha256: " + hash + ", workspaces: [w], rights: [read]}\n"
	}
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", "the file is empty; it begins with tokens:"},
		{"no tokens", "tokens: []\n", "there are no tokens: nobody could use the gateway"},
		{"unknown key", "tokens: []\ntoken: a\n", `unknown key "token" (did you mean "tokens"?)`},
		{"a token, not its hash", "tokens:\n" + entry("a", "secret"), "a SHA-256 checksum has 64 hex digits"},
		{"two of a name", "tokens:\n" + entry("a", a) + entry("a", b), `there are two tokens "a"`},
		{"two of a hash", "tokens:\n" + entry("a", a) + entry("b", a), "there are two tokens with this hash"},
		{"blank name", "tokens:\n" + entry(`" "`, a), "the name is blank"},
		{"no rights", "tokens:\n- {name: a, sha256: " + a + ", workspaces: [w]}\n", "rights is missing"},
		{"unknown right", "tokens:\n- {name: a, sha256: " + a + ", workspaces: [w], rights: [reads]}\n", `unknown word "reads" (did you mean "read"?)`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			_, err := LoadTokens(tokenFile(t, test.text, 0o600))
			list, ok := errors.AsType[Errors](err)
			if !ok || len(list) != 1 || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o666} {
		if _, err := LoadTokens(tokenFile(t, "tokens: []\n", mode)); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: got %v", mode, err)
		}
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadTokens(pipe); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("a pipe: got %v", err)
	}
	if _, err := LoadTokens(pipe + "-not"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an absent file: got %v", err)
	}
}
