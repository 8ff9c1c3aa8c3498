package runtime

import (
	"context"
	"errors"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Codes of diagnostics about the sink.
const (
	// codeNotKept is a manifest that the sink did not take.
	codeNotKept = "manifest_not_kept"
	// codePreviousUnavailable is a thread whose last manifest could not be read.
	codePreviousUnavailable = "previous_unavailable"
	// codeUsageNotKept is a report of a provider that the sink did not take.
	codeUsageNotKept = "usage_not_kept"
)

// The states of an EventManifest, besides the codes of diagnostics.
const (
	stateNotKept  = "not_kept"
	stateKeptLate = "kept_late"
)

// keep seals the manifest and hands it to the sink with the texts that the
// operator wants kept. A manifest that cannot be kept is an error only where the
// operator wants the turn refused then; it is always told.
func (r *recording) keep(ctx context.Context, m *manifest.Manifest) error {
	e := r.turn.engine
	if e.keeper == nil {
		return manifest.Seal(m, nil, nil)
	}
	// A sink that hangs may read and write its manifest for ever.
	own, texts := m.Clone(), r.output.Texts
	err := e.keeper.call(ctx, func(ctx context.Context) error { return e.opts.Sink.Append(ctx, &own, texts) },
		func(err error) { e.keptLate(r.id, err) })
	if err == nil {
		e.keeper.counts.kept.Add(1)
		m.Seq, m.Integrity = own.Seq, own.Integrity
		return nil
	}
	e.keeper.counts.notKept.Add(1)
	code := sinkCode(err)
	e.emit(Event{Kind: EventManifest, State: stateNotKept, Code: string(code), Detail: r.id + ": " + err.Error()})
	e.opts.Logger.Error("the manifest was not kept", "manifest", r.id, "error", err)
	r.output.Diagnostics = append(r.output.Diagnostics, phases.Diagnostic{
		Code: codeNotKept, Severity: phases.SeverityError,
		Message: "the manifest of this turn was not kept (" + string(code) + ")",
	})
	if r.turn.gen.cfg.Manifest.OnFailure == "refuse" {
		return phases.Errorf(code, "the manifest could not be kept: %w", err)
	}
	return manifest.Seal(m, nil, nil)
}

// sinkCode is the cause of a sink's failure. What it says itself means nothing
// here, beside that it does not work.
func sinkCode(err error) phases.Cause {
	if coded, ok := errors.AsType[*phases.Error](err); ok {
		return coded.Code
	}
	return phases.CauseUnavailable
}

// keptLate is told what became of a manifest that was given up.
func (e *Engine) keptLate(id string, err error) {
	if err != nil {
		return // it was told that the manifest is not kept
	}
	e.keeper.counts.keptLate.Add(1)
	e.emit(Event{Kind: EventManifest, State: stateKeptLate, Detail: id})
}

// previous returns the previous prompt of the turn's thread: out of memory or,
// for a thread that is new to this engine, from the sink. A sink that fails
// leaves a diagnostic.
func (r *recording) previous(ctx context.Context) *compiler.Previous {
	t, e := r.turn, r.turn.engine
	m := e.memory.previous(t.context)
	if m == nil && e.keeper != nil && t.context.ThreadID != "" {
		var err error
		if m, err = e.lastOf(ctx, t.context); err != nil {
			code := sinkCode(err)
			e.emit(Event{Kind: EventManifest, State: codePreviousUnavailable, Code: string(code), Detail: r.id + ": " + err.Error()})
			e.opts.Logger.Warn("the thread's previous manifest cannot be read", "thread", t.context.ThreadID, "error", err)
			r.notes = append(r.notes, phases.Diagnostic{
				Code: codePreviousUnavailable, Severity: phases.SeverityWarning,
				Message: "the previous manifest of this thread could not be read (" + string(code) + "): nothing is known of the provider's cache",
			})
			return nil
		}
	}
	return compiler.PreviousOf(m, r.now, t.context.SessionID)
}

// lastOf asks the sink.
func (e *Engine) lastOf(ctx context.Context, c phases.Context) (*manifest.Manifest, error) {
	var found *manifest.Manifest
	answer := make(chan *manifest.Manifest, 1) // a late answer is nobody's
	err := e.keeper.call(ctx, func(ctx context.Context) error {
		m, err := e.opts.Sink.Last(ctx, c.WorkspaceID, c.ThreadID)
		answer <- m
		return err
	}, nil)
	if err == nil {
		found = <-answer
	}
	return found, err
}

// remember makes the prompt the previous one of its thread. Only what the next
// compilation asks for is held.
func (r *recording) remember(m *manifest.Manifest) {
	slim := &manifest.Manifest{Sections: r.output.Sections, Cache: r.output.Cache}
	slim.CreatedAt, slim.SessionID, slim.FingerprintTools = m.CreatedAt, m.SessionID, m.FingerprintTools
	r.turn.engine.memory.keepPrompt(r.turn.context, slim)
}
