package webtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// demo serves what "grapnel demo" has kept.
func demo(t *testing.T) (g *gateway, manifest string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	c := exec.CommandContext(t.Context(), program, "demo", "--dir", dir)
	c.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+dir)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g = serve(t, "--config", filepath.Join(dir, "grapnel.yaml"))
	return g, g.prompt(t)
}

// prompt is the newest manifest of a prompt.
func (g *gateway) prompt(t *testing.T) string {
	t.Helper()
	rows, _ := g.call(t, "manifest/overview", object{"limit": 50})["rows"].([]any)
	for _, r := range rows {
		if row, _ := r.(object); row["kind"] == "prompt" {
			id, _ := row["manifest_id"].(string)
			return id
		}
	}
	t.Fatal("no prompt is kept")
	return ""
}

// view is an address, and what it must show.
type view struct{ name, path, shows string }

// views are all views, with something to see.
func views(t *testing.T, g *gateway, manifest string) []view {
	t.Helper()
	g.call(t, "workspace/create", object{"name": "House", "id": "house"})
	g.call(t, "folder/create", object{"workspace_id": "house", "name": "Kitchen", "id": "kitchen"})
	g.call(t, "thread/create", object{"workspace_id": "house", "folder_id": "kitchen", "title": "Dinner", "id": "dinner"})
	g.call(t, "thread/agents_doc/save", object{"workspace_id": "house", "content": "# Rules\n\n- Speak plainly.\n"})
	rows, _ := g.call(t, "manifest/overview", object{"limit": 50})["rows"].([]any)
	earlier := manifest
	for _, r := range rows {
		if row, _ := r.(object); row["kind"] == "prompt" {
			earlier, _ = row["manifest_id"].(string) // the first in the end
		}
	}
	of := "/manifests/" + manifest
	return []view{
		{"manifests", "/manifests", "demo / 3"},
		{"manifest", of, " of text, "},
		{"manifest-ledger", of + "?tab=ledger", "weather.forecast"},
		{"manifest-why", of + "?tab=why&about=weather.forecast", "it was still working when its time was up"},
		{"manifest-omitted", of + "?tab=omitted", "left out"},
		{"manifest-diagnostics", of + "?tab=diagnostics", "Message"},
		{"manifest-tools", of + "?tab=tools", "list_files"},
		{"manifest-record", of + "?tab=record", "Content hash"},
		{"compare", "/manifests/compare?a=" + earlier + "&b=" + manifest, "agents_md"},
		{"blame", "/manifests/blame?thread=demo", "the text of a section changed"},
		{"verify", "/manifests/verify", "Is the log whole?"},
		{"search", "/manifests/search?section=agents_md", "in 1 thread"},
		{"documents", "/documents/house", "1 folder"},
		{"document", "/documents/house/root", "Speak plainly"},
		{"plugins", "/plugins", "no hook has run yet"},
		{"plugin", "/plugins/house", "house.rules"},
		{"try", "/try?phase=tool.pre_call", "Dispatch"},
		{"backtest", "/backtest", "Compared with"},
		{"jobs", "/jobs", "Jobs"},
		{"memory", "/memory?workspace_id=demo", "Lisbon"},
		{"events", "/events", "in_force"},
	}
}

// TestViews opens every view, dark and light, wide and narrow: it shows what it must, breaks no rule of accessibility,
// and is as wide as the screen. All links to views and all marks are within it. With GRAPNEL_SHOTS its picture goes into that directory.
func TestViews(t *testing.T) {
	t.Parallel()

	g, manifest := demo(t)
	list := views(t, g, manifest)
	rules := axe(t)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			p := open(t, g.url+"/", width)
			p.prefer(t, scheme)
			for _, v := range list {
				p.do(t, chromedp.Navigate(g.url+v.path))
				p.await(t, fmt.Sprintf("document.querySelector('main') && document.querySelector('main').innerText.includes(%q) && !document.querySelector('.busy')", v.shows))
				name := fmt.Sprintf("%s-%s-%d", v.name, scheme, width)
				p.shoot(t, name)
				if wide := value[int](t, p, "document.documentElement.scrollWidth"); wide > int(width) {
					t.Errorf("%s: the page is %d pixels wide", name, wide)
				}
				p.await(t, "[...document.querySelectorAll('nav.side a, .long .tag')].map(e => e.getBoundingClientRect()).every(r => r.left >= 0 && r.right <= innerWidth)")
				p.await(t, "[...document.querySelectorAll('.long .below')].every(e => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.parentElement.clientHeight)")
				p.wantAccessible(t, name, rules)
			}
		}
	}
}

// prefer sets the colour scheme of the system.
func (p *page) prefer(t *testing.T, scheme string) {
	t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// shoot keeps a picture where GRAPNEL_SHOTS says.
func (p *page) shoot(t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("GRAPNEL_SHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}

// axe is the source of axe-core, which "npm ci" in gateway/internal/web has fetched.
func axe(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", "internal", "web", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Logf("accessibility is not checked: run \"npm ci\" in gateway/internal/web first (%v)", err)
		return ""
	}
	return string(source)
}

// wantAccessible runs the rules of axe-core.
func (p *page) wantAccessible(t *testing.T, name, rules string) {
	t.Helper()
	if rules == "" {
		return
	}
	const run = `axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(
		r.violations.map(v => v.id + ": " + v.nodes.map(n => n.target.join(" ") + " " + (n.any[0]?.message ?? n.failureSummary)).slice(0, 3).join("; "))))`
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[json.RawMessage](rules+"; 0")); err != nil {
		t.Fatal(err)
	}
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](run, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var violations []string
	if err := json.Unmarshal([]byte(text), &violations); err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		t.Errorf("%s: %s", name, v)
	}
}

// TestPolicy: what the content security policy forbids is stopped, and the tests hear of it.
func TestPolicy(t *testing.T) {
	t.Parallel()

	g := serve(t)
	p := open(t, g.url+"/", 1280)
	const violation = "policy violation: require-trusted-types-for"
	p.pardon(violation)
	p.pardon("TrustedScript")
	p.await(t, "document.querySelector('main h1') !== null")
	if value[bool](t, p, "(() => { try { document.createElement('script').textContent = '1'; return true } catch { return false } })()") {
		t.Error("a script can be made of a text")
	}
	p.awaitMistake(t, violation)
}

// awaitMistake waits for a mistake.
func (p *page) awaitMistake(t *testing.T, part string) {
	t.Helper()
	for began := time.Now(); !p.has(part); {
		if time.Since(began) > patience {
			t.Fatalf("no mistake is %q", part)
		}
		p.await(t, "new Promise(done => setTimeout(() => done(true), 50))")
	}
}

func (p *page) has(part string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.mistakes, func(m string) bool { return strings.Contains(m, part) })
}
