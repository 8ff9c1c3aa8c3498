package manifest

import (
	"bytes"
	_ "embed" // for the schema
	"encoding/json"
)

// schemaJSON is made from the Go types and their doc comments; a test fails
// when it is stale and writes it anew with -update. It is a file so that a
// change of the published shape is seen in review.
//
//go:embed schema.json
var schemaJSON []byte

// Schema returns the JSON Schema (draft 2020-12) of the record. The caller may
// keep and change the copy.
func Schema() json.RawMessage { return bytes.Clone(schemaJSON) }
