package webtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// focus says where the focus is, as a path of element names, and what is wrong with how it is shown. An element is
// shown if its middle is in the viewport and nothing covers it, and if at least half of its outline is not clipped.
// Headings and <main> take the focus without being reached by Tab, and have no outline.
const focus = `(async () => { const look = () => {
	const e = document.activeElement;
	if (!e || e === document.body) return {path: "", problem: ""};
	const path = e.tagName.toLowerCase() + (e.id && "#" + e.id) + " " + (e.getAttribute("aria-label") || e.textContent || "").trim().slice(0, 40);
	const answer = problem => ({path, problem});
	if (e.matches("h1, h2, main")) return answer("");
	const marked = e.closest(".cm-editor") ?? e.querySelector(":scope > .piece") ?? (e.matches(".lane") ? e.querySelector("rect") : e);
	const style = getComputedStyle(marked), svg = marked instanceof SVGElement;
	const thick = svg ? parseFloat(style.strokeWidth) : style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth);
	if (!(thick > 0) || (svg && style.stroke === "none")) return answer("has no outline");
	const b = marked.getBoundingClientRect(), far = svg ? 0 : parseFloat(style.outlineOffset) + thick;
	const seen = {left: 0, top: 0, right: innerWidth, bottom: innerHeight};
	for (let a = marked.parentElement; a && !svg; a = a.parentElement) {
		const s = getComputedStyle(a), box = a.getBoundingClientRect();
		if (s.overflowX !== "visible") { seen.left = Math.max(seen.left, box.left); seen.right = Math.min(seen.right, box.right); }
		if (s.overflowY !== "visible") { seen.top = Math.max(seen.top, box.top); seen.bottom = Math.min(seen.bottom, box.bottom); }
	}
	const cut = [b.left - far < seen.left - 1, b.top - far < seen.top - 1, b.right + far > seen.right + 1, b.bottom + far > seen.bottom + 1];
	const large = b.height > innerHeight / 2; // such as a table: its edges may be out of sight
	if (cut.filter(Boolean).length > (large ? 3 : 2)) return answer("has an outline that is clipped: " + cut);
	const x = (Math.max(b.left, seen.left) + Math.min(b.right, seen.right)) / 2, y = (Math.max(b.top, seen.top) + Math.min(b.bottom, seen.bottom)) / 2;
	if (b.right <= seen.left || b.left >= seen.right || b.bottom <= seen.top || b.top >= seen.bottom) return answer("is out of sight");
	const top = document.elementFromPoint(x, y);
	if (!large && top && !e.contains(top) && !top.contains(e) && !(svg && top.closest("svg") === e.closest("svg"))) return answer("is covered by " + top.outerHTML.slice(0, 80));
	return answer("");
};
for (let i = 0; ; i++) {
	const got = look();
	if (!got.problem || i === 40) return got;
	await new Promise(done => setTimeout(done, 50)); // scrolling and styles may follow
}})()`

