//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/gateway"
)

// houseConfig is a configuration whose prompt has a text.
func houseConfig(text, rest string) string {
	return fmt.Sprintf(`version: 1
plugins:
  - name: house
    builtin: scripted
    grants: {contribute: [prompt_section], sections: [house_rules]}
    config:
      hooks:
        - id: rules
          phase: turn.pre_prompt_compile
          respond: [{kind: prompt_section, section_id: house_rules, content: %q}]
%s`, text, rest)
}

// reloads is a gateway whose files a test changes.
type reloads struct {
	*served

	dir, config string
	client      *heard
	turns       int
}

// serveFiles starts it with a configuration.
func serveFiles(t *testing.T, text string, args ...string) *reloads {
	t.Helper()
	r := &reloads{dir: t.TempDir()}
	r.config = filepath.Join(r.dir, "grapnel.yaml")
	r.write(t, text)
	r.served = serveIn(t, r.dir, append([]string{"--config", r.config}, args...)...)
	r.errs.until(t, "state=ready") // nothing requires the plugin, so the gateway does not wait for it
	r.client = dial(t, r.target(), "")
	r.client.ask(t, "workspace/create", object{"id": "w", "name": "W"})
	return r
}

func (r *reloads) write(t *testing.T, text string) {
	t.Helper()
	put(t, r.config, text)
}

// prompts wants a text in the prompt of the next turn.
func (r *reloads) prompts(t *testing.T, text string) {
	t.Helper()
	r.turns++
	answer := r.client.ask(t, "turn/compile", object{"turn": object{"workspace_id": "w", "thread_id": "t", "turn_id": strconv.Itoa(r.turns)}})
	if !strings.Contains(string(answer), text) {
		t.Errorf("the prompt lacks %q: %.300s", text, answer)
	}
}

// status asks in another process.
func (r *reloads) status(t *testing.T) (s statusResult, text string) {
	t.Helper()
	code, out, errs := grapnelIn(t, r.dir, "status", "--json")
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != exitOK {
		t.Fatalf("%d %v %s", code, err, errs)
	}
	_, text, _ = grapnelIn(t, r.dir, "status")
	return s, text
}

