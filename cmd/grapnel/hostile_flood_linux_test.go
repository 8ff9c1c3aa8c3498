package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// maxMemory is what attackers may make a gateway's memory at most, in MiB: what
// docs/OPERATING.md says to allow the process.
const maxMemory = 512

// memoryOf is a line of a process's status, in MiB: VmRSS, or VmHWM for the most ever.
func memoryOf(t *testing.T, pid int, line string) int {
	t.Helper()
	status := must(os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status")))(t)
	_, rest, _ := strings.Cut(string(status), line+":")
	rest, _, _ = strings.Cut(rest, "kB")
	kib := must(strconv.Atoi(strings.TrimSpace(rest)))(t)
	return kib >> 10
}

// staysSmall checks the most memory that a gateway has ever held.
func staysSmall(t *testing.T, s *served) {
	t.Helper()
	most := memoryOf(t, s.cmd.Process.Pid, "VmHWM")
	if t.Logf("the gateway held %d MiB at most", most); most > maxMemory {
		t.Errorf("the gateway held %d MiB, more than %d", most, maxMemory)
	}
}

// bigBatch has answers of 2.6 MB for each of its calls.
func bigBatch(n int) string {
	call := rpcOf("thread/agents_doc/revisions", object{"workspace_id": "acme", "include_content": true, "limit": 40})
	return "[" + strings.Repeat(call+",", n-1) + call + "]"
}

// TestUnreadAnswers: a token that may only read asks for 2.5 GB of answers over 48
// connections and reads none. The gateway stays small, and others are served.
func TestUnreadAnswers(t *testing.T) {
	if raceDetector {
		t.Skip("bounds on the gateway's memory and time do not hold under the race detector")
	}
	t.Parallel()

	b := besiege(t, "sqlite:"+filepath.Join(t.TempDir(), "g.db"), 40)
	batch := bigBatch(20)
	for i := range 48 {
		network := []string{"tcp", "unix", "tcp"}[i%3]
		w := b.connect(t, network)
		if i%3 < 2 {
			w.say(strings.Repeat(postOf(readToken, batch), 2))
			continue
		}
		w.say(upgradeOf(readToken))
		if status, _ := w.answer(); status != http.StatusSwitchingProtocols {
			t.Fatalf("the handshake got %d", status)
		}
		w.say(strings.Repeat(textOf(batch), 4))
	}
	for i := range 30 {
		b.works(t)
		b.honest.ask(t, "thread/agents_doc/save", object{"workspace_id": "acme", "content": strconv.Itoa(i), "expected_version": 40 + i})
	}
	staysSmall(t, b.served)
}

// TestConnectionFlood: 2,000 connections without a token, kept alive, silent or in the
// middle of a header, lock nobody out: neither at the port nor at the socket.
func TestConnectionFlood(t *testing.T) {
	t.Parallel()

	b := besiege(t, "sqlite:"+filepath.Join(t.TempDir(), "g.db"), 0)
	for i := range 2_000 {
		w := b.connect(t, []string{"tcp", "tcp", "tcp", "unix"}[i%4])
		w.say([]string{"", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /", postOf("wrong", "{}"), "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"}[i%5])
		if i%200 == 199 {
			b.works(t)
		}
	}
	b.works(t)
	staysSmall(t, b.served)
	if fds, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(b.cmd.Process.Pid), "fd")); err != nil || len(fds) > 700 {
		t.Errorf("the gateway has %d descriptors open, %v", len(fds), err)
	}
}
