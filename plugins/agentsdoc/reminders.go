package agentsdoc

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/lazy"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/reminder"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/settings"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/internal/watch"
	"github.com/grapnelhq/grapnel/sdk"
)

// touching is the handler of the hook "touching".
func (d *docs) touching(ctx context.Context, call *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
	_, rest := readBy(&d.options, in.Tool, in.TouchedPaths)
	return d.touch(ctx, call, nil, rest)
}

// touched is the handler of the hook "touched". What touching has delivered is not delivered again.
func (d *docs) touched(ctx context.Context, call *sdk.Call, in *phases.ToolPostCallInput) ([]phases.Contribution, error) {
	var read []string
	if slices.Contains([]string{"", "ok", "success", "succeeded"}, strings.ToLower(in.Outcome)) {
		read, _ = readBy(&d.options, in.Tool, in.TouchedPaths)
	}
	return d.touch(ctx, call, read, in.TouchedPaths)
}

// touch delivers the undelivered files that apply to paths. The model has those that were read.
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
	// Before any prompt, in the session or in its directory, nothing of the chain was delivered.
	if s.nested == nil {
		n := lazy.Begin(s.epoch, chain.Resolve(d.view, where.Dir, d.bounded(where)), chain.Rendering{})
		s.nested = &n
	} else if s.latest() == nil && s.nested.Dir != filepath.Clean(where.Dir) {
		s.move(&block{found: chain.Resolve(d.view, where.Dir, d.bounded(where))})
	}
	before := s.nested.Clone()
	changed := false
	for _, path := range absolute(where, read) {
		changed = s.nested.Read(d.view, d.bounded(where), path) || changed
	}
	t := s.nested.Touch(d.view, d.bounded(where), absolute(where, paths))
	if ctx.Err() != nil { // the answer is lost
		s.nested = &before
		return nil, context.Cause(ctx)
	}
	out := answer(s, t.Message, diagnostics(t.Diagnostics))
	if changed || len(t.Files) > 0 || t.Pending != len(before.Queue) {
		d.persist(ctx, call, s)
	}
	return append(out, s.takeWaiting()...), nil
}

// answer is a message of a session as a contribution, with diagnostics.
func answer(s *session, m reminder.Message, beside []phases.Diagnostic) []phases.Contribution {
	common := phases.Common{Diagnostics: beside}
	switch {
	case !m.Empty():
		// The key is unique for each message of a session: a text may be repeated on purpose, because its files changed in
		// between, or for another sub-task.
		s.said++
		sum := sha256.Sum256([]byte(s.key.task + "\x00" + m.Text))
		key := string(m.Type) + "/" + strconv.Itoa(s.said) + "/" + hex.EncodeToString(sum[:8])
		return []phases.Contribution{&phases.Reminder{Common: common, Type: string(m.Type), Text: printable(m.Text), DedupeKey: key}}
	case len(beside) > 0:
		return []phases.Contribution{&phases.Noop{Common: common}}
	default:
		return nil
	}
}

// A tool that reads an instruction file for the model has delivered it. Before the call such a file is therefore not
// delivered; after it, it counts as delivered, unless the call failed. If a host names its tools differently, the
// file is delivered twice.

// readsFiles reports whether a tool, by its name, gives the model the text of the files that it touches: "Read",
// "read_file", "mcp__fs__read_text_file".
func readsFiles(tool string) bool {
	tool = path.Base(strings.NewReplacer("__", "/", ".", "/", ":", "/").Replace(tool))
	names := []string{"read", "readfile", "readfiles", "readtextfile", "readmanyfiles", "readmultiplefiles", "view", "viewfile", "cat", "openfile"}
	return slices.Contains(names, strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(tool)))
}

// readBy splits the paths of a call into instruction files whose text the tool gives the model, and the rest.
func readBy(o *chain.Options, tool string, paths []string) (read, rest []string) {
	if !readsFiles(tool) {
		return nil, paths
	}
	for _, p := range paths {
		name := filepath.Base(p)
		if slices.Contains(o.Names, name) || slices.Contains(o.FallbackNames, name) || slices.Contains(o.LocalNames, name) {
			read = append(read, p)
		} else {
			rest = append(rest, p)
		}
	}
	return read, rest
}

// absolute are paths as the host means them: relative ones are below its working directory, whatever the session's
// is.
func absolute(c *phases.Context, paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		if out[i] = p; !filepath.IsAbs(p) {
			out[i] = filepath.Join(c.Dir, p)
		}
	}
	return out
}

// changed is the handler of the hook "changed": within a session it reports what differs from the block. As long as
// nothing does, the host may use its cached answer.
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
	if s.latest() != nil && !s.follows { // else the other hook says it
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

// news reports changes of the files of the session's working directory.
func (d *docs) news(ctx context.Context, call *sdk.Call, s *session) ([]phases.Contribution, error) {
	b, err := d.begin(ctx, call, s, s.budget)
	if err != nil || !d.stale(s) {
		return nil, err
	}
	now, seen := look(d.view, b.found.Dir, b.found.Options)
	if ctx.Err() != nil {
		s.dirty.Store(true)
		return nil, context.Cause(ctx)
	}
	b.seen = seen
	d.observe(s, seen)
	if now.Root != s.nested.Root {
		diff := s.nested.Move(now)
		d.persist(ctx, call, s)
		return answer(s, diff.Message, differenceRows(diff.Changes)), nil
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

// look resolves a chain, and returns the part of what was looked at whose changes matter to it.
func look(view chain.FS, dir string, o chain.Options) (chain.Chain, watch.Seen) {
	trace := watch.NewTrace(view)
	found := chain.Resolve(trace, dir, o)
	if !found.RootFound {
		return found, trace.Seen()
	}
	return found, trace.Seen().Below(found.Root, found.Options.Markers)
}

// differenceRows are differences as remarks, which the manifest keeps.
func differenceRows(changes []lazy.Difference) []phases.Diagnostic {
	rows := make([]phases.Diagnostic, 0, len(changes))
	for _, c := range changes {
		named := "; named: " + strconv.FormatBool(c.Named)
		message := sdk.PlainName(c.Path) + named
		switch {
		case c.What == lazy.WhatMarkers:
			message = chain.PrintPlainPath(c.From) + " -> " + chain.PrintPlainPath(c.To) + named
		case c.Path == "":
			message = cmp.Or(sdk.PlainName(c.From), "none") + " -> " + cmp.Or(sdk.PlainName(c.To), "none") + named
		}
		rows = append(rows, phases.Diagnostic{Code: string(c.What), Severity: phases.SeverityInfo, Message: message, SafeForUser: true})
	}
	return rows
}

// move continues with another block, of another working directory or of other files: what was delivered stays delivered,
// and earlier files that are not in it no longer apply.
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
		read := slices.ContainsFunc(b.found.Sources, func(w chain.Source) bool { return w.Path == v.Path && w.Reason == string(chain.CodeReadByAgent) })
		if !read && !slices.ContainsFunc(next.Initial, func(w lazy.Version) bool { return w.Path == v.Path }) {
			r.Gone = append(r.Gone, reminder.File{Path: v.Path, MTimeMs: v.MTimeMs})
		}
	}
	s.nested = &next
	if s.follows && old.Dir == next.Dir { // the block that replaces the one before says it all
		return
	}
	s.waiting = append(s.waiting, answer(s, reminder.StyleOf(b.found.Options.Layout).ResumeDiff(r), nil)...)
}
