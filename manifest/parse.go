package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/grapnelhq/grapnel/internal/digest"
)

// maxDepth is more than the groups of a record nest, with room for policy
// values.
const maxDepth = 64

// Parse reads one record and validates it. Unknown fields and anything behind
// the record are errors. The JSON need not be canonical; whether it was can be
// told by comparing it with [Canonical].
func Parse(data []byte) (Manifest, error) {
	if err := digest.CheckDepth(data, maxDepth); err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var m Manifest
	if err := dec.Decode(&m); err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Manifest{}, errors.New("manifest: something follows the record")
	}
	if err := Validate(&m); err != nil {
		return Manifest{}, fmt.Errorf("manifest %.40s: %w", m.ManifestID, err)
	}
	return m, nil
}
