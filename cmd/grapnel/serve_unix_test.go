//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/internal/cli/client"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tree"
)

// TestServeTransports calls one gateway in every way, and ends it: nothing is left.
func TestServeTransports(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	socket := filepath.Join(dir, "run", "g.sock")
	s := serveIn(t, dir, "--listen", "127.0.0.1:0", "--socket", socket)
	if info, err := os.Lstat(socket); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Fatalf("socket: %v, %v", info.Mode(), err)
	}
	post, ws, unix := s.dial(t, s.target()), s.dial(t, wsOf(s.target())), s.dial(t, "unix:"+socket)
	post.ask(t, "workspace/create", object{"id": "w", "name": "W"})
	for _, watcher := range []*heard{ws, unix} {
		watcher.ask(t, "workspace/watch", object{"workspace_id": "w"})
	}
	post.ask(t, "thread/agents_doc/save", object{"workspace_id": "w", "content": "Be brief.\n"})
	for _, watcher := range []*heard{ws, unix} {
		watcher.waitFor(t, "thread/agents_doc/changed")
	}
	compiled := unix.ask(t, "turn/compile", object{"turn": object{"workspace_id": "w", "thread_id": "t", "turn_id": "1"}})
	if !strings.Contains(string(compiled), "Be brief.") {
		t.Errorf("the document is not in the prompt: %s", compiled)
	}
	long := post.ask(t, "thread/agents_doc/save", object{"workspace_id": "w", "content": strings.Repeat("x", 15_999), "expected_version": 1})
	if !strings.Contains(string(long), "a prompt takes 15,") {
		t.Errorf("no warning that the prompt cuts it: %.200s", long)
	}
	code, out, errs := grapnelIn(t, dir, "status", "--json")
	var status statusResult
	if err := json.Unmarshal([]byte(out), &status); err != nil || code != exitOK || status.Target != "unix:"+socket ||
		status.Connections != 3 || status.Watchers != 2 || status.Stats.ManifestsKept != 1 || len(status.Plugins) != 1 {
		t.Errorf("status: %d %v %s %s", code, err, out, errs)
	}
	code, said := s.end(t, syscall.SIGTERM)
	if code != exitOK || !strings.Contains(said, "serving has ended") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	for _, gone := range []string{socket, filepath.Join(dir, "grapnel")} {
		if _, err := os.Lstat(gone); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", gone, err)
		}
	}
	if <-ws.Done(); !strings.Contains(fmt.Sprint(ws.Err()), "stopping") {
		t.Errorf("the connection ended with %v", ws.Err())
	}
	if code, _, errs := grapnelIn(t, dir, "status"); code != exitUnable || !strings.Contains(errs, "grapnel serve") {
		t.Errorf("status without a gateway: %d %s", code, errs)
	}
}

