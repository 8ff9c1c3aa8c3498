package wire

import (
	"fmt"

	"github.com/grapnelhq/grapnel/phases"
)

// codeInvalid is for contributions of an unknown kind.
const codeInvalid = "contribution_invalid"

// contribution is a Contribution in progress: the shared fields come before the kind is known.
type contribution struct {
	head phases.Common
	body phases.Contribution
}

func contributionFields(f *form, m *contribution) {
	f.texts(1, &m.head.ContributionID, &m.head.Domain)
	number(f, 3, &m.head.Priority)
	each(f, 4, &m.head.Diagnostics, diagnosticFields)
	choice(f, 10, &m.body, policyFields)
	choice(f, 11, &m.body, promptContextFields)
	choice(f, 12, &m.body, promptSectionFields)
	choice(f, 13, &m.body, toolBundleFields)
	choice(f, 14, &m.body, decisionFields)
	choice(f, 15, &m.body, rewriteFields)
	choice(f, 16, &m.body, reminderFields)
	choice(f, 17, &m.body, manifestDiagnosticFields)
	choice(f, 18, &m.body, auditFields)
	choice(f, 19, &m.body, backgroundJobFields)
	choice(f, 20, &m.body, noopFields)
}

// contributions is a list; unknown counts the omitted ones, whose kind is unknown.
func contributions[L ~[]phases.Contribution](f *form, n fieldNumber, p *L, unknown *int) {
	if f.writing {
		for _, c := range *p {
			f.contribution = contribution{body: c}
			if c != nil {
				f.contribution.head = *c.Head()
			}
			put(f, n, &f.contribution, contributionFields)
		}
		return
	}
	for f.has(n) {
		m := &f.contribution
		*m = contribution{}
		if take(f, m, contributionFields); m.body == nil {
			*unknown++
			continue
		}
		*m.body.Head() = m.head
		*p = append(*p, m.body)
	}
}

func policyFields(f *form, m *phases.Policy) {
	f.text(1, &m.Key)
	f.raw(2, &m.Value)
}

func promptContextFields(f *form, m *phases.PromptContext) {
	f.text(1, &m.Content)
	number(f, 2, &m.MaxChars)
	each(f, 3, &m.SourceRefs, sourceRefFields)
	f.optional(4, &m.Render)
}

func promptSectionFields(f *form, m *phases.PromptSection) {
	f.texts(1, &m.SectionID, &m.Title, (*string)(&m.Stability), (*string)(&m.Placement), &m.Content)
	ptr(f, 6, &m.Frame, sectionFrameFields)
	number(f, 7, &m.MaxChars)
	each(f, 8, &m.SourceRefs, sourceRefFields)
	ptr(f, 9, &m.Cut, selfCutFields)
}

func sectionFrameFields(f *form, m *phases.Frame) { f.texts(1, &m.Open, &m.Close) }
func selfCutFields(f *form, m *phases.SelfCut)    { numbers(f, 1, &m.Original, &m.Kept) }

func toolBundleFields(f *form, m *phases.ToolBundle) {
	f.text(1, &m.BundleID)
	each(f, 2, &m.Tools, toolFields)
}

func toolFields(f *form, m *phases.Tool) {
	f.texts(1, &m.Name, &m.Description)
	f.raw(3, &m.InputSchema)
	f.text(4, &m.HiddenDomain)
}

func decisionFields(f *form, m *phases.Decision) {
	f.texts(1, (*string)(&m.Verdict), &m.Reason, &m.ReasonCode)
}

func rewriteFields(f *form, m *phases.Rewrite) {
	f.text(1, &m.Path)
	f.raw(2, &m.Value)
}

func reminderFields(f *form, m *phases.Reminder) {
	f.text(1, &m.Type)
	pairs(f, 2, &m.Attributes, textValue[string])
	f.texts(3, &m.Text, &m.DedupeKey)
}

func manifestDiagnosticFields(f *form, m *phases.ManifestDiagnostic) {
	f.texts(1, &m.Code, &m.Message, (*string)(&m.Severity))
	f.flag(4, &m.SafeForUser)
}

func auditFields(f *form, m *phases.Audit) {
	f.text(1, &m.EventKind)
	f.raw(2, &m.Details)
	f.flag(3, &m.SafeForUser)
}

func backgroundJobFields(f *form, m *phases.BackgroundJob) {
	f.text(1, &m.JobKind)
	f.raw(2, &m.Payload)
	f.text(3, &m.IdempotencyKey)
	f.instant(4, &m.NotBefore)
}

func noopFields(*form, *phases.Noop) {}

func diagnosticFields(f *form, m *phases.Diagnostic) {
	f.texts(1, &m.Code, (*string)(&m.Severity), &m.Message, &m.Plugin, &m.Subscription, &m.OtherSubscription, &m.Slot)
	f.flag(8, &m.SafeForUser)
	f.texts(9, (*string)(&m.Visibility), (*string)(&m.Cause))
}

// result is Result: a phases.Result, or the error instead.
type result struct {
	phases.Result
	err     *phases.Error
	unknown int
}

func resultFields(f *form, m *result) {
	contributions(f, 1, &m.Contributions, &m.unknown)
	each(f, 2, &m.Diagnostics, diagnosticFields)
	repairs(f, 2)
	ptr(f, 3, &m.err, errorFields)
}

type toolResult struct {
	phases.ToolResult
	err *phases.Error
}

func toolResultFields(f *form, m *toolResult) {
	f.raw(1, &m.Content)
	f.flag(2, &m.IsError)
	each(f, 3, &m.Diagnostics, diagnosticFields)
	repairs(f, 3)
	ptr(f, 4, &m.err, errorFields)
}

// codeText is for text that was not UTF-8, or held NUL or characters that reorder text.
const codeText = "text_replaced"

// repairs adds a diagnostic if text before it had to be replaced.
func repairs(f *form, n fieldNumber) {
	if !f.writing || f.repaired == 0 {
		return
	}
	d := phases.Diagnostic{
		Code: codeText, Severity: phases.SeverityWarning,
		Message: fmt.Sprintf("%d texts of the answer were not UTF-8, or held NUL or characters that reorder text; these were replaced by U+FFFD", f.repaired),
	}
	put(f, n, &d, diagnosticFields)
}

// reportUnknown adds a diagnostic for the contributions of unknown kinds.
func (m *result) reportUnknown() {
	if m.unknown > 0 {
		m.Diagnostics = append(m.Diagnostics, phases.Diagnostic{
			Code: codeInvalid, Severity: phases.SeverityWarning,
			Message: fmt.Sprintf("%d contributions of a kind that this host does not know were omitted", m.unknown),
		})
	}
}
