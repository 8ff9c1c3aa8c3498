package main

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/peer"
)

// maxProof is more than an answer to a nonce has, with its headers.
const maxProof = 8 << 10

// prove makes sure that it is the note's gateway which is at the other end of a
// connection. The system says which process listens on a socket; at a port whoever
// answers is asked for a proof, and gets nothing but a random number.
func (n *note) prove(ctx context.Context, conn net.Conn) error {
	var err error
	if _, ok := conn.(*net.UnixConn); ok {
		err = n.proveProcess(conn)
	} else {
		err = n.challenge(ctx, conn)
	}
	if err != nil {
		return fmt.Errorf("another program answers at %s, not the gateway of %s (process %d): no token was sent to it: %w", conn.RemoteAddr(), n.path, n.PID, err)
	}
	return nil
}

// proveProcess compares the process that listens on a socket with the note's, which
// lives. Systems that do not say which it is leave it at its user.
func (n *note) proveProcess(conn net.Conn) error {
	c, err := peer.Of(conn)
	if errors.Is(err, peer.ErrUnsupported) {
		return nil
	}
	if err == nil && c.PID != n.PID {
		err = fmt.Errorf("process %d listens there", c.PID)
	}
	return err
}

// challenge sends a nonce and compares the answer.
func (n *note) challenge(ctx context.Context, conn net.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, knock)
	defer cancel()
	by, _ := ctx.Deadline()
	if err := conn.SetDeadline(by); err != nil {
		return err
	}
	nonce := rand.Text()
	if _, err := fmt.Fprintf(conn, "GET %s?nonce=%s HTTP/1.1\r\nHost: localhost\r\n\r\n", gateway.IdentityPath, nonce); err != nil {
		return err
	}
	proof, err := readProof(conn)
	if err != nil {
		return err
	}
	if !hmac.Equal(proof, []byte(gateway.Proof(n.Secret, nonce, conn.RemoteAddr().String()))) {
		return errors.New("its proof is wrong")
	}
	return conn.SetDeadline(time.Time{})
}

// readProof reads the answer to a nonce, and leaves the connection for the next
// request.
func readProof(conn io.Reader) ([]byte, error) {
	r := bufio.NewReader(io.LimitReader(conn, maxProof))
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, err
	}
	proof, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || resp.Close || r.Buffered() > 0 {
		return nil, fmt.Errorf("it answers %s", resp.Status)
	}
	return proof, nil
}
