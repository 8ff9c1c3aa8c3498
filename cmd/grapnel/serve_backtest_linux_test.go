package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/agents/backtest"
)

const judging = `version: 1
plugins:
  - name: house
    builtin: scripted
    grants: {contribute: [decision], see: [arguments]}
    config:
      hooks:
        - id: guard
          phase: tool.pre_call
          when: input.tool == "Bash"
          respond: [{kind: decision, verdict: deny, reason: no shell here}]
`

// judges serves configurations in such a home.
func judges(t *testing.T, copies int) *served {
	t.Helper()
	dir := homeOfCodex(t, copies)
	put(t, filepath.Join(dir, "grapnel.yaml"), judging)
	put(t, filepath.Join(dir, "slow.yaml"), strings.Replace(judging, "          respond", "          delay: 100ms\n          respond", 1))
	put(t, filepath.Join(dir, "bad.yaml"), "version: 1\nplugins: 7\n")
	return serveIn(t, dir, "--config", filepath.Join(dir, "grapnel.yaml"), "--socket", filepath.Join(dir, "g.sock"))
}

// homeOfCodex is a home with transcripts of Codex, and so many copies of them.
func homeOfCodex(t *testing.T, copies int) string {
	t.Helper()
	dir, home := t.TempDir(), filepath.Join("..", "..", "internal", "agents", "testdata", "home", ".codex")
	if err := copyTranscripts(home, filepath.Join(dir, ".codex"), theirDir); err != nil {
		t.Fatal(err)
	}
	files := must(filepath.Glob(filepath.Join(dir, ".codex", "sessions", "*", "*", "*", "*.jsonl")))(t)
	for i := range copies {
		data := must(os.ReadFile(files[i%len(files)]))(t)
		put(t, strings.TrimSuffix(files[i%len(files)], ".jsonl")+fmt.Sprintf("-%d.jsonl", i), string(data))
	}
	return dir
}

// TestServeBacktestDefaults: without a configuration the rules that come along judge.
func TestServeBacktestDefaults(t *testing.T) {
	t.Parallel()

	dir := homeOfCodex(t, 0)
	s := serveIn(t, dir, "--socket", filepath.Join(dir, "g.sock"))
	c := s.dial(t, s.target())
	list := answer[struct{ Configs []gateway.BacktestConfig }](t, c, "backtest/configs", nil).Configs
	if len(list) != 1 || !list[0].InForce {
		t.Fatalf("configurations: %+v", list)
	}
	r := answer[ranBacktest](t, c, "backtest/run", object{"config": list[0].Name, "days": 7})
	if len(r.Offered) != 4 || r.Calls[backtest.Deny] == 0 {
		t.Errorf("%+v", r)
	}
}

type ranBacktest struct {
	backtest.Report

	Hint string
}

// TestServeBacktest has a child judge transcripts.
func TestServeBacktest(t *testing.T) {
	t.Parallel()

	s := judges(t, 0)
	c := s.dial(t, s.target())
	list := answer[struct{ Configs []gateway.BacktestConfig }](t, c, "backtest/configs", nil).Configs
	if len(list) != 3 || list[0].Name != "grapnel.yaml" || !list[0].InForce || list[0].Error != "" ||
		list[1].Name != "bad.yaml" || !strings.HasPrefix(list[1].Error, "bad.yaml:2:10: ") || list[2].Name != "slow.yaml" {
		t.Errorf("configurations: %+v", list)
	}
	r := answer[ranBacktest](t, c, "backtest/run", object{"config": "grapnel.yaml", "days": 7, "agent": "codex"})
	if r.Calls[backtest.Deny] == 0 || len(r.Rows) == 0 || r.Rows[0].By[0].Hook != "house.guard" || r.Hint == "" {
		t.Errorf("%+v", r)
	}
	r = answer[ranBacktest](t, c, "backtest/run", object{"config": "grapnel.yaml", "against": "slow.yaml", "days": 7})
	if len(r.Rows) != 0 || !strings.Contains(r.Summary, "alike") {
		t.Errorf("compared with what decides alike: %+v", r)
	}
	for from, want := range map[string]string{"claude-code": "there are no transcripts of claude-code", "log": "grapnel.db has no records since "} {
		err := c.Call(t.Context(), "backtest/run", object{"config": "grapnel.yaml", "days": 7, "agent": from}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("nothing to judge: %v", err)
		}
	}
	if code, said := s.end(t, syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// TestServeBacktestCancelled: a child that is interrupted, also by the end of its gateway, has kept what it has judged.
func TestServeBacktestCancelled(t *testing.T) {
	t.Parallel()

	s := judges(t, 200)
	c := s.dial(t, s.target())
	query := object{"config": "slow.yaml", "days": 7}
	begin := func(c *heard) (done chan ranBacktest) {
		done = make(chan ranBacktest, 1)
		go func() {
			var r ranBacktest
			r.Hint = fmt.Sprint(c.Call(t.Context(), "backtest/run", query, &r)) // the gateway may end
			done <- r
		}()
		for pace := (backtest.Pace{}); pace.Files < 40; {
			select {
			case note := <-c.notes:
				_, params, _ := strings.Cut(note, " ")
				if err := json.Unmarshal([]byte(params), &pace); err != nil {
					t.Error(err)
				}
			case r := <-done:
				t.Fatalf("it has ended: %+v", r)
			}
		}
		return done
	}
	done := begin(c)
	c.ask(t, "backtest/cancel", nil)
	first := <-done
	if !first.Partial || first.Judged() == 0 || first.Read.Files >= 200 {
		t.Errorf("cancelled: partial %v, %d calls of %d files", first.Partial, first.Judged(), first.Read.Files)
	}
	done = begin(s.dial(t, s.target())) // which has heard nothing of the first
	child := fmt.Sprintf("--config=%s/slow.yaml", s.dir)
	if !runs(t, child) {
		t.Error("there is no child")
	}
	s.end(t, syscall.SIGKILL)
	<-done
	for tick := time.Tick(20 * time.Millisecond); runs(t, child); <-tick { // until it notices
	}
}

// runs reports whether a program runs that was started with an argument.
func runs(t *testing.T, arg string) bool {
	t.Helper()
	for _, file := range must(filepath.Glob("/proc/[0-9]*/cmdline"))(t) {
		if data, _ := os.ReadFile(file); slices.Contains(strings.Split(string(data), "\x00"), arg) { // it may have ended
			return true
		}
	}
	return false
}
