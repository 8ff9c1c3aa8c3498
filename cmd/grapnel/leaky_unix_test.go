//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// leakyVisibilities are those of plugins whose words are called safe.
func leakyVisibilities() []phases.Visibility {
	return []phases.Visibility{phases.VisibilityInternal, phases.VisibilityDebug, phases.VisibilityUserAudit, phases.VisibilityUserVisible}
}

// leakyConfig declares plugins with a hook for each place where words can be put, and one for each visibility of words
// that are safe. A place that ends its process, or keeps it from starting, has a plugin of its own; one is omitted.
func leakyConfig(store, without string) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "version: 1\nstore: %s\nbudgets: {turn: {time: 60s}, phases: {turn.pre_prompt_compile: {time: 30s}}}\nplugins:\n", store)
	declare := func(name string, args ...string) {
		fmt.Fprintf(b, "  - name: %s\n    command: ./badplugin\n    args: [leaky, '%s']\n    on_failure: fail_open\n    limits: {start: 30s}\n", name, strings.Join(args, "', '"))
		b.WriteString("    grants: {contribute: ['*'], sections: ['*'], tools: ['*'], domains: ['*'], host: ['*']}\n    subscriptions:\n")
		for _, arg := range args {
			if hook, ok := strings.CutPrefix(arg, "hook="); ok {
				fmt.Fprintf(b, "      %s.%s: {timeout: 20s, on_failure: best_effort}\n", name, strings.Replace(hook, "/", "_", 1))
			}
		}
	}
	var together []string
	for _, place := range leakyPlaces() {
		hook := "hook=" + place + "/" + string(phases.VisibilityUserVisible)
		switch {
		case place == without || strings.HasPrefix(place, "tool"):
		case slices.Contains([]string{"crash", "version", "after", "when", "noise", "exit"}, place):
			declare(place, hook)
		default:
			together = append(together, hook)
		}
	}
	for _, v := range leakyVisibilities() {
		declare("open_"+string(v), "hook=safe_remark/"+string(v))
	}
	declare("together", together...)
	declare("tools", "tool=tool", "tool=tool_panic", "tool=tool_remark", "hook=none/debug")
	return b.String()
}

// leakySurface is what somebody was shown.
type leakySurface struct {
	name     string
	audience phases.Audience
	text     string
	// remarks says that it shows remarks of hooks.
	remarks bool
}

// TestLeaky: a plugin puts a secret into every place where it can put words. None
// shows it but the operator's log, where all of them are; words that are called
// safe are shown to those whom the visibility opens them to.
func TestLeaky(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg, tokens, db := filepath.Join(dir, "grapnel.yaml"), filepath.Join(dir, "tokens.yaml"), filepath.Join(dir, "grapnel.db")
	plant(t, dir, map[string]string{
		"badplugin": ourselves(t), "grapnel.yaml": leakyConfig("sqlite:"+db, ""),
		"tokens.yaml": "tokens:\n" + tokenLine("user", "one", "compile", "dispatch", "read") + tokenLine("boss", "two", "admin", "compile", "dispatch", "read", "write"),
	})
	s := serveIn(t, dir, "--config", cfg, "--token-file", tokens, "--log-level", "debug", "--listen", "127.0.0.1:0")
	for _, name := range []string{"crash", "together", "tools", "open_internal", "open_debug", "open_user_audit", "open_user_visible"} {
		s.errs.until(t, "msg=plugin plugin="+name+" state=ready")
	}
	shown := leakyCalls(t, s)
	_, log := s.end(t, syscall.SIGTERM)
	// A command does not begin with a condition that cannot be compiled: the mistake,
	// with its place, is what it ends with.
	put(t, cfg, leakyConfig("sqlite:"+db, "when"))
	shown = append(shown, leakyCommands(t, dir, cfg, &log)...)
	for _, file := range []string{db, db + "-wal"} {
		data, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		shown = append(shown, leakySurface{name: "the database " + filepath.Base(file), audience: phases.AudienceAudit, text: string(data)})
	}
	for _, surface := range shown {
		t.Run(surface.name, func(t *testing.T) { checkLeaky(t, &surface) })
	}
	for _, place := range leakyPlaces() {
		// Details of an audit event are for its consumers.
		if place != "audit" && !strings.Contains(log, leakySecret(place)) {
			t.Errorf("the log has lost what was said in %s", place)
		}
	}
	if t.Failed() {
		t.Logf("the log:\n%s", log)
	}
}

