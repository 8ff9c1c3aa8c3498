//go:build unix

package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/cli/client"
	"github.com/grapnelhq/grapnel/internal/tree"
)

// Tokens of a gateway under attack, by what they may do.
const (
	honestToken  = "honest-secret"  // everything, everywhere
	readToken    = "read-secret"    // reads workspace acme
	writeToken   = "write-secret"   // reads and writes workspace acme
	tenantToken  = "tenant-secret"  // everything in workspace rival
	hostilePause = 20 * time.Second // how long a hostile client waits for the gateway
)

// besieged is a gateway that tests attack: with a port, a socket and tokens.
type besieged struct {
	*served

	addr, socket string
	honest       *heard // keeps a connection
}

// besiege starts one with a document of many long revisions, in the workspace acme.
func besiege(t *testing.T, store string, revisions int) *besieged {
	t.Helper()
	dir := t.TempDir()
	file, socket := filepath.Join(dir, "tokens.yaml"), filepath.Join(dir, "g.sock")
	var list strings.Builder
	list.WriteString("tokens:\n")
	for _, row := range []struct{ name, secret, workspaces, rights string }{
		{"honest", honestToken, "'*'", "read, write, compile, dispatch, admin"},
		{"reader", readToken, "acme", "read"},
		{"writer", writeToken, "acme", "read, write"},
		{"tenant", tenantToken, "rival", "read, write, compile, dispatch"},
	} {
		fmt.Fprintf(&list, "  - {name: %s, sha256: %x, workspaces: [%s], rights: [%s]}\n", row.name, sha256.Sum256([]byte(row.secret)), row.workspaces, row.rights)
	}
	put(t, file, list.String())
	cmd, _ := commandFor(t, 10*time.Minute, "serve", "--listen", "127.0.0.1:0", "--socket", socket, "--token-file", file, "--store", store, "--log-level", "error")
	b := &besieged{served: serveWith(t, cmd, dir, nil), socket: socket}
	b.addr = strings.TrimPrefix(b.target(), "http://")
	b.honest = dial(t, b.target(), honestToken)
	for _, name := range []string{"acme", "rival"} {
		b.honest.ask(t, "workspace/create", object{"id": name, "name": name})
	}
	for i := range revisions {
		b.honest.ask(t, "thread/agents_doc/save", object{"workspace_id": "acme", "content": strings.Repeat(string(rune('a'+i%26)), tree.MaxChars), "expected_version": i})
	}
	return b
}

// wire is a hostile client's connection, written by hand.
type wire struct {
	net.Conn

	r *bufio.Reader
}

// connect opens a connection to the port, or to the socket.
func (b *besieged) connect(t *testing.T, network string) *wire {
	t.Helper()
	addr := map[string]string{"tcp": b.addr, "unix": b.socket}[network]
	conn := must((&net.Dialer{}).DialContext(t.Context(), network, addr))(t)
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(hostilePause)); err != nil {
		t.Fatal(err)
	}
	return &wire{conn, bufio.NewReader(conn)}
}

// say writes, and does not mind a gateway that has hung up.
func (w *wire) say(text string) { _, _ = io.WriteString(w, text) }

// answer reads one HTTP answer; status 0 is a connection that was closed instead.
func (w *wire) answer() (status int, body string) {
	resp, err := http.ReadResponse(w.r, nil)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// postOf is a POST of a message, as text.
func postOf(token, message string) string {
	return fmt.Sprintf("POST /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", token, len(message), message)
}

// upgradeOf is the handshake of a WebSocket, as text.
func upgradeOf(token string) string {
	return "GET /ws HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token +
		"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
}

// textOf is a message in a WebSocket frame, which is masked.
func textOf(message string) string {
	return "\x81\xff" + string(binary.BigEndian.AppendUint64(nil, uint64(len(message)))) + "\x00\x00\x00\x00" + message
}

// rpcOf is a call, as text.
func rpcOf(method string, params any) string {
	text, err := json.Marshal(object{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// works fails the test unless an honest client is served at once: over its own
// connection, over new ones, and over the socket.
func (b *besieged) works(t *testing.T) {
	t.Helper()
	b.honest.ask(t, "thread/agents_doc/get", object{"workspace_id": "acme"})
	for _, target := range []string{b.target(), wsOf(b.target()), "unix:" + b.socket} {
		ctx, cancel := context.WithTimeout(t.Context(), hostilePause)
		c, err := client.Dial(ctx, target, client.Options{Token: honestToken})
		if err == nil {
			err = c.Call(ctx, "thread/agents_doc/get", object{"workspace_id": "acme"}, nil)
			_ = c.Close()
		}
		cancel()
		if err != nil {
			t.Errorf("an honest client of %s: %v", target, err)
		}
	}
}
