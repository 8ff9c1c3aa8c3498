package webtest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestHostileTexts: names, sections and remarks full of markup are text, and what is unseen in them is marked.
func TestHostileTexts(t *testing.T) {
	t.Parallel()

	g := serve(t)
	const markup = `<img src=x onerror=alert(1)><script>alert(2)</script>`
	const unseen = "a\u3164b\u202ec\u200b\u200b\u200bd\ufe01\ufe02e"
	g.call(t, "workspace/create", object{"name": markup, "id": "w"})
	g.call(t, "folder/create", object{"workspace_id": "w", "name": markup, "id": "f"})
	g.call(t, "thread/agents_doc/save", object{"workspace_id": "w", "content": markup})
	for _, text := range []string{markup, unseen} {
		g.call(t, "turn/compile", object{"turn": object{"workspace_id": "w", "thread_id": text, "turn_id": text}, "input": object{"user_text": text}})
	}
	p := open(t, g.url+"/manifests", 1280)
	for _, path := range []string{"/manifests", "/documents/w", "/documents/w/root", "/manifests/latest", "/manifests/search?sentence=" + url.QueryEscape(markup)} {
		p.do(t, chromedp.Navigate(g.url+path))
		p.await(t, "document.querySelector('main h1, main [role=tree]') !== null && !document.querySelector('.busy')")
		if n := value[int](t, p, "document.querySelectorAll('main img, main script').length"); n > 0 {
			t.Errorf("%s: %d elements of a text", path, n)
		}
	}
	p.do(t, chromedp.Navigate(g.url+"/manifests"))
	p.wants(t, markup[:20])
	for _, want := range []string{markup, "aU+3164bU+202EcU+200B × 3d\ufe01U+FE02e"} {
		if !strings.Contains(p.text(), want) {
			t.Errorf("the list does not show %s:\n%s", want, p.text())
		}
	}
	p.do(t, chromedp.Navigate(g.url+"/manifests/latest"))
	p.await(t, "document.title.startsWith('Turn ')")
	if got, want := value[string](t, p, "document.title"), "Turn a\ufffdb\ufffdc\ufffd\ufffd\ufffdd\ufe01\ufffde · Grapnel"; got != want {
		t.Errorf("the title is %q, want %q", got, want)
	}
}

// TestLongNames: the longest names make no view wider than the screen.
func TestLongNames(t *testing.T) {
	t.Parallel()

	g := serve(t)
	long := strings.Repeat("W", 256)
	g.call(t, "workspace/create", object{"name": long, "id": strings.Repeat("w", 64)})
	at := object{"workspace_id": strings.Repeat("w", 64)}
	g.call(t, "folder/create", object{"workspace_id": at["workspace_id"], "name": long, "id": "f"})
	g.call(t, "thread/create", object{"workspace_id": at["workspace_id"], "folder_id": "f", "title": long, "id": strings.Repeat("t", 64)})
	g.call(t, "turn/compile", object{"turn": object{"workspace_id": at["workspace_id"], "thread_id": strings.Repeat("t", 64), "turn_id": long}, "input": object{"user_text": long}})
	for _, width := range []int64{1280, 390} {
		p := open(t, g.url+"/manifests", width)
		for _, path := range []string{
			"/manifests", "/manifests/latest", "/manifests/latest?tab=record", "/manifests/blame?thread=" + strings.Repeat("t", 64), "/documents",
			"/documents/" + strings.Repeat("w", 64), "/documents/" + strings.Repeat("w", 64) + "/folder/f",
			"/documents/" + strings.Repeat("w", 64) + "/thread/" + strings.Repeat("t", 64), "/memory?workspace_id=" + strings.Repeat("w", 64),
		} {
			p.do(t, chromedp.Navigate(g.url+path))
			p.await(t, "document.querySelector('main h1') !== null && !document.querySelector('.busy')")
			p.shoot(t, fmt.Sprintf("long-%d%s", width, strings.NewReplacer("/", "-", strings.Repeat("w", 64), "w", strings.Repeat("t", 64), "t").Replace(path)))
			if wide := value[int](t, p, "document.documentElement.scrollWidth"); wide > int(width) {
				t.Errorf("%s: the page is %d pixels wide on a screen of %d", path, wide, width)
			}
		}
	}
}

