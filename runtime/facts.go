package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/bounded"
	"github.com/grapnelhq/grapnel/internal/facts"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// inform derives the facts of the call unless they are known, and returns the input with them.
func (d *dispatch) inform() phases.Input {
	if d.facts == nil || d.stale {
		d.facts, d.stale, d.informed = d.engine.factsOf(d.input, d.rq.context.Dir, time.Until(d.deadline)/2), false, nil
	}
	if d.informed == nil {
		d.informed = withFacts(d.input, d.facts)
	}
	return d.informed
}

// inputOf returns the input for a hook that is called: what condition has derived is there.
func (d *dispatch) inputOf(c *call) phases.Input {
	if c.sub.Facts && d.informed != nil {
		return d.informed
	}
	return d.input
}

// factsOf derives the facts of a call in the given time. A file system may hang: then, as after any failure, nothing is
// known but that, and the call goes on to be judged.
func (e *dispatcher) factsOf(in phases.Input, dir string, most time.Duration) *phases.Facts {
	c := callOf(in)
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	known, err := bounded.Call(ctx, e.facts, func() (*phases.Facts, error) {
		return facts.Of(c.tool, c.arguments, c.paths, dir, e.opts.Home), nil
	}, nil)
	if err != nil {
		e.opts.Logger.Error("the facts of a call could not be derived", "tool", c.tool, "error", phases.Whole(err))
		return &phases.Facts{Unparsed: true, Why: "the call could not be looked at in time"}
	}
	repairFacts(known)
	return known
}

// repairFacts makes what was found in names of files and in words of commands valid text, as the wire and records need it.
func repairFacts(f *phases.Facts) {
	lists := [][]string{f.Reads, f.Writes, f.Names, f.Hosts, f.Outside, f.Secrets}
	for i := range f.Commands {
		c := &f.Commands[i]
		c.Program = text.Repair(c.Program)
		lists = append(lists, c.Words, c.Options)
	}
	for _, list := range lists {
		for i := range list {
			list[i] = text.Repair(list[i])
		}
	}
	f.Why = text.Repair(f.Why)
}

// toolInput is what the inputs of a tool's call have in common.
type toolInput struct {
	tool      string
	arguments json.RawMessage
	paths     []string
	facts     *phases.Facts
}

// callOf returns the call that an input is about; zero for other inputs.
func callOf(in phases.Input) toolInput {
	switch in := in.(type) {
	case *phases.ToolPreCallInput:
		return toolInput{in.Tool, in.Arguments, in.TouchedPaths, &in.Facts}
	case *phases.ToolPostCallInput:
		return toolInput{in.Tool, in.Arguments, in.TouchedPaths, &in.Facts}
	}
	return toolInput{}
}

// sameArguments reports whether two inputs of one phase are about the same call.
func sameArguments(a, b phases.Input) bool {
	return bytes.Equal(callOf(a).arguments, callOf(b).arguments)
}

// withFacts returns a copy of the input of a tool's call with these facts.
func withFacts(in phases.Input, f *phases.Facts) phases.Input {
	switch in := in.(type) {
	case *phases.ToolPreCallInput:
		own := *in
		own.Facts = *f
		return &own
	case *phases.ToolPostCallInput:
		own := *in
		own.Facts = *f
		return &own
	}
	return in
}

// withoutFacts returns the input without the facts that a host gives.
func withoutFacts(in phases.Input) phases.Input {
	if f := callOf(in).facts; f == nil || reflect.ValueOf(f).Elem().IsZero() {
		return in
	}
	return withFacts(in, &phases.Facts{})
}
