package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// memoryConfig declares the memory plugin, which is required, with time for a busy machine.
const memoryConfig = `version: 1
budgets:
  turn: {time: 60s}
  phases: {turn.pre_policy: {time: 20s, require: [memory.policy]}, turn.pre_prompt_compile: {time: 20s}, turn.pre_tool_materialization: {time: 20s}}
plugins:
  - name: memory
    builtin: memory
    grants:
      contribute: [policy, prompt_context, audit, tool_bundle, prompt_section]
      policies: [memory/turn_policy]
      domains: [memory]
      sections: [memory_recall]
      tools: ['memory_*']
      see: [user_text, assistant_text, status, tool_events, recall_plan, tool_calling, available_tools, policy, context, metadata]
    subscriptions: {memory.policy: {timeout: 20s}, memory.tools: {timeout: 20s}, memory.prompt: {timeout: 20s}}
    config: {dsn: %q}
`

// TestMemoryKilled kills a gateway, or its plugin alone, again and again while its client stores memories by a tool and by
// turns, and begins again what was not acknowledged. All that was acknowledged is there in the end, and once.
func TestMemoryKilled(t *testing.T) {
	t.Parallel()
	for kind, place := range serveStores() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()

			dir, dsn, random, n := t.TempDir(), place(t), rand.New(rand.NewPCG(7, 1)), 0
			plant(t, dir, map[string]string{"grapnel.yaml": fmt.Sprintf(memoryConfig, dsn)})
			for round := range rounds(10, 2) {
				s := serveIn(t, dir, "--config", filepath.Join(dir, "grapnel.yaml"), "--store", "sqlite:"+filepath.Join(dir, "log.db"))
				c, first := dial(t, s.target(), ""), n
				_ = c.Call(t.Context(), "workspace/create", object{"id": "w", "name": "W"}, nil) // or it is there
				for end := n + 1 + random.IntN(4); n < end; n++ {
					if err := storeNumber(t.Context(), c, n); err != nil {
						t.Fatalf("%d: %v", n, err)
					}
				}
				victim, plugin := s.cmd.Process.Pid, round%2 == 1
				if plugin {
					victim = pluginProcess(t, victim)
				}
				cut := make(chan error, 1)
				go func() { cut <- storeNumber(t.Context(), c, n) }()
				if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				err := <-cut
				for deadline := time.Now().Add(longest); err != nil && plugin && lives(s.cmd.Process.Pid) && time.Now().Before(deadline); { // it is started again
					<-time.After(20 * time.Millisecond)
					if err = storeNumber(t.Context(), c, n); errors.Is(err, errQueued) && strings.Contains(strings.ToLower(exported(t, dir, dsn)), number(n)) {
						err = nil
					}
				}
				switch {
				case err == nil:
					n++
				case plugin:
					code, said := s.end(t, syscall.SIGQUIT)
					t.Fatalf("%d, behind number %d: %v; it ended with %d: %s", n, first, err, code, said)
				}
				s.end(t, map[bool]syscall.Signal{false: syscall.SIGKILL, true: syscall.SIGTERM}[plugin])
			}
			texts := strings.ToLower(exported(t, dir, dsn))
			for i := range n {
				if got := strings.Count(texts, number(i)); got != 1 {
					t.Errorf("the number %d is there %d times in\n%s", i, got, texts)
				}
			}
			if code, _, errs := grapnelIn(t, dir, "memory", "forget", "--all", "--memory", dsn, "--yes"); code != exitOK || exported(t, dir, dsn) != "" {
				t.Errorf("forget: %d %s", code, errs)
			}
		})
	}
}

// number is what an export has, in small letters, of the memory about a number.
func number(n int) string { return fmt.Sprintf(`"text":"the colour of number%d is `, n) }

// errQueued says that a turn has ended and what it said waits to be kept: its job goes on behind it, and the same turn
// that ends again queues none.
var errQueued = errors.New("it is not kept yet")

// storeNumber stores a memory about a number in a turn: by the tool, or by what the user says. A nil error acknowledges it.
func storeNumber(ctx context.Context, c *heard, n int) error {
	fact := fmt.Sprintf("he colour of number%d is teal%d", n, n)
	var begun struct{ Handle string }
	err := c.Call(ctx, "turn/begin", object{"turn": object{"workspace_id": "w", "thread_id": "t", "turn_id": strconv.Itoa(n)}}, &begun)
	if err != nil {
		return err
	}
	said := map[bool]string{false: "Please remember that t" + fact + ".", true: "Hi!"}[n%2 == 0]
	var done struct{ Error *phases.Error }
	err = c.Call(ctx, "turn/compile", object{"handle": begun.Handle, "input": object{"user_text": said, "tool_calling": true}}, &done)
	if err == nil && done.Error != nil {
		err = done.Error
	}
	if err != nil {
		return err
	}
	if n%2 == 0 {
		var stored struct {
			IsError bool `json:"is_error"`
			Text    string
			Error   *phases.Error
		}
		arguments := object{"text": "T" + fact + ".", "category": "fact", "scope": "workspace"}
		err := c.Call(ctx, "tool/call", object{"handle": begun.Handle, "tool": "memory_remember", "arguments": arguments, "call_id": strconv.Itoa(n)}, &stored)
		if err == nil && (stored.IsError || stored.Error != nil) {
			err = fmt.Errorf("the tool: %+v", stored)
		}
		if err != nil {
			return err
		}
	}
	var ended struct{ Background []phases.BackgroundRun }
	if err := c.Call(ctx, "turn/end", object{"handle": begun.Handle, "end": object{"status": "succeeded"}, "wait": true}, &ended); err != nil {
		return err
	}
	kept := slices.ContainsFunc(ended.Background, func(r phases.BackgroundRun) bool {
		return r.Subscription == "memory.extract" && r.State == phases.StateSucceeded
	})
	if n%2 == 1 && !kept {
		return fmt.Errorf("%w: %+v", errQueued, ended.Background)
	}
	return nil
}

// exported are all memories of a store, by the command.
func exported(t *testing.T, dir, dsn string) string {
	t.Helper()
	code, out, errs := grapnelIn(t, dir, "memory", "export", "--memory", dsn)
	if code != exitOK {
		t.Fatalf("export: %d %s", code, errs)
	}
	return out
}
