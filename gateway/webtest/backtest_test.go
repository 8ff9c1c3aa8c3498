package webtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

const guarding = `version: 1
plugins:
  - name: house
    builtin: scripted
    grants: {contribute: [decision], see: [arguments]}
    config:
      hooks:
        - {id: guard, phase: tool.pre_call, when: input.tool == "Bash", respond: [{kind: decision, verdict: deny, reason: no shell here}]}
`

// transcripts puts Codex's into a home, as if they had been written on the last days.
func transcripts(t *testing.T, home string) {
	t.Helper()
	from := filepath.Join("..", "..", "internal", "agents", "testdata", "home", ".codex", "sessions")
	files, err := filepath.Glob(filepath.Join(from, "*", "*", "*", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d transcripts, %v", len(files), err)
	}
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		below, err := filepath.Rel(from, file)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(home, ".codex", "sessions", below)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		rewrite(t, to, strings.ReplaceAll(string(data), "2026-11-29", time.Now().UTC().AddDate(0, 0, -1-i%3).Format(time.DateOnly)))
	}
}

// TestBacktest runs one that finds nothing, which says why; one with a report, whose calls can be looked at, which breaks no rule of
// accessibility and stays while another view is shown; and one that is cancelled.
func TestBacktest(t *testing.T) {
	t.Parallel()

	home := t.TempDir()
	config := filepath.Join(home, "etc", "grapnel.yaml")
	if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
		t.Fatal(err)
	}
	rewrite(t, config, guarding)
	rewrite(t, filepath.Join(filepath.Dir(config), "slow.yaml"), strings.Replace(guarding, "respond:", "delay: 4s, respond:", 1))
	rewrite(t, filepath.Join(filepath.Dir(config), "bad.yaml"), "version: 1\nplugins: 7\n")
	g := serve(t, "--config", config)
	g.stop(t)
	g.env = append(g.env, "HOME="+home, "CODEX_HOME=", "CLAUDE_CONFIG_DIR=", "XDG_CACHE_HOME="+home)
	g.start(t, "127.0.0.1:0")

	p := open(t, g.url+"/backtest", 1280)
	p.wants(t, "grapnel.yaml (in force)")
	p.await(t, "[...document.querySelectorAll('option:disabled')].some(o => o.innerText.startsWith('bad.yaml:2:'))")
	const run = "//main//button[contains(., 'Run')]"
	p.do(t, chromedp.Click(run))
	p.wants(t, "there are no transcripts of ")

	transcripts(t, home)
	p.do(t, chromedp.Click(run))
	p.wants(t, "would have been denied: ")
	p.wants(t, "house.guard")
	p.wants(t, "ran then without a refusal")
	p.await(t, "document.querySelectorAll('.days rect.hits').length > 1")
	p.do(t, chromedp.Click("//nav//a[contains(., 'Jobs')]"), chromedp.WaitVisible("//h1[. = 'Jobs']"), chromedp.Click("//nav//a[contains(., 'Backtest')]"))
	p.wants(t, "would have been denied: ") // it was kept
	rules := axe(t)
	p.wantAccessible(t, "backtest", rules)
	p.shoot(t, "backtest-report")
	p.do(t, chromedp.Click("//main//td//button"))
	p.await(t, "['no shell here', 'house.guard', 'Session', 'Prompt'].every(w => document.querySelector('dialog')?.innerText.includes(w))")
	p.wantAccessible(t, "backtest call", rules)
	p.shoot(t, "backtest-call")
	p.do(t, chromedp.Click("//dialog//button[. = 'Close']"))

	p.do(t, chromedp.Evaluate[chromedp.Void](`(() => { const s = document.querySelector('main select'); s.value = 'slow.yaml'; s.dispatchEvent(new Event('change')) })()`), chromedp.Click(run))
	p.wants(t, " a second, ")
	p.do(t, chromedp.Click("//main//button[. = 'Cancel']"))
	p.wants(t, "It was interrupted")
}
