package wire

import (
	"encoding/json"

	"github.com/grapnelhq/grapnel/phases"
)

type hello struct {
	version   uint64
	features  []string
	frame     uint64
	hostCalls uint64
	transport string
}

func helloFields(f *form, m *hello) {
	number(f, 1, &m.version)
	list(f, 2, &m.features)
	number(f, 3, &m.frame)
	number(f, 4, &m.hostCalls)
	f.text(5, &m.transport)
}

type described struct {
	description *phases.Description
	err         *phases.Error
	lane        bool
}

func describeFields(f *form, m *described) {
	ptr(f, 1, &m.description, descriptionFields)
	ptr(f, 2, &m.err, errorFields)
	f.flag(3, &m.lane)
}

func configureFields(f *form, m *phases.Configuration) {
	f.text(1, &m.Instance)
	f.raw(2, &m.Config)
	list(f, 3, &m.Services)
}

type configured struct {
	description *phases.Description
	rejected    *phases.ConfigError
	err         *phases.Error
}

func configuredFields(f *form, m *configured) {
	ptr(f, 1, &m.description, descriptionFields)
	ptr(f, 2, &m.rejected, rejectionFields)
	ptr(f, 3, &m.err, errorFields)
}

func rejectionFields(f *form, m *phases.ConfigError) { f.texts(1, &m.Pointer, &m.Message) }

type hostCall struct {
	parent          uint64
	service, method string
	params          json.RawMessage
}

func hostCallFields(f *form, m *hostCall) {
	number(f, 1, &m.parent)
	f.texts(2, &m.service, &m.method)
	f.raw(4, &m.params)
}

type hostReply struct {
	result json.RawMessage
	err    *phases.Error
}

func hostReplyFields(f *form, m *hostReply) {
	f.raw(1, &m.result)
	ptr(f, 2, &m.err, errorFields)
}

type invalidate struct {
	phases.Invalidation
	parent uint64
}

func invalidateFields(f *form, m *invalidate) {
	list(f, 1, &m.Subscriptions)
	list(f, 2, &m.Tags)
	number(f, 3, &m.parent)
}

func errorFields(f *form, m *phases.Error) {
	f.texts(1, (*string)(&m.Code), &m.Message, &m.PluginCode)
	f.flag(4, &m.Retryable)
	f.flag(5, &m.SafeForUser)
}

type unsupported struct {
	body uint64
	name string
}

func unsupportedFields(f *form, m *unsupported) {
	number(f, 1, &m.body)
	f.text(2, &m.name)
}

// none is a message without fields: Cancel, Ping, Pong, Drain.
type none struct{}

func noFields(*form, *none) {}

func descriptionFields(f *form, m *phases.Description) {
	f.texts(1, &m.Name, &m.Version, &m.Doc)
	each(f, 4, &m.Hooks, hookFields)
	list(f, 5, &m.Requires)
	each(f, 6, &m.Tools, toolFields)
	f.raw(7, &m.ConfigSchema)
	sub(f, 8, &m.Limits, pluginLimitsFields)
}

func pluginLimitsFields(f *form, m *phases.PluginLimits) { number(f, 1, &m.Concurrency) }

func hookFields(f *form, m *phases.Hook) {
	f.texts(1, &m.Name, &m.Doc, (*string)(&m.Phase))
	list(f, 4, &m.Kinds)
	f.text(5, (*string)(&m.Role))
	number(f, 6, &m.Priority)
	list(f, 7, &m.After)
	list(f, 8, &m.Before)
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
	list(f, 19, &m.Needs)
}

// fallbackFields keeps an empty entry for an unknown kind, which makes the description invalid.
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

func textBudgetFields(f *form, m *phases.TextBudget) { numbers(f, 1, &m.Chars, &m.Tokens) }

func cacheFields(f *form, m *phases.Cache) {
	number(f, 1, &m.TTL)
	list(f, 2, &m.Vary)
	list(f, 3, &m.Tags)
}