// TestServeReload: SIGHUP and "config reload" put a changed configuration in force,
// and one with a mistake changes nothing: every surface names the mistake and its place.
func TestServeReload(t *testing.T) {
	t.Parallel()

	root := t.TempDir()
	r := serveFiles(t, houseConfig("Be brief.", ""))
	r.prompts(t, "Be brief.")
	if s, _ := r.status(t); s.Reload != nil || s.Config != r.config {
		t.Errorf("before: %q, %+v", s.Config, s.Reload)
	}

	r.write(t, houseConfig("Be exact.", fmt.Sprintf("serve: {roots: [%q]}\nbudgets: {turn: {time: 7s}}\n", root)))
	if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	r.errs.until(t, "reload by SIGHUP: "+r.config+" is in force, changed: budgets, plugins.house, serve")
	r.prompts(t, "Be exact.")
	r.client.ask(t, "turn/compile", object{"turn": object{"workspace_id": "w", "thread_id": "t", "turn_id": "dir", "dir": root}})
	s, text := r.status(t)
	if s.Reload == nil || !s.Reload.OK || s.Reload.Cause != gateway.ReloadSignal || s.Reloads != 1 || !strings.Contains(text, "ago by SIGHUP") {
		t.Errorf("after SIGHUP: %+v\n%s", s.Reload, text)
	}

	wrong := strings.Replace(houseConfig("Be rude.", ""), "builtin: scripted", "bultin: scripted", 1)
	r.write(t, wrong)
	code, out, errs := grapnelIn(t, r.dir, "config", "reload")
	for _, want := range []string{r.config + `:4:5: `, "bultin: scripted\n |     ^", "what was in force stays"} {
		if !strings.Contains(errs, want) {
			t.Errorf("config reload lacks %q: %s", want, errs)
		}
		if said := r.errs.until(t, "config/reload of local: nothing was changed"); !strings.Contains(said, want) && !strings.Contains(want, "stays") {
			t.Errorf("the log lacks %q: %s", want, said)
		}
	}
	if code != exitNo || out != "" {
		t.Errorf("exit code %d, %s", code, out)
	}
	r.prompts(t, "Be exact.")
	s, text = r.status(t)
	if s.Reload == nil || s.Reload.OK || len(s.Reload.Mistakes) == 0 || s.Reload.Mistakes[0].Line != 4 || s.Reload.Mistakes[0].Column != 5 || s.ReloadsRefused != 1 ||
		!strings.Contains(text, r.config+":4:5: ") || !strings.Contains(text, "by config/reload of local failed") {
		t.Errorf("after a mistake: %+v\n%s", s.Reload, text)
	}

	// What the plugin itself refuses has a place too.
	r.write(t, strings.Replace(houseConfig("Be rude.", ""), "phase: turn.pre_prompt_compile", "phase: turn.no_such", 1))
	code, out, _ = grapnelIn(t, r.dir, "config", "reload", "--json")
	var got reloadResult
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitNo || got.OK || len(got.Mistakes) != 1 || got.Mistakes[0].Line == 0 || got.Mistakes[0].Snippet == "" {
		t.Errorf("a plugin that refuses: %d %v %s", code, err, out)
	}
	r.prompts(t, "Be exact.")
	r.write(t, houseConfig("Be kind.", ""))
	if code, out, errs = grapnelIn(t, r.dir, "config", "reload"); code != exitOK || !strings.Contains(out, "changed: budgets, plugins.house, serve") {
		t.Errorf("mended: %d %s %s", code, out, errs)
	}
	r.prompts(t, "Be kind.")
	r.end(t, syscall.SIGTERM)
}

// TestServeReloadNeedsRestart: what a reload cannot change is refused by name and
// place, whatever else has changed, and so is a stranger's program where callers
// need no token.
func TestServeReloadNeedsRestart(t *testing.T) {
	t.Parallel()

	r := serveFiles(t, houseConfig("Be brief.", ""))
	for _, tt := range []struct {
		rest string
		keys []string
		line int
	}{
		{"store: sqlite:other.db\n", []string{"store"}, 11},
		{"manifest: {chain_key: a}\n", []string{"manifest.chain_key"}, 11},
		{"manifest: {fingerprint_key: a}\n", []string{"manifest.fingerprint_key"}, 11},
		{"serve: {hosts: [a.example], origins: ['https://a.example'], watch: true}\n", []string{"serve.hosts", "serve.origins", "serve.watch"}, 11},
		{"serve: {conversations: {workspaces: [w], context_tokens: 8000, reserve_tokens: 1000}}\n", []string{"serve.conversations"}, 11},
		{"  - {name: stranger, command: ./stranger}\n", []string{"plugins.stranger"}, 11},
	} {
		r.write(t, houseConfig("Be rude.", tt.rest))
		code, out, errs := grapnelIn(t, r.dir, "config", "reload", "--json")
		var got reloadResult
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitNo || !slices.Equal(got.NeedsRestart, tt.keys) || len(got.Mistakes) != len(tt.keys) {
			t.Errorf("%s: %d %v %s %s", tt.rest, code, err, out, errs)
			continue
		}
		for _, m := range got.Mistakes {
			if m.Line != tt.line || m.Snippet == "" {
				t.Errorf("%s: %+v", tt.rest, m)
			}
		}
		if _, _, errs := grapnelIn(t, r.dir, "config", "reload"); !strings.Contains(errs, "needs a restart: "+strings.Join(tt.keys, ", ")) {
			t.Errorf("%s: %s", tt.rest, errs)
		}
		r.prompts(t, "Be brief.")
	}
	r.end(t, syscall.SIGTERM)
}

