package wire

import (
	"encoding/json"

	"github.com/grapnelhq/grapnel/phases"
)

// hello is Hello.
type hello struct {
	version   uint64
	features  []string
	frame     uint64
	hostCalls uint64
}

func helloFields(f *form, m *hello) {
	number(f, 1, &m.version)
	texts(f, 2, &m.features)
	number(f, 3, &m.frame)
	number(f, 4, &m.hostCalls)
}

// described is Describe.
type described struct {
	description *phases.Description
	err         *phases.Error
}

func describeFields(f *form, m *described) {
	ptr(f, 1, &m.description, descriptionFields)
	ptr(f, 2, &m.err, errorFields)
}

func configureFields(f *form, m *phases.Configuration) {
	f.text(1, &m.Instance)
	f.raw(2, &m.Config)
	texts(f, 3, &m.Services)
}

// configured is Configured.
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

func rejectionFields(f *form, m *phases.ConfigError) {
	f.text(1, &m.Pointer)
	f.text(2, &m.Message)
}

// hostCall is HostCall.
type hostCall struct {
	parent          uint64
	service, method string
	params          json.RawMessage
}

func hostCallFields(f *form, m *hostCall) {
	number(f, 1, &m.parent)
	f.text(2, &m.service)
	f.text(3, &m.method)
	f.raw(4, &m.params)
}

// hostReply is HostReply.
type hostReply struct {
	result json.RawMessage
	err    *phases.Error
}

func hostReplyFields(f *form, m *hostReply) {
	f.raw(1, &m.result)
	ptr(f, 2, &m.err, errorFields)
}

// invalidate is Invalidate.
type invalidate struct {
	phases.Invalidation
	parent uint64
}

func invalidateFields(f *form, m *invalidate) {
	texts(f, 1, &m.Subscriptions)
	texts(f, 2, &m.Tags)
	number(f, 3, &m.parent)
}

func errorFields(f *form, m *phases.Error) {
	f.text(1, (*string)(&m.Code))
	f.text(2, &m.Message)
	f.text(3, &m.PluginCode)
	f.flag(4, &m.Retryable)
	f.flag(5, &m.SafeForUser)
}

// unsupported is Unsupported.
type unsupported struct{ body uint64 }

func unsupportedFields(f *form, m *unsupported) { number(f, 1, &m.body) }

// none is the message without fields: Cancel, Ping, Pong, Drain.
type none struct{}

func noFields(*form, *none) {}
