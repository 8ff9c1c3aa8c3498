package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/cli/client"
	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
	"github.com/grapnelhq/grapnel/internal/rpc"
)

// TestSocketForAnotherUser: the socket takes nobody else's connection, also where its
// mode would let them in.
func TestSocketForAnotherUser(t *testing.T) {
	t.Parallel()
	needRoot(t)

	dir, shared := t.TempDir(), openDir(t)
	socket := filepath.Join(shared, "g.sock")
	s := serveIn(t, dir, "--socket", socket)
	if got := asOther(t, "dial", socket).end(t); !strings.Contains(got, "permission denied") {
		t.Errorf("by its mode: %s", got)
	}
	if err := os.Chmod(socket, 0o666); err != nil {
		t.Fatal(err)
	}
	if got := asOther(t, "dial", socket).end(t); got != "ready \"\"\n" {
		t.Errorf("with an open mode: %s", got)
	}
	s.dial(t, "unix:"+socket).ask(t, "workspace/list", nil)
	s.end(t, syscall.SIGTERM)
}

// TestSocketWithoutToken: whoever runs as the gateway's user reaches its socket, and
// gets no further without the token.
func TestSocketWithoutToken(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	socket := filepath.Join(dir, "g.sock")
	s := serveIn(t, dir, "--socket", socket)
	said := s.errs.until(t, "callers need a token")
	file := filepath.Join(dir, ".local", "share", "grapnel", madeSecret)
	if secret, err := readSecret(file); err != nil || !strings.Contains(said, file) || strings.Contains(said, secret) {
		t.Errorf("it does not name %s alone: %s, %v", file, said, err)
	}
	_, err := client.Dial(t.Context(), "unix:"+socket, client.Options{})
	if !client.HasCode(err, rpc.CodeUnauthorized) {
		t.Errorf("without a token: %v", err)
	}
	for _, args := range [][]string{{"status"}, {"status", "--socket", socket}} {
		if code, _, errs := grapnelIn(t, dir, args...); code != exitOK {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
	code, _, errs := grapnelIn(t, t.TempDir(), "status", "--socket", socket) // another home
	if code != exitNo || !strings.Contains(errs, "--token-file") || !strings.Contains(errs, "the file that serve names") {
		t.Errorf("without the note: %d %s", code, errs)
	}
	s.end(t, syscall.SIGTERM)
}

// TestSocketForPlugins: a plugin runs as the gateway's user and reaches its socket in
// every tier that does not deny it. It gets no further without the token, and with a
// sandbox it can read neither that nor the note.
func TestSocketForPlugins(t *testing.T) {
	t.Parallel()

	for _, tier := range []sandbox.Tier{sandbox.T0, sandbox.T1} {
		t.Run(tier.String(), func(t *testing.T) {
			t.Parallel()
			if err := sandbox.Probe().Check(sandbox.Policy{}); err != nil && tier > sandbox.T0 {
				t.Skip(err)
			}
			dir := t.TempDir()
			socket, config := filepath.Join(dir, "g.sock"), filepath.Join(dir, "grapnel.yaml")
			data := filepath.Join(dir, ".local", "share", "grapnel")
			text := fmt.Sprintf("version: 1\nplugins:\n  - name: bad\n    command: ./badplugin\n    sandbox: %s\n    unsafe_path: true\n"+
				"    args: [reach, call=%s, read=%s/token, read=%s/tokens.yaml, 'glob=%s/grapnel/gateway-*']\n"+
				"    grants: {contribute: ['*'], sections: ['*']}\n    limits: {start: 30s}\n", tier, socket, data, data, dir)
			plant(t, dir, map[string]string{"badplugin": ourselves(t), "grapnel.yaml": text})
			s := serveIn(t, dir, "--config", config, "--socket", socket)
			s.errs.until(t, "msg=plugin plugin=bad state=ready")
			c := s.dial(t, "unix:"+socket)
			c.ask(t, "workspace/create", object{"id": "w", "name": "W"})
			var done struct {
				Prompt struct {
					Text string `json:"full_text"`
				} `json:"prompt"`
			}
			if err := json.Unmarshal(c.ask(t, "turn/compile", object{"turn": object{"workspace_id": "w", "thread_id": "t", "turn_id": "1"}}), &done); err != nil {
				t.Fatal(err)
			}
			_, compiled, _ := strings.Cut(done.Prompt.Text, "call: ")
			if compiled == "" || strings.Contains(compiled, `"result"`) {
				t.Errorf("without a token: %s", compiled)
			}
			secret := must(readSecret(filepath.Join(data, madeSecret)))(t)
			if got := strings.Contains(compiled, secret); got != (tier == sandbox.T0) {
				t.Errorf("it can read the token: %t\n%s", got, compiled)
			}
			if got := strings.Contains(compiled, "started_at"); got != (tier == sandbox.T0) {
				t.Errorf("it can read the note: %t\n%s", got, compiled)
			}
			s.end(t, syscall.SIGTERM)
		})
	}
}

// TestSocketLocks: another user cannot keep a gateway from opening its socket by a
// lock, and a lock that cannot be had is an error with the file and its holder.
func TestSocketLocks(t *testing.T) {
	t.Parallel()

	t.Run("the directory, by another user", func(t *testing.T) {
		t.Parallel()
		needRoot(t)

		shared := openDir(t)
		holder := asOther(t, "lock", shared)
		s := serveIn(t, t.TempDir(), "--socket", filepath.Join(shared, "g.sock"))
		s.end(t, syscall.SIGTERM)
		if got := holder.end(t); got != "ready\n" {
			t.Errorf("it did not hold the lock: %s", got)
		}
		if left, err := os.ReadDir(shared); err != nil || len(left) != 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
	t.Run("the lock file, made by another user", func(t *testing.T) {
		t.Parallel()
		needRoot(t)

		shared := openDir(t)
		if err := os.Chmod(shared, 0o777|fs.ModeSticky); err != nil {
			t.Fatal(err)
		}
		lock := filepath.Join(shared, ".g.sock.lock")
		asOther(t, "make", lock).end(t)
		code, _, errs := grapnelIn(t, t.TempDir(), "serve", "--socket", filepath.Join(shared, "g.sock"))
		if code != exitUnable || !strings.Contains(errs, lock) {
			t.Errorf("%d %s", code, errs)
		}
	})
	t.Run("the lock file, by a program that hangs", func(t *testing.T) {
		t.Parallel()

		dir := t.TempDir()
		socket := filepath.Join(dir, "g.sock")
		unlock := must(lockBeside(t.Context(), socket, socketLockTime, "another gateway opens it"))(t)
		code, _, errs := grapnelIn(t, dir, "serve", "--socket", socket)
		if code != exitUnable || !strings.Contains(errs, ".g.sock.lock (process "+strconv.Itoa(os.Getpid())+")") || strings.Count(errs, "grapnel: ") != 1 {
			t.Errorf("%d %s", code, errs)
		}
		unlock()
		serveIn(t, dir, "--socket", socket).end(t, syscall.SIGTERM)
	})
	t.Run("a pipe and a link in its place", func(t *testing.T) {
		t.Parallel()

		dir := t.TempDir()
		lock := filepath.Join(dir, ".g.sock.lock")
		for _, make := range []func() error{
			func() error { return unix.Mkfifo(lock, 0o600) },
			func() error { return os.Symlink(filepath.Join(dir, "elsewhere"), lock) },
		} {
			if err := make(); err != nil {
				t.Fatal(err)
			}
			if code, _, errs := grapnelIn(t, dir, "serve", "--socket", filepath.Join(dir, "g.sock")); code != exitUnable || !strings.Contains(errs, lock) {
				t.Errorf("%d %s", code, errs)
			}
			if err := os.Remove(lock); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.Lstat(filepath.Join(dir, "elsewhere")); err == nil {
			t.Error("the link was followed")
		}
	})
}
