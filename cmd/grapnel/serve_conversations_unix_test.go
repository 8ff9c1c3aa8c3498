//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// conversationConfig keeps the conversations of one workspace.
const conversationConfig = "version: 1\nserve: {conversations: {workspaces: [w], context_tokens: 8000, reserve_tokens: 1000}}\n"

// serveConversations serves a store with it.
func serveConversations(t *testing.T, dir, dsn string) *served {
	t.Helper()
	cfg := filepath.Join(dir, "grapnel.yaml")
	put(t, cfg, conversationConfig)
	return serveIn(t, dir, "--config", cfg, "--store", dsn)
}

// window is what turn/compile says of a conversation.
type window struct {
	Conversation *struct {
		Entries    []struct{ ID string }
		Compaction string
	}
	Manifest struct {
		History *struct{ Entries int }
	}
}

func (w *window) String() string {
	if w.Conversation == nil {
		return "none"
	}
	var ids []string
	for _, e := range w.Conversation.Entries {
		ids = append(ids, e.ID)
	}
	return strings.Join(ids, " ")
}

// TestServeConversations: gateways that share a database append to one thread at once; one that is killed in the middle of
// a turn loses nothing that was acknowledged, and its client begins the turn again at another one.
func TestServeConversations(t *testing.T) {
	t.Parallel()

	for name, newStore := range serveStores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dsn := newStore(t)
			gateways := []*served{serveConversations(t, t.TempDir(), dsn), serveConversations(t, t.TempDir(), dsn)}
			clients := []*heard{dial(t, gateways[0].target(), ""), dial(t, gateways[1].target(), "")}
			clients[0].ask(t, "workspace/create", object{"id": "w", "name": "W"})
			begin := func(c *heard, id string) string {
				return answer[struct{ Handle string }](t, c, "turn/begin", object{"turn": object{"workspace_id": "w", "thread_id": "t", "turn_id": id}}).Handle
			}
			say := func(c *heard, handle, id string) {
				c.ask(t, "thread/append", object{"handle": handle, "entries": []object{{"id": id, "role": "user", "text": id}}})
			}
			var running sync.WaitGroup
			for g, c := range clients {
				running.Go(func() {
					for n := range 5 {
						id := fmt.Sprintf("%d-%d", g, n)
						handle := begin(c, id)
						say(c, handle, id)
						c.ask(t, "turn/end", object{"handle": handle, "end": object{"status": "succeeded"}})
					}
				})
			}
			running.Wait()
			handle := begin(clients[0], "cut")
			say(clients[0], handle, "cut-1")
			gateways[0].end(t, syscall.SIGKILL)

			handle = begin(clients[1], "cut") // the same turn again
			say(clients[1], handle, "cut-1")
			say(clients[1], handle, "cut-2")
			done := answer[window](t, clients[1], "turn/compile", object{"handle": handle, "input": object{"user_text": "x"}})
			if got := done.String(); len(done.Conversation.Entries) != 12 || !strings.HasSuffix(got, " cut-1 cut-2") || done.Manifest.History.Entries != 12 {
				t.Errorf("chosen: %s; recorded: %+v", got, done.Manifest.History)
			}
			if code, said := gateways[1].end(t, syscall.SIGTERM); code != exitOK || strings.Contains(said, "panic") {
				t.Errorf("exit code %d:\n%s", code, said)
			}
			if name == "postgres" {
				return
			}
			code, out, errs := grapnelIn(t, t.TempDir(), "manifest", "erase", "--store", dsn, "--thread", "t", "--by", "x", "--reason", "y", "--yes")
			if code != exitOK || !strings.Contains(out, "erased: 12 entries of conversations") {
				t.Errorf("erase: %d %s%s", code, out, errs)
			}
		})
	}
}