// press presses a key, and wants the focus to be seen afterwards.
func (p *page) press(t *testing.T, key string, modifiers ...chromedp.Modifier) {
	t.Helper()
	p.do(t, chromedp.KeyEvent(key, chromedp.KeyModifiers(modifiers...)))
	type seen struct {
		Path    string `json:"path"`
		Problem string `json:"problem"`
	}
	got, err := chromedp.Run(p.ctx, chromedp.Evaluate[seen](focus, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	if got.Problem != "" {
		t.Errorf("%s: %q %s", value[string](t, p, "location.pathname + location.search"), got.Path, got.Problem)
	}
}

// mostTabs is more than any view has stops.
const mostTabs = 300

// tabTo presses Tab until an element has the focus.
func (p *page) tabTo(t *testing.T, selector string) {
	t.Helper()
	p.await(t, fmt.Sprintf("document.querySelector(%q) !== null", selector))
	for range mostTabs {
		p.press(t, kb.Tab)
		if value[bool](t, p, fmt.Sprintf("document.activeElement.matches(%q)", selector)) {
			return
		}
	}
	t.Fatalf("Tab does not reach %s\nthe page has:\n%s", selector, p.text())
}

// enter goes to an element by Tab and presses Enter; the page then shows a text.
func (p *page) enter(t *testing.T, selector, shows string) {
	t.Helper()
	p.tabTo(t, selector)
	p.press(t, kb.Enter)
	p.wants(t, shows)
}

// awaitFocus waits until an element has the focus.
func (p *page) awaitFocus(t *testing.T, selector string) {
	t.Helper()
	p.await(t, fmt.Sprintf("document.activeElement.matches(%q)", selector))
}

// escape closes a dialog by Escape; an element then has the focus.
func (p *page) escape(t *testing.T, selector string) {
	t.Helper()
	p.press(t, kb.Escape)
	p.await(t, "document.querySelector('dialog') === null")
	p.awaitFocus(t, selector)
}

// TestTabStops: in every view, Tab goes to each control once around, and each is seen while it has the focus.
func TestTabStops(t *testing.T) {
	t.Parallel()

	const stops = `a[href], button:not(:disabled), input:not(:disabled), select, textarea, summary, [tabindex], [contenteditable=true]`
	const drawn = `svg [role=button], svg [role=option][aria-selected=true]`
	const missed = `[...document.querySelectorAll("` + stops + "," + drawn + `")].filter(e => (e.tabIndex >= 0 || e.matches("` + drawn + `")) && !e.seen && e.checkVisibility()).map(e => e.outerHTML.slice(0, 120))`
	g, manifest := demo(t)
	p := open(t, g.url+"/", 1280)
	for _, v := range views(t, g, manifest) {
		p.do(t, chromedp.Navigate(g.url+v.path))
		p.await(t, fmt.Sprintf("document.querySelector('main') && document.querySelector('main').innerText.includes(%q) && !document.querySelector('.busy')", v.shows))
		for n := 0; ; n++ {
			if n == mostTabs {
				t.Fatalf("%s: Tab does not come around", v.name)
			}
			if value[bool](t, p, "document.activeElement.matches('.cm-content')") {
				p.press(t, kb.Escape)
			}
			p.press(t, kb.Tab)
			if again := value[bool](t, p, "document.activeElement === document.body || document.activeElement.seen || !(document.activeElement.seen = true)"); again && n > 0 {
				break
			}
		}
		if list := value[[]string](t, p, missed); len(list) > 0 {
			t.Errorf("%s: Tab does not reach\n%s", v.name, strings.Join(list, "\n"))
		}
	}
}

// TestKeyboard works in every view by the keyboard alone.
func TestKeyboard(t *testing.T) {
	t.Parallel()

	g, manifest := demo(t)
	views(t, g, manifest)
	p := open(t, g.url+"/", 1280)
	for _, step := range []struct {
		name string
		do   func(*testing.T, *gateway, *page)
	}{
		{"manifests", keysManifests},
		{"documents", keysDocuments},
		{"plugins", keysPlugins},
		{"try", keysTry},
		{"jobs", keysJobs},
		{"memory", keysMemory},
		{"events", keysEvents},
	} {
		t.Run(step.name, func(t *testing.T) {
			p.enter(t, fmt.Sprintf("nav.side a[href='/%s']", step.name), strings.ToUpper(step.name[:1])+step.name[1:])
			step.do(t, g, p)
		})
	}
}

func keysManifests(t *testing.T, g *gateway, p *page) {
	p.enter(t, "main [role=row] a[href='/manifests/"+g.prompt(t)+"']", "Fingerprint")
	p.await(t, "document.activeElement !== document.body") // the row that had the focus is gone
	for _, tab := range []struct{ name, shows string }{
		{"ledger", "Hook"}, {"omitted", "left out"}, {"diagnostics", "Message"}, {"tools", "memory_search"}, {"record", "Content hash"}, {"sections", "Fingerprint"},
	} {
		p.enter(t, "nav.tabs a[href$='tab="+tab.name+"']", tab.shows)
	}
	p.tabTo(t, "[role=option]")
	before := value[string](t, p, "document.activeElement.getAttribute('aria-label')")
	p.press(t, kb.ArrowRight)
	p.await(t, fmt.Sprintf("document.activeElement.matches('[role=option][aria-selected=true]') && document.activeElement.getAttribute('aria-label') !== %q", before))
}

func keysDocuments(t *testing.T, g *gateway, p *page) {
	p.enter(t, "main a[href='/documents/house']", "1 folder")
	p.tabTo(t, "[role=treeitem]")
	p.press(t, kb.ArrowDown)
	p.awaitFocus(t, "[data-key='folder:kitchen']")
	p.press(t, kb.ArrowRight)
	p.await(t, "document.querySelector('[data-key=\"thread:dinner\"]') !== null")
	p.press(t, kb.ArrowDown)
	p.awaitFocus(t, "[data-key='thread:dinner']")
	p.press(t, kb.Enter)
	p.wants(t, "Thread in")
	p.press(t, kb.F2)
	p.awaitFocus(t, "dialog input")
	p.escape(t, "[data-key='thread:dinner']")
	p.press(t, kb.F10, chromedp.ModifierShift)
	p.awaitFocus(t, "[role=menuitem]")
	p.press(t, kb.ArrowDown)
	p.press(t, kb.Escape)
	p.awaitFocus(t, "[data-key='thread:dinner']")
	p.press(t, kb.Home)
	p.awaitFocus(t, "[data-key='root:']")
	p.press(t, kb.Enter)
	p.tabTo(t, ".cm-content")
	p.press(t, kb.Home, chromedp.ModifierCtrl)
	p.do(t, chromedp.KeyEvent("By keys. "))
	p.press(t, kb.Escape)
	p.press(t, kb.Tab)
	if value[bool](t, p, "document.activeElement.matches('.cm-content')") {
		t.Error("Escape and Tab do not leave the editor")
	}
	g.awaitContent(t, p, func(s string) bool { return strings.HasPrefix(s, "By keys. # Rules") })
	p.press(t, "k", chromedp.ModifierCtrl)
	p.awaitFocus(t, "dialog input")
	p.do(t, chromedp.KeyEvent("kitch"))
	p.await(t, "document.querySelector('#pick-0')?.textContent.includes('Kitchen')")
	p.press(t, kb.Enter)
	p.await(t, "location.pathname === '/documents/house/folder/kitchen'")
}

func keysPlugins(t *testing.T, _ *gateway, p *page) {
	p.enter(t, "main a[href='/plugins/house']", "house.rules")
	p.await(t, "document.activeElement !== document.body")
	const reload = "main .tools button:last-of-type"
	p.enter(t, reload, "in force")
	p.awaitFocus(t, "dialog button")
	p.escape(t, reload)
}

func keysTry(t *testing.T, _ *gateway, p *page) {
	p.tabTo(t, "#phase")
	p.do(t, chromedp.KeyEvent("tool.pre"))
	p.await(t, "document.querySelector('#phase').value.startsWith('tool.pre')")
	p.enter(t, "main button[type=submit]", "Outcome of tool.pre_call")
	p.awaitFocus(t, "#outcome")
	p.enter(t, ".last button:last-of-type", "Outcome of tool.pre_call")
	p.await(t, "document.querySelectorAll('.last li').length === 2")
}

func keysJobs(t *testing.T, _ *gateway, p *page) {
	p.enter(t, "nav.tabs a[href$='state=dead']", "No job is dead")
	p.enter(t, "nav.tabs a[href='/jobs']", "Unfinished")
}

func keysMemory(t *testing.T, g *gateway, p *page) {
	p.tabTo(t, "main input[list=workspaces]")
	p.press(t, "a", chromedp.ModifierCtrl)
	p.do(t, chromedp.KeyEvent("demo"))
	p.press(t, kb.Enter)
	p.wants(t, "Lisbon")
	p.tabTo(t, "td input[type=checkbox]")
	p.press(t, " ")
	p.enter(t, "main .tools button.danger", "removed for good")
	p.escape(t, "main .tools button.danger")
	before := len(g.memories(t))
	p.press(t, kb.Enter)
	p.wants(t, "removed for good")
	p.enter(t, "dialog button.danger", "")
	p.await(t, "document.querySelector('dialog') === null")
	if after := len(g.memories(t)); after != before-1 {
		t.Errorf("%d memories, then %d", before, after)
	}
}

// memories are those of the demo's workspace.
func (g *gateway) memories(t *testing.T) []any {
	t.Helper()
	items, _ := g.call(t, "memory/list", object{"workspace_id": "demo"})["items"].([]any)
	return items
}

func keysEvents(t *testing.T, _ *gateway, p *page) {
	p.enter(t, "main .what", "Event:")
	p.escape(t, ".what")
	p.enter(t, "main .head button[aria-pressed]", "paused")
}
