package phases

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// ValidateContribution checks one contribution against its phase: required fields, known words, well-formed
// ids, UTF-8 without NUL, and embedded JSON at most [MaxJSONDepth] deep. A kind that the phase does not take is
// a [CodeNotAllowed] error; anything else is [CauseInvalidReply].
func ValidateContribution(c Contribution, row Row) error {
	if !row.Accepts(KindOf(c)) {
		return Errorf(CodeNotAllowed, "phase %s does not take %s", row.Phase, KindOf(c))
	}
	v := &contributionCheck{}
	head := c.Head()
	v.id("contribution_id", head.ContributionID)
	v.id("domain", head.Domain)
	for i := range head.Diagnostics {
		v.text("diagnostics", head.Diagnostics[i].Code, MaxIDBytes)
		v.text("diagnostics", head.Diagnostics[i].Message, 0)
	}
	v.body(c)
	if v.err != nil {
		return &Error{Code: CauseInvalidReply, Message: fmt.Sprintf("%s: %v", KindOf(c), v.err), Detail: DetailOf(v.err)}
	}
	return nil
}

// contributionCheck keeps the first mistake.
type contributionCheck struct{ err error }

func (v *contributionCheck) body(c Contribution) {
	switch c := c.(type) {
	case *Policy:
		v.need("domain", c.Domain)
		v.need("key", c.Key)
		v.id("key", c.Key)
		v.json("value", c.Value, true)
	case *PromptContext:
		v.text("content", c.Content, 0)
		v.limit("max_chars", c.MaxChars)
		v.refs(c.SourceRefs)
	case *PromptSection:
		v.section(c)
	case *ToolBundle:
		v.name("bundle_id", c.BundleID)
		if v.listed("tools", len(c.Tools)); v.err != nil {
			return
		}
		if errs := validateTools(c.Tools); v.err == nil && len(errs) > 0 {
			v.err = WithDetail("tools: one of them is not valid", errs[0].Error(), nil)
		}
	case *Decision:
		v.word("verdict", string(c.Verdict), "allow", "ask", "deny")
		v.text("reason", c.Reason, 0)
		v.code("reason_code", c.ReasonCode)
	case *Rewrite:
		if c.Path != "" && c.Path[0] != '/' {
			v.fail("path", "is not a JSON pointer")
		}
		v.text("path", c.Path, 0)
		v.json("value", c.Value, true)
	case *Reminder:
		v.name("type", c.Type)
		v.text("text", c.Text, 0)
		v.text("dedupe_key", c.DedupeKey, 0)
		v.listed("attributes", len(c.Attributes))
		for name, value := range c.Attributes {
			v.name("attributes", name)
			v.text("attributes", value, 0)
		}
	case *ManifestDiagnostic:
		v.need("code", c.Code)
		v.code("code", c.Code)
		v.text("message", c.Message, 0)
		v.word("severity", string(c.Severity), "", "info", "warning", "error")
	case *Audit:
		v.need("event_kind", c.EventKind)
		v.code("event_kind", c.EventKind)
		v.json("details", c.Details, false)
	case *BackgroundJob:
		v.need("job_kind", c.JobKind)
		v.name("job_kind", c.JobKind)
		v.text("idempotency_key", c.IdempotencyKey, MaxIDBytes)
		v.json("payload", c.Payload, false)
	}
}

func (v *contributionCheck) section(c *PromptSection) {
	v.name("section_id", c.SectionID)
	v.text("title", c.Title, 0)
	if strings.ContainsAny(c.Title, "\r\n") {
		v.fail("title", "is more than one line")
	}
	v.word("stability", string(c.Stability), "", "stable", "dynamic")
	v.word("placement", string(c.Placement), "", "system", "system_message", "user_message")
	v.text("content", c.Content, 0)
	if c.Frame != nil {
		v.text("frame", c.Frame.Open, 0)
		v.text("frame", c.Frame.Close, 0)
	}
	v.limit("max_chars", c.MaxChars)
	v.refs(c.SourceRefs)
	if c.Cut != nil && (c.Cut.Kept < 0 || c.Cut.Original < c.Cut.Kept) {
		v.fail("cut", "kept must be between 0 and original")
	}
}

func (v *contributionCheck) fail(field, what string) {
	if v.err == nil {
		v.err = fmt.Errorf("%s %s", field, what)
	}
}

func (v *contributionCheck) text(field, s string, maxBytes int) {
	switch {
	case !utf8.ValidString(s):
		v.fail(field, "is not valid UTF-8")
	case strings.IndexByte(s, 0) >= 0:
		v.fail(field, "holds a NUL")
	case maxBytes > 0 && len(s) > maxBytes:
		v.fail(field, fmt.Sprintf("is longer than %d bytes", maxBytes))
	}
}

func (v *contributionCheck) need(field, s string) {
	if s == "" {
		v.fail(field, "is empty")
	}
	v.text(field, s, MaxIDBytes)
}

func (v *contributionCheck) name(field, s string) {
	if !ValidName(s) {
		v.refuse(field, "is not a name (letters, digits and _ . : / -, at most 128)", s)
	}
}

// id checks an id that the plugin chose, if any.
func (v *contributionCheck) id(field, s string) {
	if s != "" && !ValidID(s) {
		v.refuse(field, fmt.Sprintf("is not an id (letters, digits and _ . : / # -, at most %d)", MaxIDBytes), s)
	}
}

// code checks a code that the plugin chose, if any.
func (v *contributionCheck) code(field, s string) {
	if s != "" && !ValidCode(s) {
		v.refuse(field, fmt.Sprintf("is not a code (lower-case letters, digits, _ and ., at most %d)", maxCode), s)
	}
}

// refuse keeps the value apart from the safe message.
func (v *contributionCheck) refuse(field, what, value string) {
	if v.err == nil {
		v.err = WithDetail(field+" "+what, fmt.Sprintf("%s is %.80q", field, value), nil)
	}
}

func (v *contributionCheck) word(field, s string, known ...string) {
	if !slices.Contains(known, s) {
		v.refuse(field, "is none of "+strings.Trim(strings.Join(known, ", "), ", "), s)
	}
}

func (v *contributionCheck) limit(field string, n int) {
	if n < 0 {
		v.fail(field, "is negative")
	}
}

// listed bounds a list, since manifests keep them.
func (v *contributionCheck) listed(field string, n int) {
	if n > MaxListed {
		v.fail(field, fmt.Sprintf("has %d entries; at most %d", n, MaxListed))
	}
}

func (v *contributionCheck) refs(refs []SourceRef) {
	v.listed("source_refs", len(refs))
	for _, r := range refs {
		v.word("source_refs", r.Kind, SourceKinds()...)
		v.text("source_refs", r.ID, 0)
		v.text("source_refs", r.Label, 0)
		v.text("source_refs", r.Hash, 0)
	}
}

func (v *contributionCheck) json(field string, raw json.RawMessage, required bool) {
	if len(raw) == 0 {
		if required {
			v.fail(field, "is empty")
		}
		return
	}
	err := jsonscan.Check(raw, MaxJSONDepth)
	if err == nil {
		err = jsonscan.Unique(raw)
	}
	if err != nil {
		v.fail(field, err.Error())
	}
}
