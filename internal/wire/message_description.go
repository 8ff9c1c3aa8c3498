package wire

import (
	"github.com/grapnelhq/grapnel/phases"
)

func descriptionFields(f *form, m *phases.Description) {
	f.text(1, &m.Name)
	f.text(2, &m.Version)
	f.text(3, &m.Doc)
	each(f, 4, &m.Hooks, hookFields)
	texts(f, 5, &m.Requires)
	each(f, 6, &m.Tools, toolFields)
	f.raw(7, &m.ConfigSchema)
	sub(f, 8, &m.Limits, pluginLimitsFields)
}

func pluginLimitsFields(f *form, m *phases.PluginLimits) { number(f, 1, &m.Concurrency) }

func hookFields(f *form, m *phases.Hook) {
	f.text(1, &m.Name)
	f.text(2, &m.Doc)
	f.text(3, (*string)(&m.Phase))
	texts(f, 4, &m.Kinds)
	f.text(5, (*string)(&m.Role))
	number(f, 6, &m.Priority)
	texts(f, 7, &m.After)
	texts(f, 8, &m.Before)
	f.text(9, &m.When)
	number(f, 10, &m.Timeout)
	sub(f, 11, &m.OnFailure, onFailureFields)
	fallbackFields(f, m)
	ptr(f, 13, &m.Retry, retryFields)
	f.flag(14, &m.Idempotent)
	sub(f, 15, &m.Budget, textBudgetFields)
	ptr(f, 16, &m.Cache, cacheFields)
	f.flag(17, &m.Shadow)
	f.text(18, (*string)(&m.Visibility))
	texts(f, 19, &m.Needs)
}

// fallbackFields is the field fallback of Hook. An unknown kind leaves an empty
// entry, which makes the description invalid: silence would change a policy.
func fallbackFields(f *form, m *phases.Hook) {
	unknown := 0
	contributions(f, 12, &m.Fallback, &unknown)
	for range unknown {
		m.Fallback = append(m.Fallback, nil)
	}
}

func onFailureFields(f *form, m *phases.OnFailure) {
	f.text(1, (*string)(&m.Default))
	pairs(f, 2, &m.ByCause, textValue[phases.FailureWord])
}

func retryFields(f *form, m *phases.Retry) {
	number(f, 1, &m.Attempts)
	number(f, 2, &m.Backoff)
}

func textBudgetFields(f *form, m *phases.TextBudget) {
	number(f, 1, &m.Chars)
	number(f, 2, &m.Tokens)
}

func cacheFields(f *form, m *phases.Cache) {
	number(f, 1, &m.TTL)
	texts(f, 2, &m.Vary)
	texts(f, 3, &m.Tags)
}
