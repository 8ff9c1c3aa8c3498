package webtest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// turn compiles a turn, which keeps a manifest.
func (g *gateway) turn(t *testing.T, id string) {
	t.Helper()
	g.call(t, "turn/compile", object{
		"turn": object{"workspace_id": "house", "thread_id": "t", "turn_id": id}, "input": object{"user_text": "Hello."},
	})
}

// TestKeptManifest: a manifest that is kept while the list is open is its first row at once; the focus stays where it is.
func TestKeptManifest(t *testing.T) {
	t.Parallel()

	g := serve(t)
	house(t, g, "rules\n")
	g.turn(t, "one")
	p := open(t, g.url+"/manifests", 1280)
	p.wants(t, "t / one")
	p.tabTo(t, "main [role=row] a")
	g.turn(t, "two")
	p.await(t, "document.querySelector('main .body [role=row] a')?.textContent === 't / two'")
	for name, want := range map[string]string{
		"the focus":     "document.activeElement.textContent === 't / one' && document.activeElement.matches('main [role=row] a')",
		"the row count": "document.querySelectorAll('main .body [role=row]').length === 2 && document.querySelector('[role=table]').ariaRowCount === '3'",
	} {
		if !value[bool](t, p, want) {
			t.Errorf("%s is not as it should be\n%s", name, p.text())
		}
	}
	p.press(t, kb.Enter)
	p.wants(t, "Turn one")
}

// scrolls moves an element to its end until it has %[2]d rows and the last of them is seen. It counts the elements of
// rows in the document and the milliseconds between frames.
const scrolls = `(() => {
	const seen = window.scrolled = {most: 0, frames: [], done: false}, began = performance.now();
	let before = began;
	const step = now => {
		const body = document.querySelector(%[1]q);
		seen.most = Math.max(seen.most, body.querySelectorAll("[role=row], [role=treeitem]").length);
		if (now > began) seen.frames.push(now - before);
		before = now;
		const left = body.scrollHeight - body.clientHeight - body.scrollTop;
		if (left <= 1 && body.scrollHeight >= %[2]d) { seen.done = true; return; }
		body.scrollTop += Math.min(left, body.clientHeight * %[3]d);
		requestAnimationFrame(step);
	};
	requestAnimationFrame(step);
	return true;
})()`

// scroll scrolls to the end, and logs the times of frames. Few of the rows are elements at any time.
func (p *page) scroll(t *testing.T, body string, height, screens int) {
	t.Helper()
	value[bool](t, p, fmt.Sprintf(scrolls, body, height, screens))
	for began := time.Now(); !value[bool](t, p, "window.scrolled.done"); {
		if time.Since(began) > 5*patience {
			t.Fatalf("the end is not reached\n%s", p.text())
		}
		p.await(t, "new Promise(done => setTimeout(() => done(true), 500))")
	}
	if most := value[int](t, p, "window.scrolled.most"); most == 0 || most > 100 {
		t.Errorf("%d rows are elements", most)
	}
	t.Log(value[string](t, p, `(() => {
		const f = window.scrolled.frames.sort((a, b) => a - b), at = q => f[Math.floor(q * (f.length - 1))].toFixed(1);
		return window.scrolled.most + " elements at most; " + f.length + " frames: p50 " + at(0.5) + " ms, p95 " + at(0.95) + " ms, p99 " + at(0.99) + " ms, longest " + at(1) + " ms";
	})()`))
}

