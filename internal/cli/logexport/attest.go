package logexport

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/grapnelhq/grapnel/manifest"
)

// The type of the predicate: an object with the record, whose bytes the digest is over, and the provider's reports about it,
// newest last, as usage.
const predicateType = "https://github.com/grapnelhq/grapnel/attestation/manifest/v1"

// envelope is the signed in-toto statement about a record (https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md).
func (o *Options) envelope(r manifest.Record) ([]byte, error) {
	usage, err := o.Usage(r.Index.ManifestID)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(r.Data)
	payload, err := encode(object{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       list{object{"name": r.Index.ManifestID, "digest": object{"sha256": hex.EncodeToString(sum[:])}}},
		"predicateType": predicateType,
		"predicate":     object{"record": json.RawMessage(r.Data), "usage": usage},
	})
	if err != nil {
		return nil, err
	}
	return o.Envelope("application/vnd.in-toto+json", payload)
}

// encode is json.Marshal, but leaves the bytes of raw JSON as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
