package logexport

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/grapnelhq/grapnel/manifest"
)

const (
	statementType = "https://in-toto.io/Statement/v1"
	payloadType   = "application/vnd.in-toto+json"
	// PredicateType says that a predicate is a [Predicate].
	PredicateType = "https://github.com/grapnelhq/grapnel/attestation/manifest/v1"
)

// statement is an in-toto statement (https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md).
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Predicate `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// Predicate is what a statement says about its subject, a record of the log.
type Predicate struct {
	// Record is the record, with the bytes that the digest is over.
	Record json.RawMessage `json:"record"`
	// Usage are the provider's reports about it, newest last.
	Usage []manifest.Usage `json:"usage"`
}

// envelope is the signed statement about a record.
func (o *Options) envelope(r manifest.Record) ([]byte, error) {
	usage, err := o.Usage(r.Index.ManifestID)
	if err != nil {
		return nil, err
	}
	payload, err := encode(statement{
		Type:          statementType,
		Subject:       []subject{{r.Index.ManifestID, map[string]string{"sha256": hexSum(r.Data)}}},
		PredicateType: PredicateType,
		Predicate:     Predicate{Record: r.Data, Usage: usage},
	})
	if err != nil {
		return nil, err
	}
	return o.Envelope(payloadType, payload)
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// encode is json.Marshal, but leaves the bytes of raw JSON as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
