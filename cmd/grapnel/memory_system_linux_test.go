package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
)

// memorySeed decides when processes are killed in TestMemoryKilled.
var memorySeed = flag.Uint64("memory.seed", 7, "seed of the moments at which TestMemoryKilled kills")

// host is a process of memoryHost.
type host struct {
	*served

	in  io.WriteCloser
	out *bufio.Reader
}

// hostIn starts a host that begins with a number.
func hostIn(t *testing.T, dir, config, name string, from int) *host {
	t.Helper()
	cmd, _ := programCommand(t, config, name, strconv.Itoa(from))
	cmd.Args[0] = hostProgram
	cmd.Env = append(cmd.Env, homeIn(dir)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := &host{in: in, out: bufio.NewReader(out), served: &served{cmd: cmd, dir: dir, errs: newTail(errs)}}
	t.Cleanup(func() { h.kill(t) })
	return h
}

// ask has the host do one more number.
func (h *host) ask() { _, _ = io.WriteString(h.in, "\n") } // one that was killed is found by its answer

// answer is what the host has done; false if it has ended.
func (h *host) answer() (done string, ok bool) {
	line, err := h.out.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err == nil
}

// kill ends the host at once, waits until its plugin has ended too, and returns what
// it had acknowledged beyond what was read.
func (h *host) kill(t *testing.T) (more []string) {
	t.Helper()
	if h.ended {
		return nil
	}
	h.ended = true
	var plugins []unix.PollFd // a plugin may outlive its host by what it is about to store
	for _, pid := range childrenOf(t, h.cmd.Process.Pid) {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			t.Cleanup(func() { _ = unix.Close(fd) })
			plugins = append(plugins, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	_ = h.cmd.Process.Signal(syscall.SIGKILL) // or it has ended by itself
	for {
		line, ok := h.answer()
		if !ok {
			break
		}
		more = append(more, line)
	}
	if said := h.errs.until(t, ""); strings.Contains(said, "panic") {
		t.Errorf("the host said:\n%s", said)
	}
	_ = h.cmd.Wait()
	for i := range plugins {
		for _, err := unix.Poll(plugins[i:i+1], -1); errors.Is(err, unix.EINTR); _, err = unix.Poll(plugins[i:i+1], -1) {
		}
	}
	return more
}

// writeMemoryConfig writes a configuration with a memory.
func writeMemoryConfig(t *testing.T, dir, dsn string) string {
	t.Helper()
	file := filepath.Join(dir, "grapnel.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, memoryConfig, dsn), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// exported are the texts of all memories of a store, by the command.
func exported(t *testing.T, dir, dsn string) []string {
	t.Helper()
	code, out, errs := grapnelIn(t, dir, "memory", "export", "--memory", dsn)
	if code != exitOK {
		t.Fatalf("export: %d %s", code, errs)
	}
	var texts []string
	for line := range strings.Lines(out) {
		var item itemstore.Item
		if err := json.Unmarshal([]byte(line), &item); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, item.Text)
	}
	return texts
}

// once wants what hosts have stored up to a number, each once.
func once(t *testing.T, texts, names []string, last int) {
	t.Helper()
	all := strings.Join(texts, "\n") + "\n"
	for _, name := range names {
		for n := 1; n <= last; n++ {
			for _, text := range []string{factByTool(name, n), factByTurn(name, n)} {
				if got := strings.Count(strings.ToLower(all), strings.ToLower(strings.TrimSuffix(text, "."))); got != 1 {
					t.Errorf("%q is there %d times", text, got)
				}
			}
		}
	}
}

// TestMemoryKilled kills a host, or its plugin alone, again and again while it stores
// memories by a tool and by turns; what it was about when it was killed it does again.
// All that was acknowledged is there in the end, and each once.
func TestMemoryKilled(t *testing.T) {
	t.Parallel()

	rounds := rounds(10, 2)
	for kind, place := range serveStores() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()

			dir, dsn := t.TempDir(), place(t)
			config := writeMemoryConfig(t, dir, dsn)
			random := rand.New(rand.NewPCG(*memorySeed, 1))
			k := &storing{acknowledged: map[string]int{}}
			for round := range rounds {
				k.round(t, hostIn(t, dir, config, "ada", max(k.last, 1)), 1+random.IntN(12), round%2 == 1)
				if kind == "postgres" {
					waitForSessions(t, dsn)
				}
			}
			texts := exported(t, dir, dsn)
			k.check(t, texts, rounds)
			// The database is still one that takes changes.
			code, out, errs := grapnelIn(t, dir, "memory", "forget", "--all", "--memory", dsn, "--yes", "--json")
			var forgotten memoryForgotten
			if err := json.Unmarshal([]byte(out), &forgotten); err != nil || code != exitOK || forgotten.Gone != len(texts) {
				t.Errorf("forget: %d %d of %d, %v, %s", code, forgotten.Gone, len(texts), err, errs)
			}
			if left := exported(t, dir, dsn); len(left) != 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// storing is what hosts have acknowledged that were killed one after the other.
type storing struct {
	// acknowledged counts how often each thing was; last is the highest turn among
	// them, which the next host begins with.
	acknowledged map[string]int
	last         int
}

// round lets a host work, and kills it. Where its plugin is killed first, it goes on
// with another.
func (k *storing) round(t *testing.T, h *host, answers int, pluginFirst bool) {
	t.Helper()
	for range 100 {
		h.ask() // it is never idle
	}
	k.take(t, h, answers)
	if pluginFirst {
		plugins := childrenOf(t, h.cmd.Process.Pid)
		if len(plugins) == 0 {
			t.Error("the host has no plugin")
		}
		for _, pid := range plugins {
			_ = syscall.Kill(pid, syscall.SIGKILL) // or it has ended by itself
		}
		k.take(t, h, 4)
	}
	for _, done := range h.kill(t) {
		k.note(t, done)
	}
}

// take reads some answers.
func (k *storing) take(t *testing.T, h *host, answers int) {
	t.Helper()
	for range answers {
		done, ok := h.answer()
		if !ok {
			t.Fatalf("the host has ended: %s", h.errs.until(t, ""))
		}
		k.note(t, done)
	}
}

func (k *storing) note(t *testing.T, done string) {
	t.Helper()
	k.acknowledged[done]++
	var n int
	if _, err := fmt.Sscanf(done, "turn %d", &n); err == nil {
		k.last = max(k.last, n)
	} else if _, err := fmt.Sscanf(done, "tool %d", &n); err != nil {
		t.Errorf("the host said %q", done)
	}
}

// check wants all that was acknowledged, once.
func (k *storing) check(t *testing.T, texts []string, rounds int) {
	t.Helper()
	once(t, texts, []string{"ada"}, k.last)
	if n := k.last + 1; k.acknowledged[fmt.Sprint("tool ", n)] > 0 && strings.Count(strings.Join(texts, "\n"), factByTool("ada", n)) != 1 {
		t.Errorf("tool %d was acknowledged", n)
	}
	repeated := 0
	for _, times := range k.acknowledged {
		if times > 1 {
			repeated++
		}
	}
	if k.last < rounds || repeated == 0 {
		t.Errorf("%d turns in %d rounds, %d repeated: too little to see anything by", k.last, rounds, repeated)
	}
}

// childrenOf are the processes that a process has started.
func childrenOf(t *testing.T, parent int) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// The name, in parentheses, may have blanks.
		_, rest, _ := strings.Cut(string(data[bytes.LastIndexByte(data, ')')+1:]), " ")
		var state string
		var ppid int
		if _, err := fmt.Sscan(rest, &state, &ppid); err == nil && ppid == parent {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// waitForSessions waits until no program has a session with a database of
// PostgreSQL. The server finds out by itself that one is gone; until then it may
// still commit what that one has sent.
func waitForSessions(t *testing.T, dsn string) {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing was changed
	db.SetMaxOpenConns(1)
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	const others = `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`
	for sessions := -1; ; {
		if err := db.QueryRowContext(ctx, others).Scan(&sessions); err != nil {
			t.Fatalf("%d sessions of the killed process are left: %v", sessions, err)
		}
		if sessions == 0 {
			return
		}
		if _, err := db.ExecContext(ctx, "SELECT pg_sleep(0.005)"); err != nil {
			t.Fatalf("%d sessions of the killed process are left: %v", sessions, err)
		}
	}
}
