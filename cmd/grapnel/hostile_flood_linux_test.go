package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/gateway/client"
)

// maxMemory is what attackers may make a gateway's memory at most, in MiB: what
// docs/OPERATING.md says to allow the process.
const maxMemory = 512

// memoryOf is a line of a process's status, in MiB: VmRSS, or VmHWM for the most ever.
func memoryOf(t *testing.T, pid int, line string) int {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), line+":")
	rest, _, _ = strings.Cut(rest, "kB")
	kib, err := strconv.Atoi(strings.TrimSpace(rest))
	if err != nil {
		t.Fatal(err)
	}
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

// TestUnreadAnswersWithoutTokens: where all share the process's share, who does not
// read is disconnected for those who wait.
func TestUnreadAnswersWithoutTokens(t *testing.T) {
	if raceDetector {
		t.Skip("bounds on the gateway's memory and time do not hold under the race detector")
	}
	t.Parallel()

	s := serveIn(t, t.TempDir(), "--log-level", "error")
	honest := dial(t, s.target(), "")
	honest.ask(t, "workspace/create", object{"id": "acme", "name": "acme"})
	for i := range 40 {
		honest.ask(t, "thread/agents_doc/save", object{"workspace_id": "acme", "content": strings.Repeat("x", 65_000) + strconv.Itoa(i), "expected_version": i})
	}
	b := &besieged{served: s, addr: strings.TrimPrefix(s.target(), "http://")}
	batch := bigBatch(20)
	for range 48 {
		b.connect(t, "tcp").say(strings.Repeat(postOf("", batch), 2))
	}
	for range rounds(20, 1) {
		ctx, cancel := context.WithTimeout(t.Context(), hostilePause)
		var err error
		for { // overloaded for a moment, and it says so
			err = honest.Call(ctx, "thread/agents_doc/get", object{"workspace_id": "acme"}, nil)
			if !client.HasCode(err, "overloaded") {
				break
			}
		}
		cancel()
		if err != nil {
			t.Errorf("an honest client: %v", err)
		}
	}
	staysSmall(t, s)
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

// TestMetricsFromElsewhere: a peer that is not on loopback needs a token for the
// metrics, whatever it calls the host.
func TestMetricsFromElsewhere(t *testing.T) {
	t.Parallel()

	elsewhere := otherAddress(t)
	b := besiege(t, "sqlite:"+filepath.Join(t.TempDir(), "g.db"), 0)
	get := func(from net.IP, path, token, host string) (int, string) {
		t.Helper()
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}
		conn, err := dialer.DialContext(t.Context(), "tcp", b.addr)
		if err != nil {
			t.Skipf("from %s loopback cannot be reached here: %v", from, err)
		}
		defer conn.Close() //nolint:errcheck // it was read
		auth := ""
		if token != "" {
			auth = "Authorization: Bearer " + token + "\r\n"
		}
		if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\n"+auth+"X-Forwarded-For: 127.0.0.1\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(conn)
		if err != nil {
			t.Fatal(err)
		}
		var status int
		if _, err := fmt.Sscanf(string(text), "HTTP/1.1 %d", &status); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		return status, string(text)
	}
	loopback := net.IPv4(127, 0, 0, 1)
	for _, tt := range []struct {
		name              string
		from              net.IP
		path, token, host string
		want              int
	}{
		{"metrics here", loopback, "/metrics", "", "localhost", 200},
		{"metrics here, as a page's name", loopback, "/metrics", "", "evil.example", 403},
		{"metrics from elsewhere", elsewhere, "/metrics", "", "localhost", 401},
		{"metrics from elsewhere as loopback", elsewhere, "/metrics", "", "127.0.0.1", 401},
		{"metrics with a wrong token", elsewhere, "/metrics", "wrong", "localhost", 401},
		{"metrics with a token", elsewhere, "/metrics", readToken, "localhost", 200},
		{"health from elsewhere", elsewhere, "/healthz", "", "localhost", 200},
		{"readiness from elsewhere", elsewhere, "/readyz", "", "localhost", 200},
		{"health here, as a page's name", loopback, "/healthz", "", "evil.example", 403},
	} {
		status, text := get(tt.from, tt.path, tt.token, tt.host)
		if status != tt.want || (status == 200 && tt.path == "/metrics") != strings.Contains(text, "grapnel_gateway_calls_total") {
			t.Errorf("%s: got %d, want %d: %.300s", tt.name, status, tt.want, text)
		}
	}
}

// otherAddress is an address of this machine that is not loopback.
func otherAddress(t *testing.T) net.IP {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(errors.Join(errors.New("addresses of this machine"), err))
	}
	for _, addr := range addrs {
		if own, ok := addr.(*net.IPNet); ok && own.IP.To4() != nil && own.IP.IsGlobalUnicast() {
			return own.IP
		}
	}
	t.Skip("this machine has no address but loopback")
	return nil
}
