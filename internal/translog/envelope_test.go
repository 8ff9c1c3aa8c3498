package translog

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
)

// TestEnvelope checks an envelope with nothing but the specification and the public key.
func TestEnvelope(t *testing.T) {
	t.Parallel()

	private, public, err := NewKey("example.com/log")
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLog(private)
	if err != nil {
		t.Fatal(err)
	}
	line, err := l.Envelope("application/x", []byte(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	var e struct {
		Payload    string `json:"payload"`
		Signatures []struct {
			KeyID string `json:"keyid"`
			Sig   string `json:"sig"`
		} `json:"signatures"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		t.Fatal(err)
	}
	decode := func(s string) []byte {
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	parts := strings.SplitN(public, "+", 3)
	key := decode(parts[2])[1:] // the first byte says that it is Ed25519
	signed := "DSSEv1 13 application/x 7 " + string(decode(e.Payload))
	if e.Signatures[0].KeyID != parts[0]+"+"+parts[1] || !ed25519.Verify(key, []byte(signed), decode(e.Signatures[0].Sig)) {
		t.Errorf("the signature of %s is not that of %q", line, signed)
	}
	if _, err := newKeys(t).public.Envelope("x", nil); err == nil {
		t.Error("the public key signs")
	}
}
