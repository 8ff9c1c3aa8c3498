package agentsdoc

import (
	"context"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/settings"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/lazy"
	"github.com/grapnelhq/grapnel/sdk"
)

// prompt is the handler of the hook "prompt". Within a session it says the same
// in every turn of an epoch; without one it looks afresh, and the host is asked
// not to answer from memory.
func (d *docs) prompt(ctx context.Context, call *sdk.Call, _ *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
	where := &call.Context
	if where.Dir == "" || d.withheld(where) {
		return nil, nil
	}
	if where.SessionID == "" {
		passing(ctx, call)
		return d.afresh(ctx, call)
	}
	s, err := d.open(ctx, call)
	if err != nil {
		return nil, err
	}
	defer s.leave()
	s.room = call.Room
	b, err := d.begin(ctx, call, s, s.room)
	return b.reply(), err
}

// afresh is the answer for a turn without a session. For the turn itself it is
// remembered what was said, so that tools do not bring it again.
func (d *docs) afresh(ctx context.Context, call *sdk.Call) ([]phases.Contribution, error) {
	b, err := d.first(ctx, call, call.Room)
	if err != nil {
		return nil, err
	}
	if key, ok := keyOf(&call.Context); ok {
		s := d.sessions.of(key)
		if err := s.enter(ctx); err != nil {
			return nil, err
		}
		defer s.leave()
		d.say(s, &call.Context, b)
	}
	return b.reply(), nil
}

// open waits for the session of a call and brings it to the call's epoch. The
// caller leaves it. Of a call that belongs to nothing it is a session that
// nobody else will find.
func (d *docs) open(ctx context.Context, call *sdk.Call) (*session, error) {
	where := &call.Context
	s := newSession(sessionKey{})
	if key, ok := keyOf(where); ok {
		s = d.sessions.of(key)
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	s.thread.Store(&where.ThreadID)
	d.recall(ctx, call, s)
	if where.Epoch > s.epoch {
		s.renew(where.Epoch)
	}
	return s, nil
}

// begin returns what is said of the call's working folder in the session. The
// first time in an epoch it finds that out.
func (d *docs) begin(ctx context.Context, call *sdk.Call, s *session, room phases.Room) (*block, error) {
	dir := call.Context.Dir
	b, ok := s.begun(dir, room)
	if ok && dir == s.dir() && b.seen != nil {
		return b, nil
	}
	if !ok { // else back in a folder where the session was before
		var err error
		if b, err = d.first(ctx, call, room); err != nil {
			return nil, err
		}
	}
	d.say(s, &call.Context, b)
	d.persist(ctx, call, s)
	return b, nil
}

// say puts a block in force in a session.
func (d *docs) say(s *session, where *phases.Context, b *block) {
	if b.seen == nil { // another process's
		again := newBlock(d.view, d.rules(where), b.found.Dir, phases.Room{})
		b.found, b.rendering, b.seen = again.found, again.rendering, again.seen
	}
	s.keep(where.Dir, b)
	switch {
	case s.nested == nil:
		n := lazy.Begin(s.epoch, b.found, b.rendering)
		s.nested = &n
	case s.nested.Dir != b.found.Dir:
		s.move(b)
	}
	d.observe(s, b.seen)
}

// first finds out what is said of the call's working folder. An answer that
// nobody waits for any more is not kept.
func (d *docs) first(ctx context.Context, call *sdk.Call, room phases.Room) (*block, error) {
	b, err := d.resolved(ctx, call, room)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return b, nil
}

// resolved is first for who need not be waiting.
func (d *docs) resolved(ctx context.Context, call *sdk.Call, room phases.Room) (*block, error) {
	where := &call.Context
	if isSubtask(where) && d.settings.Subtasks == settings.SubtasksInherit {
		if b, err := d.inherited(ctx, call); err != nil || b != nil && b.fits(room) {
			return b, err
		}
	}
	b := newBlock(d.view, d.rules(where), where.Dir, room)
	for _, note := range b.found.Diagnostics {
		if note.Code == chain.CodeBusy { // for a moment: nothing is kept of it
			return nil, sdk.Fail(string(note.Code), chain.PrintPath(note.Path)+": "+note.Detail)
		}
	}
	return b, nil
}
