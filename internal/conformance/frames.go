package conformance

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

func stdoutIsClean(h *host) error {
	if h.t.o.Transport != wire.TransportStdio {
		return skipped("over gRPC standard output holds only the handshake: see start.handshake")
	}
	list, _ := h.t.calls(2*h.t.slots(), callTime) // a plugin may have nothing to call
	h.sendAll(append(list, ping, &phases.Configuration{Instance: instance, Config: h.t.o.Config}))
	h.settle()
	h.send(drain)
	h.settle()
	for _, f := range h.frames() {
		if f.Noise {
			return failf([]uint64{f.ID}, "%v: %q", f.Invalid, cut(f.Text))
		}
	}
	return nil
}

// echoes is about all frames of the plugin: its answers have the id of a frame, and everything has the incarnation.
func echoes(h *host) error {
	list, _ := h.t.calls(1, callTime) // a plugin may have nothing to call
	h.sendAll(append(list, ping))
	h.settle()
	for _, f := range h.frames() {
		isFrame := !f.Noise && (f.Invalid == nil || f.Body != "") // other checks are about the rest
		if isFrame && f.Incarnation != incarnation {
			return failf([]uint64{f.ID}, "the incarnation of a frame is %d, want %d", f.Incarnation, incarnation)
		}
	}
	return h.ownIDs()
}

// ownIDs fails if an answer has an id that no frame had.
func (h *host) ownIDs() error {
	for id := range answers(h.frames()) {
		if id == 0 || id > h.id {
			return failf([]uint64{id}, "an answer has the id %d, which no frame had", id)
		}
	}
	return nil
}

func unknownBody(h *host) error {
	f, err := h.ask(wire.RawWord("later_body"))
	switch {
	case err != nil:
		return err
	case f.Body != bodyUnsupported:
		return failf([]uint64{f.ID}, "the answer to an unknown body is %q, want unsupported", f.Body)
	}
	return h.alive("an unknown body")
}

func unknownField(h *host) error {
	list, _ := h.t.calls(1, callTime) // a plugin may have nothing to call
	for _, m := range append(list, &phases.Configuration{Instance: instance, Config: h.t.o.Config}) {
		f, err := h.answer(h.sendAs(incarnation, m, true))
		if err != nil {
			return err
		}
		if f.Body == bodyUnsupported || f.Err != nil || f.Rejected != nil {
			return failf([]uint64{f.ID}, "the plugin refuses a frame with an unknown field")
		}
	}
	return h.alive("unknown fields")
}

func strays(h *host) error {
	list, err := h.t.calls(1, callTime)
	if err != nil {
		return err
	}
	id := h.send(list[0])
	const unknown = 1 << 40
	for _, start := range []uint64{incarnation, incarnation - 1} {
		h.write(unknown, start, phases.Errorf(phases.CauseUnavailable, "nobody has asked"), false)
		h.write(unknown, start, cancel, false)
	}
	if err := h.all([]uint64{id}); err != nil {
		return err
	}
	if err := h.alive("answers and cancels of unknown ids"); err != nil {
		return err
	}
	return h.ownIDs()
}

// least is the smallest frame limit that is tried: a plugin whose answers are always short need not measure them.
const least = 1 << 10

func oversize(t *trial) error {
	if t.longest > least {
		h, err := t.start(least)
		if err != nil {
			return err
		}
		h.send(wire.RawHello{Frame: least, HostCalls: 1})
		h.until(quickly, func(came []wire.RawFrame) bool { return len(came) > 0 }) // a plugin may also say nothing
		if err := h.within(); err != nil {
			return err
		}
	}
	measured := t.longest > least
	for _, limit := range []int{max(least, t.longest), wire.DefaultFrame} {
		h, err := t.ready(limit)
		if err != nil {
			return err
		}
		for _, m := range h.large() {
			f, err := h.ask(m)
			if err := cmp.Or(h.within(), err); err != nil {
				return err
			}
			measured = measured || f.Err != nil && f.Err.Code == phases.CauseOversizeReply
		}
	}
	if !measured {
		return skipped("no answer got too long, not even to the longest texts and tool names")
	}
	return nil
}

// takesLargest sends frames that are as long as the limit allows, or a few bytes shorter.
func takesLargest(h *host) error {
	list := h.large()
	if len(list) == 0 {
		return skipped("the plugin has neither hooks nor tools")
	}
	if _, err := h.ask(list[0]); err != nil {
		return err
	}
	return h.alive(fmt.Sprintf("a frame of %d bytes", h.limit))
}

// within fails if a frame of the plugin is longer than the limit.
func (h *host) within() error {
	for _, f := range h.frames() {
		if f.Size > h.limit {
			return failf([]uint64{f.ID}, "a frame of %d bytes where hello.max_frame_bytes is %d", f.Size, h.limit)
		}
	}
	return nil
}

// large makes calls that fill a frame, and that a plugin may answer with an even longer one: of each hook and of an
// unknown tool, with a long text and with a long name of a tool.
func (h *host) large() (list []any) {
	for _, call := range h.t.each() {
		for _, with := range []func(string) sample{
			func(long string) sample { return sample{long, "read_file"} },
			func(long string) sample { return sample{"What is in this directory?", long} },
		} {
			const probe, grows = 1000, `"` // it gets longer when a plugin quotes it
			empty := h.peer.Size(call(with("")))
			factor := (h.peer.Size(call(with(strings.Repeat(grows, probe)))) - empty + probe - 1) / probe
			if room := h.limit - empty - 64; factor > 0 && room > 0 { // ids and lengths have several bytes
				list = append(list, call(with(strings.Repeat(grows, room/factor))))
			}
		}
	}
	return list
}

// each returns a maker of calls for each hook, and for a tool that the plugin does not have.
func (t *trial) each() (list []func(sample) any) {
	d := t.configured
	for i := range d.Hooks {
		list = append(list, func(s sample) any { return dispatch(&d.Hooks[i], s) })
	}
	if len(d.Tools) > 0 {
		list = append(list, func(s sample) any { return unknownTool(s, callTime) })
	}
	return list
}

// cleanText sends text that a host may send and that a plugin must not repeat.
func cleanText(h *host) error {
	for _, call := range h.t.each() {
		for _, s := range []sample{plain(), {"turn \u202Earound\u2066 é 漢 🙂", "t\u202Eool"}} {
			f, err := h.ask(call(s))
			if err != nil {
				return err
			}
			if f.Invalid != nil && !f.Noise {
				return failf([]uint64{f.ID}, "a host refuses the answer: %v", f.Invalid)
			}
		}
	}
	return nil
}
