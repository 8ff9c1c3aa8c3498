package gateway

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"regexp"
)

// IdentityPath is where a gateway with [Options.Secret] proves which one it is: GET
// with the parameter nonce is answered with [Proof] of it.
const IdentityPath = "/identity"

// nonceForm is what a nonce may be. A gateway answers whoever asks, so that nothing
// else may pass for a nonce.
var nonceForm = regexp.MustCompile(`^[A-Za-z0-9]{16,64}$`)

// Proof is what a gateway answers to a nonce, and nobody can who does not know its
// secret. The address is the one at which the gateway was asked, as HOST:PORT: a
// program at another address that passes the question on gets a proof of no use.
func Proof(secret []byte, nonce, address string) string {
	mac := hmac.New(sha256.New, secret)
	for _, part := range []string{"grapnel identity 1", nonce, address} {
		_, _ = io.WriteString(mac, part+"\x00") // a hash takes everything
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// identify answers at IdentityPath. It takes no token: callers ask before they send
// theirs.
func (g *Gateway) identify(w http.ResponseWriter, r *http.Request) {
	nonce := r.URL.Query().Get("nonce")
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !nonceForm.MatchString(nonce) {
		http.Error(w, "nonce: 16 to 64 letters and digits", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, Proof(g.opts.Secret, nonce, at.String())) // the caller is gone, or reads it
}
