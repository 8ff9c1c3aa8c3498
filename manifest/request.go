package manifest

import (
	"errors"
	"fmt"
	"slices"
)

// Request is what the host reported of one request that it made of a prompt. The record of the prompt is closed before,
// so it stands in the turn's next record.
type Request struct {
	// ManifestID is the record of the prompt.
	ManifestID string `json:"manifest_id"`
	// Changes are what the request had different from that record, in the order reported; absent without any.
	Changes []RequestChange `json:"changes,omitempty"`
	// Omitted is how many further changes were reported than are kept; absent if none.
	Omitted int `json:"omitted,omitempty"`
}

// RequestChange is one thing that a request has different from its record. As long as no section leaves the placement
// "system", the system prompt that is sent begins with the text of fingerprint_full.
type RequestChange struct {
	// Kind says what differs.
	Kind RequestChangeKind `json:"kind"`
	// ID is the section's, the tool's or the call's; absent without one.
	ID string `json:"id,omitempty"`
	// Manifest is what the record or the conversation has: a place, name, id or key; absent without one.
	Manifest string `json:"manifest,omitempty"`
	// Sent is what was sent instead; absent if nothing was.
	Sent string `json:"sent,omitempty"`
}

// RequestChangeKind says what differs between a request and its record.
type RequestChangeKind string

// The kinds.
const (
	RequestPlacement RequestChangeKind = "placement"  // a section stands elsewhere; Manifest and Sent are places
	RequestToolName  RequestChangeKind = "tool_name"  // a tool has another name
	RequestToolGone  RequestChangeKind = "tool_gone"  // a tool is not sent
	RequestCacheKey  RequestChangeKind = "cache_key"  // the plan's key is sent as a hash of it
	RequestCallID    RequestChangeKind = "call_id"    // a call of the history has another id
	RequestMedia     RequestChangeKind = "media"      // an image or document is sent as a note
	RequestErrorText RequestChangeKind = "error_text" // a result without text has one
	RequestCut       RequestChangeKind = "cut"        // the host takes less text than the prompt has; Manifest and Sent are lengths in Unicode scalar values
	RequestHeld      RequestChangeKind = "held"       // a section is not sent again: the model has it from an earlier prompt, whose record Manifest names
	RequestReplaced  RequestChangeKind = "replaced"   // the model was told that a section replaces that of the prompt whose record Manifest names
	RequestRevoked   RequestChangeKind = "revoked"    // the model was told that a section of the prompt whose record Manifest names no longer applies
)

func requestChangeKinds() []RequestChangeKind {
	return []RequestChangeKind{RequestPlacement, RequestToolName, RequestToolGone, RequestCacheKey, RequestCallID, RequestMedia, RequestErrorText, RequestCut, RequestHeld, RequestReplaced, RequestRevoked}
}

// Check returns an error unless the request names a manifest by its ULID, and each change is of a known kind.
func (r *Request) Check() error {
	var errs []error
	if !isULID(r.ManifestID) {
		errs = append(errs, fmt.Errorf("manifest_id: %.80q is not a ULID", r.ManifestID))
	}
	if r.Omitted < 0 {
		errs = append(errs, fmt.Errorf("omitted: %d is below 0", r.Omitted))
	}
	for i := range r.Changes {
		if kind := r.Changes[i].Kind; !slices.Contains(requestChangeKinds(), kind) {
			errs = append(errs, fmt.Errorf("changes[%d]: the kind %.80q is unknown", i, kind))
		}
	}
	return errors.Join(errs...)
}
