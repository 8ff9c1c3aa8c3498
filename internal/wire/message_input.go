package wire

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/grapnelhq/grapnel/phases"
)

type fieldNumber = protowire.Number

// inputFields is the oneof "input" of Dispatch: a row a phase.
func inputFields(f *form, p *phases.Input) {
	choice(f, 20, p, sessionStartFields)
	choice(f, 21, p, sessionResumeFields)
	choice(f, 22, p, prePolicyFields)
	choice(f, 23, p, prePromptContextFields)
	choice(f, 24, p, postPreflightFields)
	choice(f, 25, p, preToolsFields)
	choice(f, 26, p, prePromptCompileFields)
	choice(f, 27, p, postPromptCompileFields)
	choice(f, 28, p, runtimePreContextFields)
	choice(f, 29, p, toolPreCallFields)
	choice(f, 30, p, toolPostCallFields)
	choice(f, 31, p, postTurnFields)
	choice(f, 32, p, preCompactionFields)
	choice(f, 33, p, postCompactionFields)
	choice(f, 34, p, sessionEndFields)
	choice(f, 35, p, customFields)
}

// choice is one member of a oneof that is an interface I in Go, which *T
// implements. The last one read wins; the same one again is merged, as protobuf
// has it.
func choice[T, I any](f *form, n fieldNumber, p *I, fields func(*form, *T)) {
	if f.writing {
		if v, ok := any(*p).(*T); ok {
			put(f, n, v, fields)
		}
		return
	}
	if !f.has(n) {
		return
	}
	v, ok := any(*p).(*T)
	if !ok {
		v = new(T)
	}
	take(f, v, fields)
	*p, _ = any(v).(I)
}

// completeInput gives a dispatch what a sender may leave out: an input that is
// all empty, and the phase of a custom one.
func completeInput(d *phases.Dispatch, table *phases.Table) {
	if in, ok := d.Input.(*phases.CustomInput); ok {
		in.Name = d.Phase
	}
	if d.Input != nil {
		return
	}
	if row, ok := table.Lookup(d.Phase); ok {
		d.Input = row.NewInput()
	} else if strings.HasPrefix(string(d.Phase), "x.") {
		d.Input = &phases.CustomInput{Name: d.Phase}
	}
}

func textFields(f *form, m *phases.Text) {
	if f.writing {
		if m.Withheld {
			f.putNumber(2, uint64(m.Chars)) //nolint:gosec // two's complement is the encoding
		} else {
			f.text(1, &m.Value)
		}
		return
	}
	if f.has(1) {
		*m = phases.Text{Value: f.takeText()}
	}
	if f.hasNumber(2) {
		*m = phases.Text{Withheld: true, Chars: int(f.u)} //nolint:gosec // likewise
		f.next()
	}
}

func previewFields(f *form, m *phases.Preview) {
	f.text(1, &m.Text)
	number(f, 2, &m.OriginalLength)
	f.flag(3, &m.Truncated)
	f.flag(4, &m.Withheld)
}

func sessionStartFields(f *form, m *phases.SessionStartInput) { f.text(1, &m.Source) }

func sessionResumeFields(f *form, m *phases.SessionResumeInput) { f.raw(1, &m.State) }

func prePolicyFields(f *form, m *phases.PrePolicyInput) {
	sub(f, 1, &m.UserText, textFields)
	f.text(2, &m.Model)
	f.text(3, &m.Provider)
}

func prePromptContextFields(f *form, m *phases.PrePromptContextInput) {
	sub(f, 1, &m.UserText, textFields)
	f.text(2, &m.Model)
	f.text(3, &m.Provider)
}

func postPreflightFields(f *form, m *phases.PostPreflightInput) {
	sub(f, 1, &m.UserText, textFields)
	f.text(2, &m.Model)
	f.text(3, &m.Provider)
	f.raw(4, &m.RecallPlan)
}

func preToolsFields(f *form, m *phases.PreToolsInput) {
	f.flag(1, &m.ToolCalling)
	texts(f, 2, &m.ExistingTools)
}

func prePromptCompileFields(f *form, m *phases.PrePromptCompileInput) {
	f.flag(1, &m.ToolCalling)
	texts(f, 2, &m.AvailableTools)
	texts(f, 3, &m.Sections)
}

func postPromptCompileFields(f *form, m *phases.PostPromptCompileInput) {
	f.raw(1, &m.Manifest)
	sub(f, 2, &m.PromptText, textFields)
}

func runtimePreContextFields(f *form, m *phases.RuntimePreContextInput) {
	sub(f, 1, &m.UserText, textFields)
}

func toolPreCallFields(f *form, m *phases.ToolPreCallInput) {
	f.text(1, &m.Tool)
	f.raw(2, &m.Arguments)
	texts(f, 3, &m.TouchedPaths)
}

func toolPostCallFields(f *form, m *phases.ToolPostCallInput) {
	f.text(1, &m.Tool)
	f.raw(2, &m.Arguments)
	sub(f, 3, &m.Result, previewFields)
	texts(f, 4, &m.TouchedPaths)
	f.text(5, &m.Outcome)
}

func postTurnFields(f *form, m *phases.PostTurnInput) {
	f.text(1, (*string)(&m.Status))
	sub(f, 2, &m.UserText, previewFields)
	sub(f, 3, &m.AssistantText, previewFields)
	sub(f, 4, &m.Error, previewFields)
	each(f, 5, &m.ToolEvents, toolEventFields)
	each(f, 6, &m.DomainEvents, domainEventFields)
	sub(f, 7, &m.Usage, usageFields)
}

func toolEventFields(f *form, m *phases.ToolEvent) {
	f.text(1, &m.Tool)
	f.text(2, &m.CallID)
	f.text(3, &m.Outcome)
	f.double(4, &m.DurationMS)
}

func domainEventFields(f *form, m *phases.DomainEvent) {
	f.text(1, &m.Kind)
	f.raw(2, &m.Details)
}

func usageFields(f *form, m *phases.Usage) {
	number(f, 1, &m.InputTokens)
	number(f, 2, &m.OutputTokens)
	number(f, 3, &m.CacheReadTokens)
	number(f, 4, &m.CacheWriteTokens)
}

func preCompactionFields(f *form, m *phases.PreCompactionInput) {
	f.text(1, &m.Trigger)
	sub(f, 2, &m.SourceRange, sourceRangeFields)
	number(f, 3, &m.TokenBudget)
	texts(f, 4, &m.Policies)
}

func sourceRangeFields(f *form, m *phases.SourceRange) {
	f.text(1, &m.From)
	f.text(2, &m.To)
}

func postCompactionFields(f *form, m *phases.PostCompactionInput) {
	sub(f, 1, &m.Summary, previewFields)
	texts(f, 2, &m.Lost)
}

func sessionEndFields(f *form, m *phases.SessionEndInput) { f.text(1, &m.Reason) }

func customFields(f *form, m *phases.CustomInput) { f.raw(1, &m.Fields) }
