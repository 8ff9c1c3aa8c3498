package manifest

import (
	"errors"
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// Text is one rendered section of a prompt, heading included, addressed by its
// fingerprint. Sections repeat from turn to turn, so a store keeps each once.
type Text struct {
	// Fingerprint is the one by which manifests name the text.
	Fingerprint string
	// Text is the section as it stands in the prompt.
	Text string
}

// Usage is what a provider reported for the prompt of a kept manifest. It stands
// beside the record and outside its hash: it is not known until the record is
// closed.
type Usage struct {
	// ManifestID names the manifest.
	ManifestID string `json:"manifest_id"`
	// Rounds is how many compilations of the turn the numbers are for, up to and
	// with this manifest; 1 means this one alone.
	Rounds int `json:"rounds"`
	// ReportedAt is when the numbers came in, in UTC.
	ReportedAt time.Time `json:"reported_at"`
	phases.Usage
}

// Check says whether the numbers make sense: a known manifest, at least one
// round, a time, and no count below 0.
func (u *Usage) Check() error {
	switch {
	case !isULID(u.ManifestID):
		return fmt.Errorf("usage: manifest_id: %q is not a ULID", u.ManifestID)
	case u.Rounds < 1:
		return fmt.Errorf("usage: rounds: %d is below 1", u.Rounds)
	case u.ReportedAt.IsZero():
		return errors.New("usage: reported_at: is not set")
	case min(u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens) < 0:
		return errors.New("usage: a count is below 0")
	}
	return nil
}
