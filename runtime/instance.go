package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/supervise"
	"github.com/grapnelhq/grapnel/phases"
)

// instance is one declared plugin under supervision. It outlives the
// incarnations of its process, and generations in which its declaration did not
// change.
type instance struct {
	engine   *Engine
	declared config.Plugin
	sup      *supervise.Supervisor
	entrance *entrance
	slots    *slots
	// redactor hides its secrets; nil if it has none.
	redactor *redactor
	// hostCalls bounds what the plugin asks of the host.
	hostCalls hostCalls
	// live is the incarnation that takes calls; nil while there is none.
	live atomic.Pointer[incarnation]
	// fresh is the one that was started and that the supervisor has yet to put in
	// force.
	fresh atomic.Pointer[incarnation]

	mu sync.Mutex
	// abandoned counts calls whose caller has gone and whose plugin has not
	// answered.
	abandoned int
	// news is closed and replaced whenever the state has changed.
	news chan struct{}
	// described is the first description, which counts for the plan.
	described *phases.Description
	// sha256 is the checksum of the program last started.
	sha256 string
	// confined is how its process was last confined; of a plugin inside the host
	// it is nil.
	confined *proc.Confinement

	// left is what could not be removed of earlier processes.
	left leftovers

	stop context.CancelCauseFunc
	done chan struct{}
}

var _ supervise.Service = (*instance)(nil)

// newInstance prepares the supervision of one plugin; run starts it.
func (e *Engine) newInstance(p config.Plugin, required bool) (*instance, error) {
	limit := p.Limits.Concurrency
	if limit == 0 {
		limit = config.DefaultConcurrency
	}
	in := &instance{engine: e, declared: p, redactor: newRedactor(&p), slots: newSlots(limit), done: make(chan struct{}), news: make(chan struct{})}
	in.left.log, in.left.unkilled = e.opts.Logger, e.unkilled.add
	gate := e.gate.Optional()
	if required {
		gate = e.gate.Required()
	}
	in.entrance = newEntrance(gate)
	sup, err := supervise.New(in, supervise.Options{
		Name:         p.Name,
		Policy:       supervise.Policy{Random: e.opts.Random},
		StartTimeout: startTimeout(p),
		Limiter:      in.entrance,
		SlotHold:     e.opts.slotHold,
		Health:       supervise.Health{Check: in.health, Interval: e.opts.Health.Interval, Timeout: e.opts.Health.Timeout, Misses: e.opts.Health.Misses},
		Replacement:  in.replacement(),
		OnEvent:      in.changed,
	})
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", p.Name, err)
	}
	in.sup = sup
	return in, nil
}

// run supervises the plugin until shutdown is called.
func (in *instance) run(ctx context.Context) {
	ctx, in.stop = context.WithCancelCause(ctx)
	go func() {
		defer close(in.done)
		if err := in.sup.Serve(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrClosed) {
			in.engine.opts.Logger.Warn("supervision ended", "plugin", in.declared.Name, "error", phases.Whole(err))
		}
	}()
}

// shutdown stops the plugin and waits until nothing of it is left.
func (in *instance) shutdown() {
	in.stop(ErrClosed)
	<-in.done
	in.left.clear(true)
}

// changed turns the supervisor's events into the engine's.
func (in *instance) changed(ev supervise.Event) {
	st := ev.Status
	if st.State.Up() {
		in.takeOver(st.Incarnation)
	} else {
		in.live.Store(nil)
	}
	if ev.Replaced != "" {
		st.Code, st.Detail = codeRecycled, ev.Replaced
	}
	in.signal()
	in.hasten()
	words := wordsOf(&st)
	in.engine.emit(Event{Kind: EventPlugin, Plugin: in.declared.Name, State: st.State.String(), Code: st.Code, Message: st.Detail, Detail: words})
	in.engine.opts.Logger.Log(context.Background(), levelOfState(st.State, words), "plugin",
		"plugin", in.declared.Name, "state", st.State.String(), "code", st.Code, "detail", st.Detail, "words", words)
}

// Start implements supervise.Service: launch, describe, configure, and the
// check that the description is still the one that the plan was made of.
func (in *instance) Start(ctx context.Context, number uint64) (supervise.Running, error) {
	inc, err := in.launch(ctx, number)
	if err != nil {
		return nil, in.failureOf(err)
	}
	if err := in.adopt(inc.description); err != nil {
		inc.discard()
		return nil, failureOf(err)
	}
	in.fresh.Store(inc)
	return inc, nil
}

// adopt keeps the first description; a later one must be the same.
func (in *instance) adopt(d *phases.Description) error {
	in.mu.Lock()
	first := in.described == nil
	if first {
		in.described = d
	}
	known := in.described
	in.mu.Unlock()
	if first {
		in.slots.lower(d.Limits.Concurrency)
	}
	if !first {
		if !sameDescription(known, d) {
			return phases.Errorf(phases.CauseDescriptionChanged,
				"the plugin describes itself differently than at its first start (version %s, now %s); reload the configuration to accept it", known.Version, d.Version)
		}
		return nil
	}
	if err := in.engine.described(in, d); err != nil {
		in.forget(d)
		return err
	}
	return nil
}

