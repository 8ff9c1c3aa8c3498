package webtest

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// add saves the document with a line more at its end, as a client that reads again when somebody else was faster.
func (g *gateway) add(t *testing.T, p *page, line string) {
	t.Helper()
	g.awaitContent(t, p, func(s string) bool {
		doc, _ := g.call(t, "thread/agents_doc/get", object{"workspace_id": "house"})["explicit"].(object)
		if doc["content"] != s {
			return false
		}
		_, err := g.tryCall(t, "thread/agents_doc/save", object{"workspace_id": "house", "content": s + line, "expected_version": doc["version"]})
		return err == nil
	})
}

// TestOtherGateway: another gateway on the same PostgreSQL saves the document that is open. The page shows what it
// saved; with text that was typed here it is merged; and where both changed a line, both texts are shown.
func TestOtherGateway(t *testing.T) {
	t.Parallel()

	dsn := storetest.NewPostgres(t)
	g, other := serve(t, "--store", dsn), serve(t, "--store", dsn)
	house(t, g, "first\nmiddle\n")
	p := g.edit(t)
	p.await(t, "document.querySelector('.cm-content').textContent.includes('middle')")
	other.add(t, p, "theirs\n")
	p.await(t, "document.querySelector('.cm-content').textContent.includes('theirs')")

	p.typeAt(t, false, "mine ")
	other.add(t, p, "more\n")
	const both = "mine first\nmiddle\ntheirs\nmore\n"
	for _, of := range []*gateway{g, other} {
		of.awaitContent(t, p, func(s string) bool { return s == both })
	}
	p.await(t, "document.querySelector('.cm-content').textContent.includes('more') && document.querySelector('.cm-content').textContent.includes('mine first')")
	p.await(t, "/^✓\\s*saved/.test(document.querySelector('.status').innerText)")

	g.kill(t) // what is typed now stays in the page
	p.pardon("WebSocket connection")
	p.pardon("ERR_CONNECTION")
	p.typeAt(t, false, "again ")
	p.wants(t, "kept here")
	doc, _ := other.call(t, "thread/agents_doc/get", object{"workspace_id": "house"})["explicit"].(object)
	other.call(t, "thread/agents_doc/save", object{"workspace_id": "house", "content": "other first\n", "expected_version": doc["version"]})
	g.again(t)
	p.wants(t, "changed the same lines")
	if text := p.text(); !strings.Contains(text, "other first") || !strings.Contains(text, "again mine first") {
		t.Errorf("the conflict does not show both texts:\n%s", text)
	}
	p.do(t, chromedp.Click("//button[contains(., 'Take mine')]"))
	other.awaitContent(t, p, func(s string) bool { return s == "again "+both })
}
