package merge

import (
	"fmt"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
)

// The hashed form of each kind: the fields of the value, and its kind among
// them. Embedding keeps the fields in one place; EncoderOf sorts them.
type (
	policyDoc struct {
		Kind phases.Kind `json:"kind"`
		*phases.Policy
	}
	contextDoc struct {
		Kind phases.Kind `json:"kind"`
		*phases.PromptContext
	}
	sectionDoc struct {
		Kind phases.Kind `json:"kind"`
		*phases.PromptSection
	}
	bundleDoc struct {
		Kind phases.Kind `json:"kind"`
		*phases.ToolBundle
	}
	decisionDoc struct {
		Kind phases.Kind `json:"kind"`
		*phases.Decision
	}
	rewriteDoc struct {
		Kind phases.Kind `json:"kind"`
		*phases.Rewrite
	}
	reminderDoc struct {
		Kind phases.Kind `json:"kind"`
		*phases.Reminder
	}
	diagnosticDoc struct {
		Kind phases.Kind `json:"kind"`
		*phases.ManifestDiagnostic
	}
	auditDoc struct {
		Kind phases.Kind `json:"kind"`
		*phases.Audit
	}
	jobDoc struct {
		Kind phases.Kind `json:"kind"`
		*phases.BackgroundJob
	}
	noopDoc struct {
		Kind phases.Kind `json:"kind"`
		*phases.Noop
	}
)

// Encoders are plans of types: immutable and safe for concurrent use.
//
//nolint:gochecknoglobals // immutable tables
var (
	policyEncoder     = digest.EncoderOf[policyDoc]()
	contextEncoder    = digest.EncoderOf[contextDoc]()
	sectionEncoder    = digest.EncoderOf[sectionDoc]()
	bundleEncoder     = digest.EncoderOf[bundleDoc]()
	decisionEncoder   = digest.EncoderOf[decisionDoc]()
	rewriteEncoder    = digest.EncoderOf[rewriteDoc]()
	reminderEncoder   = digest.EncoderOf[reminderDoc]()
	diagnosticEncoder = digest.EncoderOf[diagnosticDoc]()
	auditEncoder      = digest.EncoderOf[auditDoc]()
	jobEncoder        = digest.EncoderOf[jobDoc]()
	noopEncoder       = digest.EncoderOf[noopDoc]()
	toolEncoder       = digest.EncoderOf[phases.Tool]()
)

// hashOf returns the fingerprint of a contribution. buf is scratch space that is
// returned, perhaps grown, for the next one.
func hashOf(buf []byte, c phases.Contribution, key []byte) (string, []byte, error) {
	out, err := appendCanonical(room(buf, c), c)
	if err != nil {
		return "", buf, err
	}
	return digest.Fingerprint(key, out), out, nil
}

// room empties buf, or makes one that most contributions fit in at once.
func room(buf []byte, c phases.Contribution) []byte {
	const around = 512 // names, ids, and what escaping adds
	if need := textBytes(c) + around; cap(buf) < need {
		return make([]byte, 0, need)
	}
	return buf[:0]
}

// textBytes is how much of a contribution is long text.
func textBytes(c phases.Contribution) int {
	switch c := c.(type) {
	case *phases.PromptSection:
		return len(c.Content)
	case *phases.PromptContext:
		return len(c.Content)
	}
	return 0
}

// appendCanonical appends the canonical JSON of c with its kind.
func appendCanonical(dst []byte, c phases.Contribution) ([]byte, error) {
	switch c := c.(type) {
	case *phases.Policy:
		return policyEncoder.Append(dst, &policyDoc{c.Kind(), c})
	case *phases.PromptContext:
		return contextEncoder.Append(dst, &contextDoc{c.Kind(), c})
	case *phases.PromptSection:
		return sectionEncoder.Append(dst, &sectionDoc{c.Kind(), c})
	case *phases.ToolBundle:
		return bundleEncoder.Append(dst, &bundleDoc{c.Kind(), c})
	case *phases.Decision:
		return decisionEncoder.Append(dst, &decisionDoc{c.Kind(), c})
	case *phases.Rewrite:
		return rewriteEncoder.Append(dst, &rewriteDoc{c.Kind(), c})
	case *phases.Reminder:
		return reminderEncoder.Append(dst, &reminderDoc{c.Kind(), c})
	case *phases.ManifestDiagnostic:
		return diagnosticEncoder.Append(dst, &diagnosticDoc{c.Kind(), c})
	case *phases.Audit:
		return auditEncoder.Append(dst, &auditDoc{c.Kind(), c})
	case *phases.BackgroundJob:
		return jobEncoder.Append(dst, &jobDoc{c.Kind(), c})
	case *phases.Noop:
		return noopEncoder.Append(dst, &noopDoc{c.Kind(), c})
	}
	return dst, fmt.Errorf("kind %q has no canonical form", c.Kind())
}