// TestServeSocketAlone opens no port.
func TestServeSocketAlone(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	socket := filepath.Join(dir, "g.sock")
	s := serveIn(t, dir, "--socket", socket, "--json")
	var line listening
	if err := json.Unmarshal([]byte(s.line), &line); err != nil || line != (listening{Socket: socket, PID: s.cmd.Process.Pid}) {
		t.Errorf("%s: %+v, %v", s.line, line, err)
	}
	if code, out, errs := grapnelIn(t, dir, "status"); code != exitOK || !strings.Contains(out, "unix:"+socket) {
		t.Errorf("status: %d %s %s", code, out, errs)
	}
	if code, _ := s.end(t, syscall.SIGINT); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// TestServeSocketTaken: what somebody answers at, and what is no socket, is never
// replaced; a folder in which others could replace it is refused.
func TestServeSocketTaken(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	socket := filepath.Join(dir, "g.sock")
	s := serveIn(t, dir, "--socket", socket)
	code, out, errs := grapnelIn(t, t.TempDir(), "serve", "--socket", socket)
	if code != exitUnable || out != "" || !strings.Contains(errs, "a program answers there already") {
		t.Errorf("taken: %d %s %s", code, out, errs)
	}
	s.dial(t, "unix:"+socket).ask(t, "workspace/list", nil) // it still serves
	s.end(t, syscall.SIGTERM)
	put(t, socket, "precious")
	if code, _, errs := grapnelIn(t, dir, "serve", "--socket", socket); code != exitUsage || !strings.Contains(errs, "something else is there") {
		t.Errorf("a file: %d %s", code, errs)
	}
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := grapnelIn(t, dir, "serve", "--socket", filepath.Join(open, "g.sock")); code != exitUsage || !strings.Contains(errs, "others may write") {
		t.Errorf("an open folder: %d %s", code, errs)
	}
}

// TestServeKilled kills a gateway that takes saves: what it has acknowledged is
// there afterwards, and what it left behind is in nobody's way.
func TestServeKilled(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	socket := filepath.Join(dir, "g.sock")
	s := serveIn(t, dir, "--socket", socket)
	c := s.dial(t, "unix:"+socket)
	c.ask(t, "workspace/create", object{"id": "w", "name": "W"})
	const writers, enough = 4, 20
	kept := make(chan string, 10_000)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("f-%d-%d", w, n)
				err := c.Call(t.Context(), "folder/create", object{"workspace_id": "w", "id": id, "name": id}, nil)
				if err == nil {
					err = c.Call(t.Context(), "thread/agents_doc/save", object{"workspace_id": "w", "folder_id": id, "content": id}, nil)
				}
				if err != nil {
					return // it was killed
				}
				kept <- id
			}
		})
	}
	var ids []string
	for range enough {
		ids = append(ids, <-kept)
	}
	s.end(t, syscall.SIGKILL)
	wg.Wait()
	close(kept)
	for id := range kept {
		ids = append(ids, id)
	}
	if code, _, errs := grapnelIn(t, dir, "status"); code != exitUnable || !strings.Contains(errs, fmt.Sprintf("process %d) at %s has ended", s.cmd.Process.Pid, s.target())) {
		t.Errorf("status of one that was killed: %d %s", code, errs)
	}
	s = serveIn(t, dir, "--socket", socket)
	c = s.dial(t, "unix:"+socket)
	for _, id := range ids {
		if got := c.ask(t, "thread/agents_doc/get", object{"workspace_id": "w", "folder_id": id}); !strings.Contains(string(got), `"content":"`+id+`"`) {
			t.Errorf("%s was acknowledged, and is %s", id, got)
		}
	}
	if notes, err := filepath.Glob(filepath.Join(dir, "grapnel", "gateway-*")); len(notes) != 1 || err != nil {
		t.Errorf("notes: %v, %v", notes, err)
	}
	if code, said := s.end(t, syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// tokenLine is the row of a token file for a token.
func tokenLine(name, secret string, rights ...string) string {
	return fmt.Sprintf("  - {name: %s, sha256: %q, workspaces: ['*'], rights: [%s]}\n", name, tree.Sum(secret), strings.Join(rights, ", "))
}

// TestServeTokens reads the token file again on SIGHUP, and keeps what was in
// force where the file is wrong.
func TestServeTokens(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	file := filepath.Join(dir, "tokens.yaml")
	write := func(text string) {
		t.Helper()
		put(t, file, text)
	}
	write("tokens:\n" + tokenLine("ada", "one", "read", "write"))
	s := serveIn(t, dir, "--token-file", file)
	ada := dial(t, wsOf(s.target()), "one")
	ada.ask(t, "workspace/create", object{"id": "w", "name": "W"})
	if err := dial(t, s.target(), "").Call(t.Context(), "workspace/list", nil, nil); !client.HasCode(err, rpc.CodeUnauthorized) {
		t.Errorf("without a token: %v", err)
	}
	hangUp := func() {
		t.Helper()
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	write("tokens: [\n")
	hangUp()
	s.errs.until(t, "what was in force stays")
	ada.ask(t, "workspace/list", nil)
	write("tokens:\n" + tokenLine("bob", "two", "read", "admin"))
	hangUp()
	s.errs.until(t, "nothing in it has changed, tokens: 1")
	<-ada.Done()
	dial(t, s.target(), "two").ask(t, "workspace/list", nil)

	secret := filepath.Join(dir, "secret")
	put(t, secret, "two\n")
	for _, tt := range []struct {
		name, file string
		code       int
		says       string
	}{
		{"a token", secret, exitOK, ""},
		{"no token", "", exitNo, "a token is needed"},
		{"the file of hashes", file, exitUsage, "has hashes"},
		{"no such file", secret + "x", exitUsage, "no such file"},
	} {
		args := []string{"status", "--url", s.target()}
		if tt.file != "" {
			args = append(args, "--token-file", tt.file)
		}
		if code, _, errs := grapnelIn(t, dir, args...); code != tt.code || !strings.Contains(errs, tt.says) {
			t.Errorf("%s: %d %s", tt.name, code, errs)
		}
	}
	s.end(t, syscall.SIGTERM)
}

// TestServeTwoStarts: of gateways that replace a stale socket at the same moment
// one serves.
func TestServeTwoStarts(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	socket := filepath.Join(dir, "g.sock")
	s := serveIn(t, dir, "--socket", socket)
	s.end(t, syscall.SIGKILL)
	var won []*doors
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			d, err := openDoors(t.Context(), &serveFlags{Socket: socket})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, d)
			} else if !errors.Is(err, errInUse) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Errorf("%d have the socket", len(won))
	}
	for _, d := range won {
		d.close()
	}
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}