// TestInheritedNames: names that each object of JavaScript has are names like others, and an address of any length is read.
func TestInheritedNames(t *testing.T) {
	t.Parallel()

	g := serve(t, "--token-file", tokenFile(t, staff))
	p := open(t, g.url+"/", 1280)
	p.logIn(t, "boss")
	p.do(t, chromedp.WaitVisible("nav.side"))
	g.token = "boss"
	g.call(t, "workspace/create", object{"name": "__proto__", "id": "constructor"})
	g.call(t, "folder/create", object{"workspace_id": "constructor", "name": "toString", "id": "__proto__"})
	g.call(t, "thread/agents_doc/save", object{"workspace_id": "constructor", "folder_id": "__proto__", "content": "__proto__\n"})
	for _, path := range []string{
		"/plugins/__proto__", "/plugins/constructor?tab=toString", "/manifests/constructor?tab=__proto__", "/manifests?workspace=__proto__&thread=constructor",
		"/manifests/compare?a=__proto__&b=constructor", "/manifests/search?section=__proto__", "/documents/constructor", "/documents/constructor/folder/__proto__",
		"/documents/constructor/folder/__proto__?tab=constructor", "/documents/constructor/thread/hasOwnProperty", "/documents/__proto__/root", "/jobs?state=constructor", "/memory?workspace_id=__proto__&category=constructor",
		"/try?phase=__proto__&workspace_id=constructor&__proto__=x&__proto__[x]=1", "/try?phase=constructor", "/events?kind=toString", "/manifests#" + strings.Repeat("x", 1<<20), "/manifests#login=" + strings.Repeat("x", 1<<20),
	} {
		p.do(t, chromedp.Navigate(g.url+path))
		p.await(t, "document.querySelector('nav.side') !== null && document.querySelector('main h1, main .empty, main .problem') !== null && !document.querySelector('main .busy')")
		if !value[bool](t, p, "Object.keys(Object.prototype).length === 0 && ({}).x === undefined") {
			t.Fatalf("%.80s: an object inherits what the address says", path)
		}
	}
}

// TestForeignStorage: another program that had this origin may have left anything under our names.
func TestForeignStorage(t *testing.T) {
	t.Parallel()

	g := serve(t)
	house(t, g, "rules\n")
	p := open(t, "about:blank", 1280)
	p.onNewDocument(t, `if (location.protocol !== "about:") {
		localStorage.setItem("grapnel.whoami", "null");
		localStorage.setItem("grapnel.theme", "<b>");
		sessionStorage.setItem("grapnel.open.house", '{"a": 1}');
		sessionStorage.setItem("grapnel.try", "{");
	}`)
	p.do(t, chromedp.Navigate(g.url+"/documents/house"))
	p.wants(t, "1 document")
	p.do(t, chromedp.Navigate(g.url+"/try"))
	p.wants(t, "Dispatch")
}

// TestLoginUnanswered: a page whose first request, the login with a code, is lost asks for a token.
func TestLoginUnanswered(t *testing.T) {
	t.Parallel()

	g := serve(t, "--token-file", tokenFile(t, staff))
	p := open(t, "about:blank", 1280)
	p.onNewDocument(t, `{
		const real = window.fetch;
		let calls = 0;
		window.fetch = (...args) => calls++ === 0 ? Promise.reject(new TypeError("lost")) : real(...args);
	}`)
	p.do(t, chromedp.Navigate(g.url+"/#login=ABC"))
	p.do(t, chromedp.WaitVisible("#token"))
}

// TestOthersDrafts: what one person typed and did not save is not shown to the next one who logs in at the browser.
func TestOthersDrafts(t *testing.T) {
	t.Parallel()

	g, p, _ := clerk(t, "rules\n")
	g.kill(t)
	p.typeAt(t, false, "mine ")
	p.wants(t, "kept here")
	g.again(t)
	p.logIn(t, "clerk")
	p.do(t, chromedp.WaitVisible("nav.side")) // logged in
	p.do(t, chromedp.Navigate(g.url+"/documents/house"))
	p.wants(t, "No documents are archived")
	p.awaitDraft(t, 1)
	if text := p.text(); strings.Contains(text, "kept in this browser") {
		t.Errorf("the clerk sees boss's draft:\n%s", text)
	}
	p.do(t, chromedp.Click("//button[contains(., 'Log out')]"))
	p.logIn(t, "boss")
	p.wants(t, "1 text is kept in this browser")
	p.do(t, chromedp.Navigate(g.url+"/documents/house/root"))
	g.awaitContent(t, p, func(s string) bool { return s == "mine rules\n" })
}

// TestOthersDispatches: nor is what one person dispatched.
func TestOthersDispatches(t *testing.T) {
	t.Parallel()

	g := serve(t, "--token-file", tokenFile(t, staff))
	p := open(t, g.url+"/try?phase=tool.pre_call", 1280)
	const list = "Sent in this tab"
	p.logIn(t, "boss")
	p.wants(t, "The same as JSON")
	p.do(t, chromedp.Click("main .chooser button[type=submit]"))
	p.wants(t, list)
	p.do(t, chromedp.Click("//button[contains(., 'Log out')]"))
	p.logIn(t, "clerk")
	p.wants(t, "Log out clerk")
	p.wants(t, "The same as JSON")
	if strings.Contains(p.text(), list) {
		t.Errorf("the clerk sees what boss sent:\n%s", p.text())
	}
	p.do(t, chromedp.Click("//button[contains(., 'Log out')]"))
	p.logIn(t, "boss")
	p.wants(t, list)
}
