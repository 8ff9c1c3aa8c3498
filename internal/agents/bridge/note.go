package bridge

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	mostNotes = 256 // that wait for a turn
	mostFiles = 512 // of a host, in one session
	mostPath  = 4 << 10
)

// hostLog is what a host has said of itself.
type hostLog struct {
	files []string // that it has loaded, each once
	// notes wait for the next turn's record; lost counts those that did not fit. place is where the last one came from.
	notes []manifest.HostEvent
	lost  int
	place phases.Context
}

// noted is an event as it is recorded.
func noted(e *agent.Event) manifest.HostEvent {
	return manifest.HostEvent{Event: e.Name, CallID: e.Call.ID, Refused: e.Refused, Facts: e.Facts}
}

// report records the facts of an event in its turn.
func report(t *loop.Turn, e *agent.Event) error {
	if len(e.Facts) == 0 {
		return nil
	}
	return t.ReportHost(noted(e))
}

// note records an event of the host itself in the turn under way, or else in the next one. A refused event is on record
// before the host gets the answer.
func (b *Bridge) note(ctx context.Context, s *session, where phases.Context, e *agent.Event) (agent.Outcome, error) {
	if e.Step == agent.StepFile && e.File != "" && len(e.File) <= mostPath && !slices.Contains(s.files, e.File) && len(s.files) < mostFiles {
		s.files = append(s.files, e.File)
	}
	if s.turn == nil || s.turn.ReportHost(noted(e)) != nil { // a turn that is full: the next one takes it
		s.place = where
		if len(s.notes) < mostNotes {
			s.notes = append(s.notes, noted(e))
		} else {
			s.lost++
		}
	}
	if e.Refused == "" {
		return agent.Outcome{}, nil
	}
	err := b.flush(ctx, s)
	if s.turn != nil {
		err = errors.Join(err, s.turn.Keep(ctx))
	}
	return agent.Outcome{Verdict: phases.VerdictDeny, Reason: e.Refused, DecisionRef: s.ref.Load()}, err
}

// recordIn puts the notes that wait into a turn.
func (s *session) recordIn(t *loop.Turn) error {
	if s.lost > 0 {
		s.notes = append(s.notes, manifest.HostEvent{Event: "omitted", Facts: []manifest.HostFact{{Name: "events", Value: strconv.Itoa(s.lost)}}})
		s.lost = 0
	}
	for ; len(s.notes) > 0; s.notes = s.notes[1:] {
		if err := t.ReportHost(s.notes[0]); err != nil {
			return err // the next turn takes the rest
		}
	}
	return nil
}

// flush records the notes that no turn has taken in a turn of their own.
func (b *Bridge) flush(ctx context.Context, s *session) error {
	if len(s.notes) == 0 {
		return nil
	}
	t, err := b.begin(ctx, s, s.place, &agent.Event{})
	if err != nil {
		return err
	}
	return ignore(t.Done(ctx, "", context.Canceled), context.Canceled)
}
