// Package keeper calls a host's sink without ever being held up by it, and counts what was kept.
//
// Stability: internal.
package keeper

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/bounded"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	// sinkTime is the longest that a call of the sink may hold up a turn; its own context ends sinkGrace earlier.
	sinkTime  = 500 * time.Millisecond
	sinkGrace = 50 * time.Millisecond
)

// Sink keeps manifests, their usage, and on demand the texts of prompts. Its methods are called concurrently, on
// goroutines of the engine. Each call has half a second, beside the turn's own time; then the turn goes on without
// it. A panic is an error.
type Sink interface {
	// Append keeps m, for which it fills seq, prev and the hashes, and the rendered sections of its prompt in texts,
	// if any, in one transaction. It is called for each prompt, at the end of a turn, and for each dispatch outside of
	// a turn that decided or audited something; for prompts in the order of the turns of a thread. The manifest is the
	// sink's; the texts are shared and must not be changed.
	Append(ctx context.Context, m *manifest.Manifest, texts []manifest.Text) error
	// Last returns the newest manifest of a thread whose prompt was sent ([manifest.Manifest.Sent]), nil without an error
	// if there is none. It is asked once for a thread, for decisions about calls in turns without a prompt, and for each
	// prompt if the sink has a method Shared() bool that returns true: others then continue the same threads.
	Last(ctx context.Context, workspace, thread string) (*manifest.Manifest, error)
	// Report keeps what the provider reported. A manifest that does not exist is an error.
	Report(ctx context.Context, u manifest.Usage) error
}

// Keeper calls a sink, concurrently.
type Keeper struct {
	*bounded.Func
	Counts

	sink Sink
}

// Counts are the calls of the sink by their end. A manifest that was kept late is counted as not kept, too.
type Counts struct {
	Kept, NotKept, KeptLate, Usage, UsageLost atomic.Uint64
}

// New returns the keeper of a sink. After Close calls fail with the given error.
func New(sink Sink, closed error) *Keeper {
	return &Keeper{Func: bounded.New("the sink", closed), sink: sink}
}

// Shared reports whether others append to the sink's threads, too.
func (k *Keeper) Shared() bool {
	s, ok := k.sink.(interface{ Shared() bool })
	return ok && s.Shared()
}

// call calls the sink for at most sinkTime, even if the caller's context has ended: an interrupted turn is worth
// keeping, too.
func (k *Keeper) call(ctx context.Context, do func(ctx context.Context) error, late func(error)) error {
	ctx = context.WithoutCancel(ctx)
	limited, cancel := context.WithTimeoutCause(ctx, sinkTime, phases.Errorf(phases.CauseTimeout, "the sink has not answered within %s", sinkTime))
	defer cancel()
	_, err := bounded.Call(limited, k.Func, func() (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, sinkTime-sinkGrace)
		defer cancel()
		return struct{}{}, do(ctx)
	}, late)
	return err
}

// Append keeps a manifest, which is the sink's from then on. Late is called if the sink takes it after the call was
// abandoned.
func (k *Keeper) Append(ctx context.Context, m *manifest.Manifest, texts []manifest.Text, late func()) error {
	err := k.call(ctx, func(ctx context.Context) error { return k.sink.Append(ctx, m, texts) }, func(err error) {
		if err == nil {
			k.KeptLate.Add(1)
			late()
		}
	})
	count(err, &k.Kept, &k.NotKept)
	return err
}

// Last returns the newest manifest of a thread; nil for none.
func (k *Keeper) Last(ctx context.Context, workspace, thread string) (*manifest.Manifest, error) {
	var last atomic.Pointer[manifest.Manifest] // an abandoned call may still write it
	err := k.call(ctx, func(ctx context.Context) error {
		found, err := k.sink.Last(ctx, workspace, thread)
		last.Store(found)
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	return last.Load(), nil
}

// Report keeps what a provider reported.
func (k *Keeper) Report(ctx context.Context, u manifest.Usage) error {
	err := k.call(ctx, func(ctx context.Context) error { return k.sink.Report(ctx, u) }, nil)
	count(err, &k.Usage, &k.UsageLost)
	return err
}

func count(err error, kept, lost *atomic.Uint64) {
	if err == nil {
		kept.Add(1)
	} else {
		lost.Add(1)
	}
}

// Code is the cause that an error of the sink is reported with.
func Code(err error) phases.Cause {
	if _, ok := errors.AsType[*bounded.PanicError](err); ok {
		return phases.CauseInternal
	}
	if coded, ok := errors.AsType[*phases.Error](err); ok {
		return coded.Code
	}
	return phases.CauseUnavailable
}
