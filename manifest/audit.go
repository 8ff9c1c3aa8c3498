package manifest

import (
	"encoding/json"
	"time"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
)

// MaxAuditDetails is how many bytes the details of an audit may have that are kept
// themselves; of longer ones the fingerprint is kept.
const MaxAuditDetails = 4 << 10

// Audit is one event that a plugin brought for the audit trail.
type Audit struct {
	// Phase is the phase that it came from.
	Phase phases.Phase `json:"phase"`
	// Plugin is the plugin, PluginVersion its version.
	Plugin string `json:"plugin"`
	// PluginVersion is the plugin's version.
	PluginVersion string `json:"plugin_version"`
	// SubscriptionID is the full id of the subscription.
	SubscriptionID string `json:"subscription_id"`
	// EventKind is the plugin's word for what happened.
	EventKind string `json:"event_kind"`
	// ContributionHash is the hash of the contribution.
	ContributionHash string `json:"contribution_hash"`
	// Details is any JSON; absent where the plugin did not call it safe for users, or
	// where it is too long.
	Details json.RawMessage `json:"details,omitempty"`
	// DetailsFingerprint is that of the details as canonical JSON; absent without
	// details, and where they are here.
	DetailsFingerprint string `json:"details_fingerprint,omitempty"`
	// DetailsBytes is the length of the details as canonical JSON.
	DetailsBytes int `json:"details_bytes"`
}

// SetDetails takes the details of an audit: themselves where they are safe and
// short enough, else their fingerprint under the key.
func (a *Audit) SetDetails(details json.RawMessage, safe bool, key []byte) {
	if len(details) == 0 {
		return
	}
	canonical, err := digest.JSON(nil, details)
	if err != nil { // it was admitted, so it is JSON
		canonical, safe = details, false
	}
	a.DetailsBytes = len(canonical)
	if safe && len(canonical) <= MaxAuditDetails {
		a.Details = canonical
		return
	}
	a.DetailsFingerprint = Fingerprint(string(canonical), key)
}

// HashDetails leaves the fingerprint of details in their place.
func (a *Audit) HashDetails(key []byte) {
	if len(a.Details) > 0 {
		a.Details, a.DetailsFingerprint = nil, Fingerprint(string(a.Details), key)
	}
}

// AuditEvent is an audit that is in no record: it came after the prompt, from
// background work, or outside of a turn.
type AuditEvent struct {
	Audit
	// At is when it was kept, in UTC.
	At time.Time `json:"at"`
	// The ids are those of the context in which the hook was called; empty where that
	// had none.
	WorkspaceID string `json:"workspace_id"`
	ThreadID    string `json:"thread_id"`
	TurnID      string `json:"turn_id"`
	SessionID   string `json:"session_id"`
}
