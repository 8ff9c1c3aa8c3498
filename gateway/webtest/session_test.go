package webtest

import (
	"maps"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
)

// clerk is a gateway with tokens and a document, and a page where boss has it open. The gateway is called as the clerk.
func clerk(t *testing.T, text string) (g *gateway, p *page, tokens string) {
	t.Helper()
	tokens = tokenFile(t, staff)
	g = serve(t, "--token-file", tokens)
	g.token = "clerk"
	house(t, g, text)
	p = open(t, g.url+"/documents/house/root", 1280)
	for _, part := range []string{"WebSocket connection", "ERR_CONNECTION", "401 (Unauthorized)"} {
		p.pardon(part)
	}
	p.logIn(t, "boss")
	p.await(t, "document.querySelector('.cm-content') !== null")
	return g, p, tokens
}

var staff = map[string]string{"boss": everything, "clerk": everything}

// TestExpiredSession: the gateway has started again, and knows no sessions. The page asks to log in, and what was typed
// meanwhile is saved after that.
func TestExpiredSession(t *testing.T) {
	t.Parallel()

	g, p, _ := clerk(t, "rules\n")
	g.kill(t)
	p.typeAt(t, false, "mine ")
	p.wants(t, "kept here")
	g.again(t)
	p.do(t, chromedp.WaitVisible("#token"))
	if got := g.content(t); got != "rules\n" {
		t.Errorf("the gateway has %q before the login", got)
	}
	p.logIn(t, "boss")
	g.awaitContent(t, p, func(s string) bool { return s == "mine rules\n" })
	p.await(t, "document.querySelector('.cm-content')?.textContent.includes('mine rules')")
}

// TestRemovedToken: boss's token is taken out of the file while she types. The page asks to log in; once the token is
// back, her text is saved.
func TestRemovedToken(t *testing.T) {
	t.Parallel()

	g, p, tokens := clerk(t, "rules\n")
	p.typeAt(t, false, "mine ")
	rest := maps.Clone(staff)
	delete(rest, "boss")
	g.setTokens(t, tokens, rest)
	p.do(t, chromedp.WaitVisible("#token"))
	p.logIn(t, "boss")
	p.wants(t, "the token or code is not valid")
	g.setTokens(t, tokens, staff)
	p.do(t, chromedp.Click("button[type=submit]")) // the gateway may not have read the file yet
	p.await(t, "document.querySelector('.cm-content') !== null || (document.querySelector('button[type=submit]')?.click(), false)")
	g.awaitContent(t, p, func(s string) bool { return s == "mine rules\n" })
	p.await(t, "document.querySelector('.cm-content')?.textContent.includes('mine rules')")
}

// setTokens writes the token file and has the gateway read it.
func (g *gateway) setTokens(t *testing.T, file string, rights map[string]string) {
	t.Helper()
	writeTokens(t, file, rights)
	if err := g.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// TestOtherLogin: boss's session ends while she has text that is not saved, and the clerk logs in on her page. Her text
// is not saved as his; it is when she has logged in again.
func TestOtherLogin(t *testing.T) {
	t.Parallel()

	g, p, _ := clerk(t, "first\nmiddle\nlast\n")
	g.kill(t)
	p.typeAt(t, false, "mine ")
	p.wants(t, "kept here")
	g.again(t)
	p.logIn(t, "clerk")
	p.await(t, "document.querySelector('.cm-content')?.textContent.startsWith('first')")
	p.typeAt(t, true, "his")
	g.awaitContent(t, p, func(s string) bool { return s == "first\nmiddle\nlast\nhis" })
	p.await(t, "/^✓\\s*saved/.test(document.querySelector('.status').innerText)")
	p.do(t, chromedp.Click("//button[contains(., 'Log out')]"))
	p.logIn(t, "boss")
	g.awaitContent(t, p, func(s string) bool { return s == "mine first\nmiddle\nlast\nhis" })
	p.await(t, "document.querySelector('.cm-content')?.textContent.includes('mine first')")
}

// TestLogOutEverywhere: who logs out on one tab is logged out on the others.
func TestLogOutEverywhere(t *testing.T) {
	t.Parallel()

	g, p, _ := clerk(t, "rules\n")
	other := p.tab(t, g.url+"/manifests")
	other.pardon("WebSocket connection")
	other.wants(t, "Log out boss")
	p.do(t, chromedp.Click("//button[contains(., 'Log out')]"))
	other.do(t, chromedp.WaitVisible("#token"))
	p.logIn(t, "clerk")
	p.wants(t, "Log out clerk")
	p.do(t, chromedp.Navigate(g.url+"/manifests")) // with the session that is kept
	p.wants(t, "Log out clerk")
}
