package wire

import (
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/grapnelhq/grapnel/phases"
)

// These functions are the messages of plugin.proto: same numbers, same order. See form for how they work.

func contextFields(f *form, m *phases.Context) {
	f.texts(1, &m.WorkspaceID, &m.ThreadID, &m.ConversationThreadID, &m.TurnID, &m.TaskID, &m.AgentID,
		&m.SessionID, &m.ParentSessionID)
	number(f, 9, &m.Epoch)
	f.texts(10, (*string)(&m.Mode), (*string)(&m.Profile))
	sub(f, 12, &m.Actor, actorFields)
	f.instant(13, &m.Now)
	f.text(14, &m.Dir)
	pairs(f, 15, &m.Flags, (*form).flag)
	pairs(f, 16, &m.Metadata, (*form).raw)
	f.text(17, &m.DirRoot)
}

func actorFields(f *form, m *phases.Actor) { f.texts(1, &m.Kind, &m.ID) }
func traceFields(f *form, m *phases.Trace) { f.texts(1, &m.Parent, &m.State) }

func answerBudgetFields(f *form, m *phases.AnswerBudget) { numbers(f, 1, &m.MaxChars, &m.MaxBytes) }

func policyEntryFields(f *form, m *phases.PolicyEntry) {
	f.texts(1, &m.Domain, &m.Key)
	f.raw(3, &m.Value)
	number(f, 4, &m.Priority)
	f.text(5, &m.Owner)
}

func contextEntryFields(f *form, m *phases.ContextEntry) {
	f.texts(1, &m.ContributionID, &m.Domain, &m.Content)
	number(f, 4, &m.Priority)
	f.text(5, &m.Owner)
	f.flag(6, &m.Render)
	each(f, 7, &m.SourceRefs, sourceRefFields)
	ptr(f, 8, &m.Truncation, truncationFields)
}

func sourceRefFields(f *form, m *phases.SourceRef) { f.texts(1, &m.Kind, &m.ID, &m.Label, &m.Hash) }

func truncationFields(f *form, m *phases.Truncation) {
	f.text(1, (*string)(&m.Limit))
	numbers(f, 2, &m.Original, &m.Kept)
}

// dispatchFields is Dispatch. The incarnation is in the frame.
func dispatchFields(f *form, m *phases.Dispatch) {
	f.texts(1, &m.Subscription, &m.Hook, (*string)(&m.Phase))
	sub(f, 4, &m.Context, contextFields)
	list(f, 5, &m.Withheld)
	each(f, 6, &m.Policies, policyEntryFields)
	each(f, 7, &m.Contexts, contextEntryFields)
	number(f, 8, &m.Attempt)
	f.text(9, &m.IdempotencyKey)
	sub(f, 10, &m.Trace, traceFields)
	sub(f, 11, &m.Budget, answerBudgetFields)
	remaining(f, 12, &m.Remaining)
	number(f, 13, &m.Generation)
	inputFields(f, &m.Input)
}

func toolCallFields(f *form, m *phases.ToolCall) {
	f.text(1, &m.Tool)
	f.raw(2, &m.Arguments)
	sub(f, 3, &m.Context, contextFields)
	f.text(4, &m.IdempotencyKey)
	sub(f, 5, &m.Trace, traceFields)
	sub(f, 6, &m.Budget, answerBudgetFields)
	remaining(f, 7, &m.Remaining)
	number(f, 8, &m.Generation)
	each(f, 9, &m.Policies, policyEntryFields)
	f.flag(10, &m.OutsideTurn)
}

// remaining is the time that is left, bounded by what the caller will wait.
func remaining(f *form, n fieldNumber, p *time.Duration) {
	if f.writing && f.most > 0 && (*p <= 0 || *p > f.most) {
		p = &f.most
	}
	number(f, n, p)
}

type fieldNumber = protowire.Number

// inputFields is the oneof "input" of Dispatch.
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
	choice(f, 36, p, preEndFields)
}

// choice is one member of a oneof, an interface I that *T implements. The last one wins; the same one is merged.
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

// completeInput fills in what a sender may omit: an empty input, and the phase of a custom one.
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

func sessionStartFields(f *form, m *phases.SessionStartInput)   { f.text(1, &m.Source) }
func sessionResumeFields(f *form, m *phases.SessionResumeInput) { f.raw(1, &m.State) }

func prePolicyFields(f *form, m *phases.PrePolicyInput) {
	sub(f, 1, &m.UserText, textFields)
	f.texts(2, &m.Model, &m.Provider)
}

func prePromptContextFields(f *form, m *phases.PrePromptContextInput) {
	sub(f, 1, &m.UserText, textFields)
	f.texts(2, &m.Model, &m.Provider)
}

func postPreflightFields(f *form, m *phases.PostPreflightInput) {
	sub(f, 1, &m.UserText, textFields)
	f.texts(2, &m.Model, &m.Provider)
	f.raw(4, &m.RecallPlan)
}

func preToolsFields(f *form, m *phases.PreToolsInput) {
	f.flag(1, &m.ToolCalling)
	list(f, 2, &m.ExistingTools)
}

func prePromptCompileFields(f *form, m *phases.PrePromptCompileInput) {
	f.flag(1, &m.ToolCalling)
	list(f, 2, &m.AvailableTools)
	list(f, 3, &m.Sections)
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
	list(f, 3, &m.TouchedPaths)
}

func toolPostCallFields(f *form, m *phases.ToolPostCallInput) {
	f.text(1, &m.Tool)
	f.raw(2, &m.Arguments)
	sub(f, 3, &m.Result, previewFields)
	list(f, 4, &m.TouchedPaths)
	f.text(5, &m.Outcome)
}

func preEndFields(f *form, m *phases.PreEndInput) {
	sub(f, 1, &m.Text, textFields)
	list(f, 2, &m.OpenTasks)
	number(f, 3, &m.Forced)
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
	f.texts(1, &m.Tool, &m.CallID, &m.Outcome)
	f.double(4, &m.DurationMS)
}

func domainEventFields(f *form, m *phases.DomainEvent) {
	f.text(1, &m.Kind)
	f.raw(2, &m.Details)
}

func usageFields(f *form, m *phases.Usage) {
	numbers(f, 1, &m.InputTokens, &m.OutputTokens, &m.CacheReadTokens, &m.CacheWriteTokens)
}

func preCompactionFields(f *form, m *phases.PreCompactionInput) {
	f.text(1, &m.Trigger)
	sub(f, 2, &m.SourceRange, sourceRangeFields)
	number(f, 3, &m.TokenBudget)
	list(f, 4, &m.Policies)
}

func sourceRangeFields(f *form, m *phases.SourceRange) { f.texts(1, &m.From, &m.To) }

func postCompactionFields(f *form, m *phases.PostCompactionInput) {
	sub(f, 1, &m.Summary, previewFields)
	list(f, 2, &m.Lost)
}

func sessionEndFields(f *form, m *phases.SessionEndInput) { f.text(1, &m.Reason) }
func customFields(f *form, m *phases.CustomInput)         { f.raw(1, &m.Fields) }