// forget takes a description back that did not fit the plan: no later plan could
// be made with it.
func (in *instance) forget(d *phases.Description) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.described == d {
		in.described = nil
	}
}

// reject puts a plugin into quarantine that is up, or just coming up, with a
// description that does not fit the plan.
func (in *instance) reject(d *phases.Description, err error) {
	in.forget(d)
	f := failureOf(err)
	f.Class = supervise.ClassPermanent
	in.sup.Report(supervise.Any, *f)
}

func sameDescription(a, b *phases.Description) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// description returns what counts for the plan; nil if it never described
// itself.
func (in *instance) description() *phases.Description {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.described
}

// health asks the running incarnation for a sign of life.
func (in *instance) health(ctx context.Context) error {
	inc := in.live.Load()
	if inc == nil {
		return nil
	}
	return inc.ping(ctx)
}

// abandon counts a call that its caller has left. When a process has too many, it
// is replaced, or not waited for any longer if it was replaced already: its
// successor is not to blame. A plugin inside the host cannot be: it is called
// degraded until enough of them have come back.
func (in *instance) abandon(inc *incarnation) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.abandoned++
	inc.abandoned++
	if inc.local != nil {
		if in.abandoned >= in.mostAbandoned() {
			in.sup.Degrade(inc.number, codeAbandoned, unansweredText(in.abandoned))
		}
		return
	}
	if inc.abandoned >= in.mostAbandoned() && !in.sup.Recycle(inc.number, unansweredText(inc.abandoned)) {
		in.sup.Hurry(inc.number)
	}
}

// unansweredText says why a process is recycled, or a plugin degraded.
func unansweredText(calls int) string {
	return fmt.Sprintf("%d calls were not answered in time", calls)
}

// returned counts an abandoned call that the plugin has let go of after all.
func (in *instance) returned(inc *incarnation) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.abandoned--
	inc.abandoned--
	if inc.local != nil && in.abandoned == in.mostAbandoned()-1 {
		in.sup.Restore(inc.number)
	}
}

// mostAbandoned is how many abandoned calls are too many.
func (in *instance) mostAbandoned() int {
	return min(in.slots.size(), max(4, in.slots.size()/2))
}

// codeAbandoned is the code of a plugin inside the host that does not answer.
const codeAbandoned = "abandoned"

// row is the instance in the ledger.
func (in *instance) row(generation uint64) phases.PluginRow {
	st := in.sup.Status()
	row := phases.PluginRow{
		Plugin: in.declared.Name, State: phases.PluginState(st.State.String()), Code: st.Code, Message: st.Detail, Detail: wordsOf(&st),
		Generation: generation, Restarts: st.Restarts, Recycled: st.Recycled,
	}
	if st.State == supervise.StateStarting && st.Failures > 0 && st.Last != nil { // started again: why is still to be seen
		row.Code, row.Message = st.Last.Code, st.Last.Detail
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.described != nil {
		row.Version = in.described.Version
	}
	row.SHA256 = in.sha256
	if c := in.confined; c != nil {
		row.Tier, row.TierLacks, row.AbsentPaths = c.Tier.String(), c.Missing, c.Absent
	}
	return row
}

// unavailable says why the plugin takes no calls right now.
func (in *instance) unavailable() *phases.Error {
	st := in.sup.Status()
	cause := phases.CauseUnavailable
	if st.State == supervise.StateQuarantined {
		cause = phases.CauseQuarantined
	}
	message := fmt.Sprintf("the plugin %s is %s", in.declared.Name, st.State)
	if st.Code != "" {
		message += fmt.Sprintf(": %s (%s)", st.Detail, st.Code)
	}
	return &phases.Error{Code: cause, Message: message, Retryable: true}
}

// failureOf is the function of that name without the plugin's secrets. What stands
// for a secret may hide what the class depends on: it is that of the error itself.
func (in *instance) failureOf(err error) *supervise.Failure {
	f := failureOf(in.redactor.err(err))
	f.Class = classOf(err)
	return f
}

// failureOf classifies an error for the supervisor.
func failureOf(err error) *supervise.Failure {
	return &supervise.Failure{Class: classOf(err), Code: string(phases.CodeOf(err)), Detail: err.Error(), Err: err}
}

// classOf says whether another start may help.
func classOf(err error) supervise.Class {
	switch phases.CodeOf(err) {
	case phases.CauseVersionMismatch, phases.CauseChecksumMismatch, phases.CauseUnsafePath, phases.CauseDescriptionChanged,
		phases.CauseInvalidReply, phases.CauseForbidden:
		return supervise.ClassPermanent
	case phases.CauseOOM:
		return supervise.ClassMemory
	}
	if _, rejected := errors.AsType[*phases.ConfigError](err); rejected {
		return supervise.ClassPermanent
	}
	switch proc.ClassOf(err) {
	case proc.ClassPermanent:
		return supervise.ClassPermanent
	case proc.ClassResource:
		return supervise.ClassResource
	}
	return supervise.ClassOrdinary
}