// checkLeaky looks for secrets in what was shown.
func checkLeaky(t *testing.T, s *leakySurface) {
	t.Helper()
	if s.text == "" && !strings.HasPrefix(s.name, "the database") {
		t.Error("it shows nothing at all")
	}
	for _, place := range leakyPlaces() {
		if place == "safe_remark" || place == "safe_error" {
			continue // these are user_visible
		}
		if i := strings.Index(s.text, leakySecret(place)); i >= 0 {
			t.Errorf("what was said in %s: …%s…", place, s.text[max(0, i-200):min(len(s.text), i+100)])
		}
	}
	if !s.remarks {
		return
	}
	// One row for each visibility: those that are open have the words.
	want := 1 // the place itself
	for _, v := range leakyVisibilities() {
		if v.Opens(s.audience) {
			want++
		}
	}
	if got := strings.Count(s.text, leakySecret("safe_remark")); got != want {
		t.Errorf("%d remarks with safe words, want %d", got, want)
	}
}

// leakyCalls calls a gateway over HTTP and WebSocket as a user and an administrator.
func leakyCalls(t *testing.T, s *served) []leakySurface {
	t.Helper()
	var shown []leakySurface
	turn := object{"workspace_id": "w", "thread_id": "t", "turn_id": "1"}
	dial(t, s.target(), "two").ask(t, "workspace/create", object{"id": "w", "name": "W"})
	for _, who := range []struct {
		name, token, target string
		audience            phases.Audience
	}{
		{"user by HTTP", "one", s.target(), phases.AudienceUser},
		{"user by WebSocket", "one", wsOf(s.target()), phases.AudienceUser},
		{"admin", "two", s.target(), phases.AudienceOperator},
	} {
		h := dial(t, who.target, who.token)
		add := func(what string, remarks bool, text string) {
			shown = append(shown, leakySurface{who.name + ": " + what, who.audience, text, remarks})
		}
		add("phase/dispatch", true, string(h.ask(t, "phase/dispatch", object{"phase": "turn.pre_prompt_compile", "context": object{"workspace_id": "w"}})))
		add("turn/compile", false, string(h.ask(t, "turn/compile", object{"turn": turn})))
		var begun struct {
			Handle string `json:"handle"`
		}
		if err := json.Unmarshal(h.ask(t, "turn/begin", object{"turn": turn}), &begun); err != nil {
			t.Fatal(err)
		}
		add("turn/compile of a round", false, string(h.ask(t, "turn/compile", object{"handle": begun.Handle, "input": object{"tool_calling": true}})))
		add("turn/dispatch", true, string(h.ask(t, "turn/dispatch", object{"handle": begun.Handle, "phase": "turn.pre_prompt_compile"})))
		add("manifest/list", false, string(h.ask(t, "manifest/list", object{"workspace_id": "w"})))
		for _, tool := range []string{"tool", "tool_panic", "tool_remark"} {
			add("tool/call "+tool, false, string(h.ask(t, "tool/call", object{"handle": begun.Handle, "tool": "t_" + tool, "arguments": object{}})))
		}
		add("turn/end", false, string(h.ask(t, "turn/end", object{"handle": begun.Handle, "end": object{"status": "succeeded"}, "wait": true})))
	}
	boss := dial(t, s.target(), "two")
	shown = append(shown, leakySurface{"status", phases.AudienceOperator, string(boss.ask(t, "status", nil)), false})
	for _, path := range []string{"/readyz", "/metrics"} {
		shown = append(shown, leakySurface{path, phases.AudienceUser, fetchPath(t, s.target(), path), false})
	}
	return shown
}

// fetchPath gets a page of a gateway.
func fetchPath(t *testing.T, target, path string) string {
	t.Helper()
	rq := must(http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(target, "/")+path, http.NoBody))(t)
	rq.Header.Set("Authorization", "Bearer two")
	res, err := http.DefaultClient.Do(rq)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body := must(io.ReadAll(res.Body))(t)
	return string(body)
}

// leakyCommands runs the commands that show what plugins do. Their logs are added to
// the log.
func leakyCommands(t *testing.T, dir, cfg string, log *string) []leakySurface {
	t.Helper()
	var shown []leakySurface
	for _, c := range []struct {
		remarks bool
		args    []string
	}{
		{true, []string{"dispatch", "turn.pre_prompt_compile"}},
		{true, []string{"dispatch", "turn.pre_prompt_compile", "--json"}},
		{false, []string{"compile", "--json"}},
		{false, []string{"plugin", "list", "--json"}},
		{false, []string{"manifest", "show", "latest"}},
		{false, []string{"manifest", "show", "latest", "--json"}},
		{false, []string{"jobs", "list", "--json"}},
	} {
		_, out, errs := grapnelIn(t, dir, append(c.args, "--config", cfg, "--log-level", "info")...)
		if *log += errs; out == "" {
			t.Errorf("%v: %s", c.args, errs)
		}
		shown = append(shown, leakySurface{"grapnel " + strings.Join(c.args, " "), phases.AudienceOperator, out, c.remarks})
	}
	return shown
}
