package agentsdoc

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/textrule"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/lazy"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/reminder"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/watch"
	"github.com/grapnelhq/grapnel/sdk"
)

// changed is the handler of the hook "changed": within a session it tells what
// is another than the block says. As long as nothing is, the host may go on
// without asking.
func (d *docs) changed(ctx context.Context, call *sdk.Call, _ *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
	if call.Context.Dir == "" || call.Context.SessionID == "" || d.withheld(&call.Context) {
		return nil, nil
	}
	s, err := d.open(ctx, call)
	if err != nil {
		return nil, err
	}
	defer s.leave()
	var out []phases.Contribution
	if s.latest() != nil { // else the other hook is about to say it
		if out, err = d.news(ctx, call, s); err != nil {
			return nil, err
		}
	}
	out = append(out, s.takeWaiting()...)
	if len(out) > 0 || s.polled || s.dirty.Load() {
		passing(ctx, call)
	}
	return out, nil
}

// news is what is to be told of the files of the session's working folder.
func (d *docs) news(ctx context.Context, call *sdk.Call, s *session) ([]phases.Contribution, error) {
	b, err := d.begin(ctx, call, s, s.room)
	if err != nil || !d.stale(s) {
		return nil, err
	}
	now, seen := d.look(b.found.Dir, b.found.Options)
	if ctx.Err() != nil {
		s.dirty.Store(true)
		return nil, context.Cause(ctx)
	}
	b.seen = seen
	d.observe(s, seen)
	if now.Root != s.nested.Root {
		return d.resumed(ctx, call, s, s.nested.Move(now)), nil
	}
	c := s.nested.Changed(now)
	if c.Pending > 0 {
		s.dirty.Store(true)
	}
	out := answer(s, c.Message, diagnostics(c.Diagnostics))
	if len(c.Files) > 0 {
		d.persist(ctx, call, s)
	}
	return out, nil
}

// look resolves a chain, and says what was looked at for it.
func (d *docs) look(dir string, o chain.Options) (chain.Chain, watch.Seen) {
	trace := watch.NewTrace(d.view)
	found := chain.Resolve(trace, dir, o)
	return found, relevant(&found, trace.Seen())
}

// differences is what is to be told of a session that is taken up again.
func (d *docs) differences(ctx context.Context, call *sdk.Call, s *session) []phases.Contribution {
	where := &call.Context
	now, _ := d.look(s.folder(where.Dir), d.rules(where))
	return d.resumed(ctx, call, s, s.nested.Resume(now))
}

// resumed tells what differs from what the session was left with, from where it
// goes on.
func (d *docs) resumed(ctx context.Context, call *sdk.Call, s *session, diff lazy.Resumed) []phases.Contribution {
	d.persist(ctx, call, s)
	return answer(s, diff.Message, differenceRows(diff.Changes))
}

// differenceRows are differences as remarks, which the manifest keeps.
func differenceRows(changes []lazy.Difference) []phases.Diagnostic {
	rows := make([]phases.Diagnostic, 0, len(changes))
	for _, c := range changes {
		told := "; told: " + strconv.FormatBool(c.Told)
		message := chain.PrintPath(c.Path) + told
		switch {
		case c.What == lazy.WhatMarkers:
			message = textrule.PrintPlainPath(c.From) + " -> " + textrule.PrintPlainPath(c.To) + told
		case c.Path == "":
			message = orNone(c.From) + " -> " + orNone(c.To) + told
		}
		rows = append(rows, phases.Diagnostic{Code: string(c.What), Severity: phases.SeverityInfo, Message: message, SafeForUser: true})
	}
	return rows
}

// orNone is a folder as it is printed.
func orNone(folder string) string { return cmp.Or(chain.PrintPath(folder), "none") }

// move goes on in another working folder, with a block of its own: what was
// delivered stays so, and what the session was told of before does not apply any
// more.
func (s *session) move(b *block) {
	old := s.nested
	next := lazy.Begin(s.epoch, b.found, b.rendering)
	next.Delivered = old.Delivered
	if old.Root == next.Root {
		next.Queue = old.Queue
	}
	r := reminder.Resumed{
		DirFrom: old.Dir, DirTo: next.Dir, RootFrom: old.Root, RootTo: next.Root, MarkersFrom: old.Markers, MarkersTo: next.Markers,
		Moved: true,
	}
	for _, v := range old.Initial {
		if !slices.ContainsFunc(next.Initial, func(w lazy.Version) bool { return w.Path == v.Path }) {
			r.Gone = append(r.Gone, reminder.File{Path: v.Path, MTimeMs: v.MTimeMs})
		}
	}
	s.nested = &next
	s.waiting = append(s.waiting, answer(s, reminder.StyleOf(b.found.Options.Layout).ResumeDiff(r), nil)...)
}
