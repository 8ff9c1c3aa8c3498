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

// fallbackFields keeps an empty entry for an unknown kind, which makes the description invalid.
func fallbackFields(f *form, m *phases.Hook) {
	unknown := 0
	contributions(f, 12, &m.Fallback, &unknown)
	for range unknown {
		m.Fallback = append(m.Fallback, nil)
	}
}
