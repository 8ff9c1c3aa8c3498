package agentsdoc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"strconv"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/settings"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/lazy"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/reminder"
	"github.com/grapnelhq/grapnel/sdk"
)

// touching is the handler of the hook "touching".
func (d *docs) touching(ctx context.Context, call *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
	_, rest := readBy(&d.options, in.Tool, in.TouchedPaths)
	return d.touch(ctx, call, nil, rest)
}

// touched is the handler of the hook "touched". A file that its other half told
// of is not told again.
func (d *docs) touched(ctx context.Context, call *sdk.Call, in *phases.ToolPostCallInput) ([]phases.Contribution, error) {
	var read []string
	if wentWell(in.Outcome) {
		read, _ = readBy(&d.options, in.Tool, in.TouchedPaths)
	}
	return d.touch(ctx, call, read, in.TouchedPaths)
}

// touch tells of the files that apply to paths and were not told of. The model
// has those that were read.
func (d *docs) touch(ctx context.Context, call *sdk.Call, read, paths []string) ([]phases.Contribution, error) {
	where := &call.Context
	if len(paths) == 0 || where.Dir == "" || isSubtask(where) && d.settings.Subtasks != settings.SubtasksInherit {
		return nil, nil
	}
	s, err := d.open(ctx, call)
	if err != nil {
		return nil, err
	}
	defer s.leave()
	d.beginUntold(s, where)
	before := s.nested.Clone()
	changed := false
	for _, path := range absolute(where, read) {
		changed = s.nested.Read(d.view, d.bounded(where), path) || changed
	}
	t := s.nested.Touch(d.view, d.bounded(where), absolute(where, paths))
	if ctx.Err() != nil { // nobody hears it
		s.nested = &before
		return nil, context.Cause(ctx)
	}
	out := answer(s, t.Message, diagnostics(t.Diagnostics))
	if changed || len(t.Files) > 0 || t.Pending != len(before.Queue) {
		d.persist(ctx, call, s)
	}
	return append(out, s.takeWaiting()...), nil
}

// beginUntold begins a session in which tools come before any prompt, or go on in
// another folder without one: nothing of the chain was told.
func (d *docs) beginUntold(s *session, where *phases.Context) {
	switch {
	case s.nested == nil:
		n := lazy.Begin(s.epoch, chain.Resolve(d.view, where.Dir, d.bounded(where)), chain.Rendering{})
		s.nested = &n
	case s.latest() == nil && s.nested.Dir != filepath.Clean(where.Dir):
		s.move(&block{found: chain.Resolve(d.view, where.Dir, d.bounded(where))})
	}
}

// answer is a message of a session as a contribution, with what is to be said
// beside it.
func answer(s *session, m reminder.Message, beside []phases.Diagnostic) []phases.Contribution {
	common := phases.Common{Diagnostics: beside}
	switch {
	case !m.Empty():
		return []phases.Contribution{&phases.Reminder{
			Common: common, Type: string(m.Type), Text: printable(m.Text), DedupeKey: s.dedupeKey(m),
		}}
	case len(beside) > 0:
		return []phases.Contribution{&phases.Noop{Common: common}}
	default:
		return nil
	}
}

// dedupeKey tells a message of a session from all others: a text that is said
// again is said on purpose, because its files were other ones in between, or to a
// sub-task that has not heard it.
func (s *session) dedupeKey(m reminder.Message) string {
	s.said++
	sum := sha256.Sum256([]byte(s.key.task + "\x00" + m.Text))
	return string(m.Type) + "/" + strconv.Itoa(s.said) + "/" + hex.EncodeToString(sum[:8])
}

// takeNested goes on with what the command line writes, if it is that.
func (d *docs) takeNested(s *session, given json.RawMessage) {
	if nested, err := lazy.Decode(given); err == nil && nested.Dir != "" {
		s.renew(max(s.epoch, nested.Epoch))
		s.nested = &nested
	}
}
