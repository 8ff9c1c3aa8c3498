//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/gateway/client"
	"github.com/grapnelhq/grapnel/phases"
)

// guarded is a gateway with the plugin "guard", and a client that came over HTTP and
// one that came over a WebSocket.
type guarded struct {
	*served

	http, ws *heard
}

// serveGuarded starts it on a store. Conditional and sighted say which guards are on.
func serveGuarded(t *testing.T, dir, dsn string, conditional, sighted bool) *guarded {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, cfg, tokens := filepath.Join(dir, "guardplugin"), filepath.Join(dir, "grapnel.yaml"), filepath.Join(dir, "tokens.yaml")
	if err := os.Symlink(self, program); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	if err := errors.Join(
		os.WriteFile(cfg, fmt.Appendf(nil, guardConfig, program, conditional, sighted), 0o600),
		os.WriteFile(tokens, []byte("tokens:\n"+tokenLine("ada", "one", "read", "write", "compile", "dispatch")), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	s := serveIn(t, dir, "--config", cfg, "--token-file", tokens, "--store", dsn)
	g := &guarded{s, dial(t, s.target(), "one"), dial(t, wsOf(s.target()), "one")}
	g.http.ask(t, "workspace/create", object{"id": "w", "name": "W"})
	return g
}

// stop ends it.
func (g *guarded) stop(t *testing.T) {
	t.Helper()
	if code, said := g.end(t, syscall.SIGTERM); code != exitOK || strings.Contains(said, "panic") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
}

// begin begins a turn and returns its handle.
func (g *guarded) begin(t *testing.T, c *heard, id string) string {
	t.Helper()
	return answer[struct{ Handle string }](t, c, "turn/begin", object{"turn": object{"workspace_id": "w", "thread_id": "t", "turn_id": id}}).Handle
}

// answer calls a method, which must succeed, and decodes its result.
func answer[R any](t *testing.T, c *heard, method string, params object) R {
	t.Helper()
	var r R
	if err := c.Call(t.Context(), method, params, &r); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return r
}

// refusal is the code of a call that must fail, and its message.
func refusal(t *testing.T, c *heard, method string, params object) (code, message string) {
	t.Helper()
	err := c.Call(t.Context(), method, params, nil)
	refused, ok := errors.AsType[*client.Error](err)
	if !ok {
		t.Fatalf("%s: %v", method, err)
	}
	return refused.Code, refused.Message
}

// verdict is what comes of tool.pre_call for a tool.
type verdict struct {
	Decision *struct{ Verdict phases.Verdict }
	Error    *phases.Error
}

// TestServeGuards: behind a gateway a guard that goes by a policy denies in the turn
// that has it, over HTTP and WebSocket, and allows in one that has not. Without a turn
// the phase is refused, by a message that names the guard.
func TestServeGuards(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		conditional bool
		tool, guard string
	}{
		"by its condition":   {true, "write", `guard.by-condition: its condition reads policy["files/mode"]`},
		"by what it may see": {false, "delete", "guard.by-sight: it decides by what it sees"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dir := t.TempDir()
			g := serveGuarded(t, dir, "sqlite:"+filepath.Join(dir, "g.db"), tt.conditional, !tt.conditional)
			for way, c := range map[string]*heard{"http": g.http, "ws": g.ws} {
				for text, want := range map[string]phases.Verdict{"read only": phases.VerdictDeny, "as you like": ""} {
					handle := g.begin(t, c, way+text[:2])
					policy := object{"handle": handle, "phase": "turn.pre_policy", "input": object{"user_text": text}}
					c.ask(t, "turn/dispatch", policy)
					got := answer[verdict](t, c, "turn/dispatch", object{"handle": handle, "phase": "tool.pre_call", "input": object{"tool": tt.tool}})
					if got.Error != nil || (got.Decision != nil && got.Decision.Verdict != "" && got.Decision.Verdict != phases.VerdictAllow) != (want != "") {
						t.Errorf("%s, %q: %+v, want %q", way, text, got, want)
					}
					c.ask(t, "turn/end", object{"handle": handle, "end": object{"status": "succeeded"}})
				}
				code, message := refusal(t, c, "phase/dispatch", object{"phase": "tool.pre_call", "input": object{"tool": tt.tool}, "context": object{"workspace_id": "w"}})
				if code != "turn_needed" || !strings.Contains(message, tt.guard) || !strings.Contains(message, "turn/begin") {
					t.Errorf("%s, without a turn: %s, %s", way, code, message)
				}
			}
			// Nor has the command, without --in-turn.
			code, out, errs := grapnelIn(t, dir, "dispatch", "tool.pre_call", "--config", filepath.Join(dir, "grapnel.yaml"))
			if code != exitUsage || out != "" || !strings.Contains(errs, tt.guard) || !strings.Contains(errs, "--in-turn") {
				t.Errorf("the command: %d %s %s", code, out, errs)
			}
			g.stop(t)
		})
	}
}

// TestServeTurnUnknown: a turn is its gateway's. Another one on the same database does
// not know it, and neither does the one that comes after kill -9; all say what to do.
func TestServeTurnUnknown(t *testing.T) {
	t.Parallel()

	for kind, place := range serveStores() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()

			dir, other, dsn := t.TempDir(), t.TempDir(), place(t)
			first := serveGuarded(t, dir, dsn, true, true)
			second := serveGuarded(t, other, dsn, true, true)
			handle := first.begin(t, first.http, "1")
			next := object{"handle": handle, "phase": "tool.pre_call", "input": object{"tool": "write"}}
			first.ws.ask(t, "turn/dispatch", object{"handle": handle, "phase": "turn.pre_policy", "input": object{"user_text": "read only"}})
			unknown := func(c *heard) {
				t.Helper()
				if code, message := refusal(t, c, "turn/dispatch", next); code != "turn_unknown" || !strings.Contains(message, "another gateway, or before a restart") || !strings.Contains(message, "turn/begin") {
					t.Errorf("%s, %s", code, message)
				}
			}
			unknown(second.http)
			if code, said := first.end(t, syscall.SIGKILL); code != -1 {
				t.Errorf("it ended with %d:\n%s", code, said)
			}
			again := serveGuarded(t, dir, dsn, true, true)
			unknown(again.ws)
			// Begun again, the turn goes on there.
			next["handle"] = again.begin(t, again.http, "1")
			again.http.ask(t, "turn/dispatch", object{"handle": next["handle"], "phase": "turn.pre_policy", "input": object{"user_text": "read only"}})
			if got := answer[verdict](t, again.ws, "turn/dispatch", next); got.Decision == nil || got.Decision.Verdict != phases.VerdictDeny {
				t.Errorf("%+v", got)
			}
			second.stop(t)
			again.stop(t)
		})
	}
}
