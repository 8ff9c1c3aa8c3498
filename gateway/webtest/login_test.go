package webtest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// tokenFile makes a token file: each name is its own secret, with rights.
func tokenFile(t *testing.T, rights map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	writeTokens(t, path, rights)
	return path
}

func writeTokens(t *testing.T, path string, rights map[string]string) {
	t.Helper()
	b := &strings.Builder{}
	b.WriteString("tokens:\n")
	for name, list := range rights {
		sum := sha256.Sum256([]byte(name))
		fmt.Fprintf(b, "  - name: %s\n    sha256: %q\n    workspaces: ['*']\n    rights: [%s]\n", name, hex.EncodeToString(sum[:]), list)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

const everything = "read, write, compile, dispatch, admin"

// logIn logs in by the keyboard alone.
func (p *page) logIn(t *testing.T, token string) {
	t.Helper()
	p.do(t, chromedp.WaitVisible("#token"))
	p.await(t, "document.activeElement.id === 'token'")
	p.do(t, chromedp.KeyEvent(token+kb.Enter))
}

func TestLogin(t *testing.T) {
	t.Parallel()

	file := tokenFile(t, map[string]string{"boss": everything, "reader": "read"})
	g := serve(t, "--token-file", file)
	p := open(t, g.url+"/plugins", 1280)
	p.pardon("401 (Unauthorized)")
	p.logIn(t, "nobody")
	p.wants(t, "the token or code is not valid")
	p.do(t, chromedp.Reload())
	p.logIn(t, "boss")
	p.await(t, `document.querySelector("nav.side") !== null`)
	for _, name := range []string{"Manifests", "Documents", "Plugins", "Try", "Jobs", "Memory", "Events"} {
		p.wants(t, name)
	}
	if got := value[string](t, p, "document.cookie"); got != "" {
		t.Errorf("scripts see the cookie %q", got)
	}
	p.do(t, chromedp.Reload())
	p.wants(t, "Log out boss")
	p.do(t, chromedp.Click("//button[contains(., 'Log out')]"), chromedp.WaitVisible("#token"))
}

// TestReadOnly: what one may not do is not shown.
func TestReadOnly(t *testing.T) {
	t.Parallel()

	g := serve(t, "--token-file", tokenFile(t, map[string]string{"boss": everything, "reader": "read"}))
	p := open(t, g.url+"/", 1280)
	p.logIn(t, "reader")
	p.wants(t, "Log out reader")
	if text := p.text(); strings.Contains(text, "Plugins") || strings.Contains(text, "Jobs") || strings.Contains(text, "Try") {
		t.Errorf("a reader sees:\n%s", text)
	}
	p.do(t, chromedp.Navigate(g.url+"/plugins"))
	p.wants(t, "Your token does not let you see this")
}
