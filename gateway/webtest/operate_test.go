package webtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

const failing = `version: 1
plugins:
  - name: house
    builtin: scripted
    config: {hooks: [{id: look, phase: turn.post_turn, error: {code: no_house, message: "The house is closed."}}]}
`

const mended = `version: 1
plugins:
  - name: house
    builtin: scripted
    config: {hooks: [{id: look, phase: turn.post_turn}]}
`

// configured serves a configuration, over an embedded database.
func configured(t *testing.T, config string, args ...string) (g *gateway, file, dsn string) {
	t.Helper()
	file, dsn = filepath.Join(t.TempDir(), "grapnel.yaml"), storetest.SQLite(t)
	rewrite(t, file, config)
	return serve(t, append(args, "--config", file, "--store", dsn)...), file, dsn
}

func rewrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// awaitCall waits until a method answers as wanted.
func (g *gateway) awaitCall(t *testing.T, method string, params object, want func(object) bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		got := g.call(t, method, params)
		if want(got) {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("%s: %v", method, got)
		}
	}
}

// rows counts rows of a database.
func rows(t *testing.T, dsn, from string, args ...any) int {
	t.Helper()
	var n int
	if err := storetest.Raw(t, dsn).QueryRowContext(t.Context(), "SELECT count(*) FROM "+from, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// reload reloads the configuration with the button of the plugins' view.
func (p *page) reload(t *testing.T, g *gateway, shows string) {
	t.Helper()
	p.do(t, chromedp.Navigate(g.url+"/plugins"), chromedp.Click("//button[contains(., 'Reload configuration')]"))
	p.await(t, fmt.Sprintf("document.querySelector('dialog')?.innerText.includes(%q)", shows))
}

// TestDeadJobs: two jobs have died of a plugin that fails. The configuration is mended and reloaded; then one job is
// retried, and the other removed.
func TestDeadJobs(t *testing.T) {
	t.Parallel()

	g, file, dsn := configured(t, failing)
	g.call(t, "workspace/create", object{"name": "W", "id": "w"})
	for _, turn := range []string{"one", "two"} {
		g.awaitCall(t, "phase/dispatch", object{ // until the plugin has started
			"phase": "turn.post_turn", "context": object{"workspace_id": "w", "thread_id": "t", "turn_id": turn}, "input": object{"status": "succeeded"},
		}, func(r object) bool { return strings.Contains(fmt.Sprint(r), "state:queued") })
	}
	ids := map[any]any{}
	g.awaitCall(t, "jobs/list", object{"state": "dead"}, func(r object) bool {
		list, _ := r["jobs"].([]any)
		for _, row := range list {
			job, _ := row.(object)
			ids[job["turn_id"]] = job["id"]
		}
		return len(list) == 2
	})

	p := open(t, g.url+"/plugins", 1280)
	rewrite(t, file, "version: 1\nplugins: 7\n")
	p.reload(t, g, "Nothing was changed.")
	rewrite(t, file, mended)
	p.reload(t, g, "in force")

	p.do(t, chromedp.Navigate(g.url+"/jobs?state=dead"))
	p.wants(t, "plugin_error")
	p.choose(t, "w / t / one")
	p.do(t, chromedp.Click("//button[contains(., 'Retry 1')]"))
	p.await(t, "document.querySelectorAll('main tbody tr').length === 1")
	g.awaitCall(t, "jobs/list", object{}, func(r object) bool { list, _ := r["jobs"].([]any); return len(list) == 0 })
	if n := rows(t, dsn, "jobs WHERE id = ? AND state <> 'done'", ids["one"]); n != 0 {
		t.Errorf("the job that was retried is not done")
	}

	p.choose(t, "w / t / two")
	p.do(t, chromedp.Click("//button[contains(., 'Remove 1')]"), chromedp.Click("//dialog//button[contains(., 'Remove')]"))
	p.wants(t, "No job is dead")
	p.awaitFocus(t, "h1") // the buttons are gone
	if n := rows(t, dsn, "jobs WHERE id = ?", ids["two"]); n != 0 {
		t.Errorf("the job that was removed is still there")
	}
}

// choose ticks the row that has a text.
func (p *page) choose(t *testing.T, text string) {
	t.Helper()
	p.do(t, chromedp.Click(fmt.Sprintf("//tr[contains(., '%s')]//input[@type='checkbox']", text)))
	p.await(t, "document.querySelectorAll('tr.chosen').length === 1")
}

// TestForget: a memory is forgotten; its text is gone from the database.
func TestForget(t *testing.T) {
	t.Parallel()

	g, _ := demo(t)
	config, err := os.ReadFile(g.args[1])
	if err != nil {
		t.Fatal(err)
	}
	dsn := regexp.MustCompile(`sqlite:[^"'}\s]*memory[^"'}\s]*`).FindString(string(config))
	const lisbon = "memory_items WHERE text LIKE '%Lisbon%' OR evidence LIKE '%Lisbon%'"
	if rows(t, dsn, lisbon) == 0 {
		t.Fatalf("%s knows nothing of Lisbon", dsn)
	}
	p := open(t, g.url+"/memory?workspace_id=demo", 1280)
	p.choose(t, "Lisbon")
	p.do(t, chromedp.Click("//button[contains(., 'Forget 1')]"), chromedp.Click("//dialog//button[contains(., 'Forget')]"))
	p.await(t, "document.querySelector('dialog') === null && !document.querySelector('main').innerText.includes('Lisbon')")
	if n := rows(t, dsn, lisbon); n != 0 {
		t.Errorf("the database has %d rows of it", n)
	}
}

// TestRelease: a plugin whose program is absent is in quarantine. The program is put there, and the plugin released.
func TestRelease(t *testing.T) {
	t.Parallel()

	at := filepath.Join(t.TempDir(), "late")
	g, _, _ := configured(t, "version: 1\nplugins:\n  - name: late\n    command: "+at+"\n    config: {hooks: []}\n",
		"--token-file", tokenFile(t, map[string]string{"boss": everything})) // programs are not for everybody
	p := open(t, g.url+"/plugins/late", 1280)
	p.logIn(t, "boss")
	p.wants(t, "quarantined")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", at, "./plugins/scripted/cmd/...")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.do(t, chromedp.Click("//button[contains(., 'Release from quarantine')]"))
	p.wants(t, "released: ready")
	p.await(t, "!document.querySelector('h1').innerText.includes('quarantined')")
	p.await(t, "document.activeElement.matches('h1')") // the button is gone
}
