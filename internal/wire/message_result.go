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
	kindFields(f, &m.body)
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
