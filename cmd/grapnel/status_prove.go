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
)

// maxProof is more than an answer to a nonce has, with its headers.
const maxProof = 8 << 10

// prove asks whoever answers over a connection for a proof that it is the note's
// gateway. Nothing but a random number is sent to it.
func (n *note) prove(ctx context.Context, conn net.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, knock)
	defer cancel()
	by, _ := ctx.Deadline()
	nonce := rand.Text()
	err := conn.SetDeadline(by)
	if err == nil {
		_, err = fmt.Fprintf(conn, "GET %s?nonce=%s HTTP/1.1\r\nHost: localhost\r\n\r\n", gateway.IdentityPath, nonce)
	}
	var proof []byte
	if err == nil {
		proof, err = readProof(conn)
	}
	if err == nil && !hmac.Equal(proof, []byte(gateway.Proof(n.Secret, nonce, conn.RemoteAddr().String()))) {
		err = errors.New("its proof is wrong")
	}
	if err != nil {
		return fmt.Errorf("another program answers at %s, not the gateway of %s (process %d): no token was sent to it: %w", conn.RemoteAddr(), n.path, n.PID, err)
	}
	return conn.SetDeadline(time.Time{})
}

// readProof reads the answer to a nonce, and leaves the connection for the next
// request.
func readProof(conn net.Conn) ([]byte, error) {
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
