package webtest

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// house makes a workspace with a document.
func house(t *testing.T, g *gateway, text string) {
	t.Helper()
	g.call(t, "workspace/create", object{"name": "House", "id": "house"})
	g.call(t, "thread/agents_doc/save", object{"workspace_id": "house", "content": text})
}

// content is the document as the gateway has it.
func (g *gateway) content(t *testing.T) string {
	t.Helper()
	explicit, _ := g.call(t, "thread/agents_doc/get", object{"workspace_id": "house"})["explicit"].(object)
	text, _ := explicit["content"].(string)
	return text
}

// edit opens the document in a browser of its own.
func (g *gateway) edit(t *testing.T) *page {
	t.Helper()
	p := open(t, g.url+"/documents/house/root", 1280)
	p.await(t, "document.querySelector('.cm-content') !== null")
	p.do(t, chromedp.Focus(".cm-content"))
	return p
}

// typeAt types at the document's beginning or end.
func (p *page) typeAt(t *testing.T, end bool, text string) {
	t.Helper()
	key := kb.Home
	if end {
		key = kb.End
	}
	p.do(t, chromedp.Focus(".cm-content"), chromedp.KeyEvent(key, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	p.do(t, chromedp.KeyEvent(text))
}

// awaitContent waits until the gateway has a document that is as wanted.
func (g *gateway) awaitContent(t *testing.T, p *page, want func(string) bool) {
	t.Helper()
	for began := time.Now(); ; {
		got := g.content(t)
		if want(got) {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("the gateway has %q\nthe page has:\n%s", got, p.text())
		}
		p.await(t, "new Promise(done => setTimeout(() => done(true), 100))")
	}
}

// TestTwoBrowsers: two people type in different lines of one document at once; both have both.
func TestTwoBrowsers(t *testing.T) {
	t.Parallel()

	g := serve(t)
	house(t, g, "first\nmiddle\nlast\n")
	a, b := g.edit(t), g.edit(t)
	a.typeAt(t, false, "A ")
	b.typeAt(t, true, "B")
	g.awaitContent(t, b, func(s string) bool {
		return strings.Contains(s, "A first") && strings.Contains(s, "B") && strings.Contains(s, "middle")
	})
	for _, p := range []*page{a, b} {
		p.await(t, "document.querySelector('.cm-content').textContent.includes('A first') && document.querySelector('.cm-content').textContent.includes('B')")
	}
}

// TestKilledGateway: the gateway is killed while somebody types, and begins again. Nothing that was typed is lost.
func TestKilledGateway(t *testing.T) {
	t.Parallel()

	g := serve(t)
	house(t, g, "rules\n")
	p := g.edit(t)
	p.pardon("WebSocket connection")
	p.pardon("ERR_CONNECTION")
	p.typeAt(t, false, "before ")
	g.kill(t)
	p.typeAt(t, false, "during ")
	p.wants(t, "offline (kept here)")
	p.wants(t, "No connection to the gateway")
	g.again(t)
	g.awaitContent(t, p, func(s string) bool { return s == "during before rules\n" })
	p.await(t, "/^✓\\s*saved/.test(document.querySelector('.status').innerText) && document.querySelector('.offline') === null")
}

// draft is a page with text that the gateway, which was killed, does not have.
func draft(t *testing.T) (*gateway, *page) {
	t.Helper()
	g := serve(t)
	house(t, g, "rules\n")
	p := g.edit(t)
	p.pardon("WebSocket connection")
	p.pardon("ERR_CONNECTION")
	g.kill(t)
	p.typeAt(t, false, "mine ")
	p.wants(t, "kept here")
	return g, p
}

// TestReloadedPage: the page goes away while the gateway is gone; the draft is there when both are back.
func TestReloadedPage(t *testing.T) {
	t.Parallel()

	g, p := draft(t)
	p.do(t, chromedp.Navigate("about:blank"))
	g.again(t)
	p.do(t, chromedp.Navigate(g.url+"/documents/house/root"))
	g.awaitContent(t, p, func(s string) bool { return s == "mine rules\n" })
}

// TestLongestDocument: 65,536 characters are saved, with how many a prompt takes beside them, and one more is refused: it stays in the page and in the browser,
// over a reload, until the text is shorter.
func TestLongestDocument(t *testing.T) {
	t.Parallel()

	g := serve(t)
	line := "\U0001d54f" + strings.Repeat("x", 62) + "\n" // 64 characters, of which UTF-16 has 65
	house(t, g, strings.Repeat(line, 1023)+line[:len(line)-2]+"\n")
	p := g.edit(t)
	p.wants(t, "65,535 of 65,536 characters")
	p.wants(t, "a prompt takes 15,")
	p.typeAt(t, false, "a")
	p.wants(t, "65,536 of 65,536 characters")
	g.awaitContent(t, p, func(s string) bool { return utf8.RuneCountInString(s) == 65_536 && s[0] == 'a' })
	p.await(t, "/^✓\\s*saved/.test(document.querySelector('.status').innerText)")
	p.typeAt(t, false, "b")
	const refused = "The text is longer than 65,536 characters"
	p.wants(t, "65,537 of 65,536 characters")
	p.wants(t, refused)
	p.awaitDraft(t, 1)
	p.do(t, chromedp.Reload())
	p.wants(t, "65,537 of 65,536 characters")
	p.wants(t, refused)
	if got := g.content(t); utf8.RuneCountInString(got) != 65_536 {
		t.Errorf("the gateway has %d characters", utf8.RuneCountInString(got))
	}
	p.await(t, "document.querySelector('.cm-content')?.textContent.startsWith('ba')")
	p.typeAt(t, false, kb.Delete)
	p.wants(t, "65,536 of 65,536 characters")
	p.await(t, "/^✓\\s*saved/.test(document.querySelector('.status').innerText)")
	p.awaitDraft(t, 0)
}

// awaitDraft waits until the browser keeps so many texts.
func (p *page) awaitDraft(t *testing.T, n int) {
	t.Helper()
	p.await(t, fmt.Sprintf(`new Promise((done, failed) => {
		const opening = indexedDB.open("grapnel");
		opening.onerror = failed;
		opening.onsuccess = () => {
			const request = opening.result.transaction("drafts").objectStore("drafts").count();
			request.onsuccess = () => { opening.result.close(); done(request.result === %d); };
		};
	})`, n))
}
