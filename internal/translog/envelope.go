package translog

import (
	"encoding/json"
	"errors"
	"fmt"
)

// envelope is signed data in the JSON of DSSE (https://github.com/secure-systems-lab/dsse/blob/master/envelope.md).
type envelope struct {
	PayloadType string      `json:"payloadType"`
	Payload     []byte      `json:"payload"`
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	KeyID string `json:"keyid"`
	Sig   []byte `json:"sig"`
}

// Envelope signs a payload with the log's key, by Ed25519, and returns a DSSE envelope: one line of JSON.
func (l *Log) Envelope(payloadType string, payload []byte) ([]byte, error) {
	if l.signer == nil {
		return nil, errors.New("only the public key of the log is known")
	}
	signed := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload) // not the beginning of any checkpoint
	sig, err := l.signer.Sign(signed)
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{payloadType, payload, []signature{{fmt.Sprintf("%s+%08x", l.signer.Name(), l.signer.KeyHash()), sig}}})
}