// TestLongList scrolls through 100,000 manifests.
func TestLongList(t *testing.T) {
	if testing.Short() {
		t.Skip("100,000 rows take a while")
	}
	t.Parallel()

	const size = 100_000
	dsn := storetest.SQLite(t)
	g := serve(t, "--store", dsn)
	house(t, g, "rules\n")
	g.turn(t, "one")
	storetest.Exec(t, dsn, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d), m AS (SELECT manifest_id, workspace_id, created_at, actor, profile, bytes, outline, record FROM manifests ORDER BY seq DESC LIMIT 1)
		INSERT INTO manifests (manifest_id, workspace_id, thread_id, seq, turn_id, created_at, actor, profile, fingerprint_full, hash, bytes, outline, record)
		SELECT manifest_id || i, workspace_id, 'many', i, 'x' || i, created_at, actor, profile, '', '', bytes, outline, record FROM n, m`, size))
	p := open(t, g.url+"/manifests?workspace=house&thread=many", 1280)
	p.wants(t, fmt.Sprintf("many / x%d", size))
	p.scroll(t, "main .body", 38*size, 1000)
	p.await(t, "[...document.querySelectorAll('main [role=row] a')].at(-1)?.textContent === 'many / x1'")
	if got := value[string](t, p, "document.querySelector('[role=table]').ariaRowCount"); got != strconv.Itoa(size+1) {
		t.Errorf("%s rows", got)
	}
	p.do(t, chromedp.Evaluate[chromedp.Void]("document.querySelector('main .body').scrollTop = 0"))
	p.await(t, fmt.Sprintf("document.querySelector('main .body [role=row] a').textContent === 'many / x%d'", size))
	p.scroll(t, "main .body", 38*size, 10)
}

// TestLargeTree scrolls through 10,000 folders.
func TestLargeTree(t *testing.T) {
	if testing.Short() {
		t.Skip("10,000 folders take a while")
	}
	t.Parallel()

	const size = 10_000
	dsn := storetest.SQLite(t)
	g := serve(t, "--store", dsn)
	house(t, g, "rules\n")
	storetest.Exec(t, dsn, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO tree_folders (workspace_id, id, parent_id, name, created_at, created_by) SELECT 'house', 'f' || i, NULL, 'Folder ' || i, 0, '' FROM n`, size))
	p := open(t, g.url+"/documents/house/root", 1280)
	p.await(t, "document.querySelectorAll('[role=treeitem]').length > 10")
	p.scroll(t, ".tree", 30*size, 1)
	p.await(t, fmt.Sprintf("[...document.querySelectorAll('[role=treeitem]')].some(e => e.dataset.key === 'folder:f%d')", size))
	p.tabTo(t, "[role=treeitem]") // the one that has the focus is an element wherever the tree is scrolled to
	p.press(t, kb.End)
	p.awaitFocus(t, fmt.Sprintf("[data-key='folder:f%d']", size))
}

// least is the least page of this kind: its script adds one element.
func least(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/app.css":
		w.Header().Set("Content-Type", "text/css")
		_, _ = io.WriteString(w, "body { color: black }")
	case "/app.js":
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, "document.body.append(document.createElement('main'))")
	default:
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!doctype html><link rel="icon" href="data:,"><link rel="stylesheet" href="/app.css"><script type="module" src="/app.js"></script>`)
	}
}

// worked is the processor time of the page's main thread, in ms, since its document was made.
func (p *page) worked(t *testing.T) float64 {
	t.Helper()
	got, err := chromedp.Call(p.ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range got.Metrics {
		if m.Name == "TaskDuration" {
			return 1000 * m.Value
		}
	}
	t.Fatal("the browser does not measure its tasks")
	return 0
}

// forget makes the next visit to an origin the first one.
func (p *page) forget(t *testing.T, origin string) {
	t.Helper()
	_, err := chromedp.Call(p.ctx, network.ClearBrowserCache, cdp.Empty{})
	if err == nil {
		_, err = chromedp.Call(p.ctx, storage.ClearDataForOrigin, storage.ClearDataForOriginParams{Origin: origin, StorageTypes: "all"})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFirstView logs how long it takes until a view can be used, at first visits and again, beside the least that the
// browser itself takes for a page with a stylesheet and a script.
func TestFirstView(t *testing.T) {
	if testing.Short() {
		t.Skip("it only measures")
	}
	g := serve(t)
	house(t, g, "rules\n")
	g.turn(t, "one")
	floor := httptest.NewServer(http.HandlerFunc(least))
	t.Cleanup(floor.Close)
	const visits = 15
	for _, view := range []struct{ origin, path, usable string }{
		{floor.URL, "/least", "main"},
		{g.url, "/manifests", "main [role=row] a"},
		{g.url, "/documents/house/root", ".cm-content"},
		{g.url, "/plugins", "main table td"},
		{g.url, "/try", "main button[type=submit]"},
	} {
		p := open(t, "about:blank", 1280)
		p.onNewDocument(t, fmt.Sprintf(`new MutationObserver(() => document.querySelector(%q) && (window.usable ??= performance.now())).observe(document, {childList: true, subtree: true})`, view.usable))
		if _, err := chromedp.Call(p.ctx, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}); err != nil {
			t.Fatal(err)
		}
		for _, when := range []string{"again", "first visit"} { // the first of all begins the browser
			var after, work []float64
			for range visits {
				if when == "first visit" {
					p.forget(t, view.origin)
				}
				p.do(t, chromedp.Navigate(view.origin+view.path))
				p.await(t, "window.usable > 0")
				after, work = append(after, value[float64](t, p, "window.usable")), append(work, p.worked(t))
				p.do(t, chromedp.Navigate("about:blank"))
			}
			slices.Sort(after)
			slices.Sort(work)
			t.Logf("%-22s %-12s usable after %3.0f ms (%.0f to %.0f), of which the page's thread worked %.0f ms: medians of %d",
				view.path, when, after[visits/2], after[0], after[visits-1], work[visits/2], visits)
		}
	}
}