// TestServeWatch: a changed configuration takes effect by itself, a mistake is
// reported once, and restoring the file counts as no change.
func TestServeWatch(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ rest, flag string }{{"serve: {watch: true}\n", ""}, {"", "--watch"}} {
		t.Run("by "+tt.rest+tt.flag, func(t *testing.T) {
			t.Parallel()

			var args []string
			if tt.flag != "" {
				args = append(args, tt.flag)
			}
			r := serveFiles(t, houseConfig("Be brief.", tt.rest), args...)
			r.write(t, houseConfig("Be exact.", tt.rest))
			r.errs.until(t, "reload by a changed file: "+r.config+" is in force, changed: plugins.house")
			r.prompts(t, "Be exact.")
			if tt.flag == "" {
				return // the key of the configuration does what the flag does
			}
			r.write(t, houseConfig("Be rude.", tt.rest)+"nonsense: 1\n")
			r.errs.until(t, "reload by a changed file: nothing was changed")
			r.prompts(t, "Be exact.")
			if err := os.Remove(r.config); err != nil {
				t.Fatal(err)
			}
			r.errs.until(t, "no such file")
			r.write(t, houseConfig("Be kind.", tt.rest))
			r.errs.until(t, "reload by a changed file: nothing was changed, what was in force stays: configuration: open")
			r.errs.untilTimes(t, r.config+" is in force", 2)
			r.prompts(t, "Be kind.")
			if s, _ := r.status(t); s.Reload == nil || !s.Reload.OK || s.Reload.Cause != gateway.ReloadWatch {
				t.Errorf("status: %+v", s.Reload)
			}
			_, all := r.end(t, syscall.SIGTERM)
			if n := strings.Count(all, "reload by a changed file"); n != 4 {
				t.Errorf("it was read again %d times:\n%s", n, all)
			}
		})
	}
}

// TestServeRelease: a program that cannot be started is mended by the operator, who
// then has the running gateway start it; status says how.
func TestServeRelease(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	program, config := filepath.Join(dir, "badplugin"), filepath.Join(dir, "grapnel.yaml")
	const text = "version: 1\nplugins:\n  - {name: bad, command: ./badplugin, args: [good], unsafe_path: true, grants: {contribute: ['*'], sections: ['*']}}\n"
	plant(t, dir, map[string]string{"badplugin": "no program", "grapnel.yaml": text})
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	s := serveIn(t, dir, "--config", config)
	s.errs.until(t, "state=quarantined")
	if _, out, _ := grapnelIn(t, dir, "status"); !strings.Contains(strings.Join(strings.Fields(out), " "), "grapnel plugin release bad") {
		t.Errorf("status does not say how: %s", out)
	}
	for _, tt := range []struct {
		name, plugin string
		code         int
		out, errs    string
	}{
		{"not mended", "bad", exitNo, "the plugin bad was quarantined and was started again; now it is quarantined: ", ""},
		{"no such plugin", "bda", exitNo, "", `no plugin "bda" is declared (did you mean "bad"?)`},
	} {
		code, out, errs := grapnelIn(t, dir, "plugin", "release", tt.plugin)
		if code != tt.code || !strings.Contains(out, tt.out) || !strings.Contains(errs, tt.errs) {
			t.Errorf("%s: %d %s %s", tt.name, code, out, errs)
		}
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	put(t, program, ourselves(t))
	code, out, errs := grapnelIn(t, dir, "plugin", "release", "bad", "--json")
	var got releaseResult
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK || got.State != "ready" || got.From != "quarantined" {
		t.Errorf("mended: %d %s %s %v", code, out, errs, err)
	}
	if code, _, errs := grapnelIn(t, dir, "plugin", "release", "bad"); code != exitUsage || !strings.Contains(errs, "the plugin bad is ready") {
		t.Errorf("once more: %d %s", code, errs)
	}
	s.end(t, syscall.SIGTERM)
}
