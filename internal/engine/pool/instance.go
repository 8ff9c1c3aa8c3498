package pool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/configschema"
	"github.com/grapnelhq/grapnel/internal/engine/supervise"
	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/phases"
)

// Instance is one declared plugin under supervision. It outlives its processes, and
// configurations in which its declaration did not change.
type Instance struct {
	Declared config.Plugin // the operator's declaration. It does not change.

	pool     *Pool
	local    Plugin      // the plugin if it runs inside the host, without a process
	host     phases.Host // host answers its host calls
	redactor *redactor   // redactor hides its secrets; nil if it has none
	sup      *supervise.Supervisor
	gate     *startGate
	slots    *slots
	// live is the incarnation that takes calls; nil while there is none. fresh was
	// started, and the supervisor has yet to put it in force.
	live, fresh atomic.Pointer[Incarnation]
	left        leftovers // what could not be removed of earlier processes
	known       known
	warned      string // the cause of the last warning; for levelOf
	awaited     bool   // somebody waits for the first start and reports a refused configuration; for levelOf

	stop context.CancelCauseFunc
	done chan struct{}
}

type known struct {
	mu        sync.Mutex
	changed   chan struct{}       // closed and replaced whenever the state has changed
	abandoned int                 // abandoned counts abandoned calls that are not answered
	described *phases.Description // the first description, which counts for the plan
	sha256    string              // the checksum of the program last started
	confined  *proc.Confinement   // how the process was last confined; nil for a plugin inside the host
}

var _ supervise.Service = (*Instance)(nil)

// Instance prepares the supervision of a plugin; Start starts it. Awaited says that whoever starts it waits for what comes
// of the first start, and reports a configuration that the plugin refuses.
func (p *Pool) Instance(declared config.Plugin, required, awaited bool) *Instance {
	in := &Instance{
		awaited: awaited,
		pool:    p, Declared: declared, local: p.opts.Local(declared.Name), redactor: newRedactor(&declared),
		slots: newSlots(cmp.Or(declared.Limits.Concurrency, config.DefaultConcurrency)), done: make(chan struct{}), known: known{changed: make(chan struct{})},
	}
	in.host = p.opts.Host(in)
	in.left.log, in.left.unkilled = p.opts.Logger, p.unkilled.add
	in.gate = newStartGate(p.gate.Optional())
	if required {
		in.gate = newStartGate(p.gate.Required())
	}
	health := p.opts.Health
	health.Check = in.health
	in.sup = supervise.New(in, supervise.Options{
		Name:         declared.Name,
		Random:       p.opts.Random,
		StartTimeout: StartTimeout(&declared),
		Limiter:      in.gate,
		Health:       health,
		Replacement:  in.replacement(),
		OnEvent:      in.changed,
	})
	return in
}

func (in *Instance) run(ctx context.Context) {
	ctx, in.stop = context.WithCancelCause(ctx)
	go func() {
		defer close(in.done)
		if err := in.sup.Serve(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrClosed) {
			in.pool.opts.Logger.Warn("supervision ended", "plugin", in.Declared.Name, "error", phases.Whole(err))
		}
	}()
}

func (in *Instance) shutdown() {
	in.stop(ErrClosed)
	<-in.done
	in.left.clear(true)
}

func (in *Instance) changed(ev supervise.Event) {
	in.pool.revision.Add(1)
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
	in.pool.opts.Observer.Changed(in, st, words)
	in.pool.opts.Logger.Log(context.Background(), in.levelOf(&st, words), "plugin",
		"plugin", in.Declared.Name, "state", st.State, "code", st.Code, "detail", st.Detail, "words", words)
}

// wordsOf are a plugin's own words about why it is in its state; "" if it is well.
func wordsOf(st *supervise.Status) string {
	if st.State == supervise.StateReady || st.Last == nil || st.Last.Err == nil {
		return ""
	}
	return phases.DetailOf(st.Last.Err)
}

// levelOf is the level at which a change of state is logged. A failure that repeats the one before it is no warning
// again: a plugin that is restarted over and over would flood the log. It is called by the supervisor alone.
func (in *Instance) levelOf(st *supervise.Status, words string) slog.Level {
	cause := st.Code + ": " + st.Detail
	awaited := in.awaited
	in.awaited = awaited && st.State == supervise.StateStarting
	switch st.State {
	case supervise.StateQuarantined:
		if st.Last != nil && awaited {
			if _, rejected := errors.AsType[*phases.ConfigError](st.Last.Err); rejected { // it is said once
				return slog.LevelInfo
			}
		}
		return slog.LevelError
	case supervise.StateReady:
		if st.Failures == 0 {
			in.warned = ""
		}
	case supervise.StateBackoff, supervise.StateDegraded:
		if cause == in.warned && st.Failures != 1 {
			return slog.LevelInfo
		}
		in.warned = cause
		if words != "" && st.State == supervise.StateBackoff {
			return slog.LevelError
		}
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// Status is the plugin's state.
func (in *Instance) Status() supervise.Status { return in.sup.Status() }

// Wait waits until the first start has gone well or failed; see [supervise.Supervisor].
func (in *Instance) Wait(ctx context.Context) error { return in.sup.Wait(ctx) }

// Release gives a plugin in quarantine or backoff another chance at once. It reports
// whether there was anything to release from.
func (in *Instance) Release() bool { return in.sup.Release() }

// Live is the incarnation that takes calls; nil while there is none.
func (in *Instance) Live() *Incarnation { return in.live.Load() }

// Busy is how many calls the plugin works on, how many wait for a slot, how many slots
// there are, and how many abandoned calls are not answered.
func (in *Instance) Busy() (working, waiting, slots, abandoned int) {
	in.known.mu.Lock()
	defer in.known.mu.Unlock()
	return in.slots.taken(), int(in.slots.waiting.Load()), in.slots.size(), in.known.abandoned
}

// Program returns the version that the plugin described, and the checksum of the program that was started last.
func (in *Instance) Program() (version, sha256 string) {
	in.known.mu.Lock()
	defer in.known.mu.Unlock()
	if in.known.described != nil {
		version = in.known.described.Version
	}
	return version, in.known.sha256
}

// Redact removes the plugin's secrets from diagnostics, which must be copies.
func (in *Instance) Redact(list []phases.Diagnostic) { in.redactor.notes(list) }

// Start implements supervise.Service. The description must be the one that the plan was made of.
func (in *Instance) Start(ctx context.Context, number uint64) (supervise.Running, error) {
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
func (in *Instance) adopt(d *phases.Description) error {
	var first *phases.Description
	in.learn(func(k *known) {
		if first = k.described; first == nil {
			k.described = d
		}
	})
	if first != nil && sameDescription(first, d) {
		return nil
	}
	if first != nil {
		return phases.Errorf(phases.CauseDescriptionChanged,
			"the plugin describes itself differently than at its first start (version %s, now %s); reload the configuration to accept it", first.Version, d.Version)
	}
	in.slots.lower(d.Limits.Concurrency)
	if err := in.pool.opts.Observer.Described(in, d); err != nil {
		in.forget(d)
		return err
	}
	return nil
}

// forget drops a description that does not fit the plan.
func (in *Instance) forget(d *phases.Description) {
	in.learn(func(k *known) {
		if k.described == d {
			k.described = nil
		}
	})
}

// learn changes what is known of the plugin, and so its row.
func (in *Instance) learn(change func(*known)) {
	in.known.mu.Lock()
	defer in.known.mu.Unlock()
	change(&in.known)
	in.pool.revision.Add(1)
}

// Reject quarantines a plugin whose description does not fit the plan.
func (in *Instance) Reject(d *phases.Description, err error) {
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

// Description returns what counts for the plan; nil if it never described itself.
func (in *Instance) Description() *phases.Description {
	in.known.mu.Lock()
	defer in.known.mu.Unlock()
	return in.known.described
}

// health asks the running incarnation for a sign of life.
func (in *Instance) health(ctx context.Context) error {
	if inc := in.live.Load(); inc != nil {
		if s := inc.session.Load(); s != nil {
			return s.Ping(ctx)
		}
	}
	return nil
}

// Row is the plugin in the ledger.
func (in *Instance) Row(generation uint64) phases.PluginRow {
	st := in.sup.Status()
	row := phases.PluginRow{
		Plugin: in.Declared.Name, State: phases.PluginState(st.State), Code: st.Code, Message: st.Detail, Detail: wordsOf(&st),
		Generation: generation, Restarts: st.Restarts, Recycled: st.Recycled,
	}
	if st.State == supervise.StateStarting && st.Failures > 0 && st.Last != nil { // restarting after this failure
		row.Code, row.Message = st.Last.Code, st.Last.Detail
	}
	in.known.mu.Lock()
	defer in.known.mu.Unlock()
	if in.known.described != nil {
		row.Version = in.known.described.Version
	}
	row.SHA256, row.Pinned = in.known.sha256, in.Declared.SHA256 != ""
	if c := in.known.confined; c != nil {
		row.Tier, row.TierLacks, row.AbsentPaths = c.Tier.String(), c.Missing, c.Absent
	}
	return row
}

// Unavailable says why the plugin takes no calls right now.
func (in *Instance) Unavailable() *phases.Error {
	st := in.sup.Status()
	cause := phases.CauseUnavailable
	if st.State == supervise.StateQuarantined {
		cause = phases.CauseQuarantined
	}
	message := fmt.Sprintf("the plugin %s is %s", in.Declared.Name, st.State)
	if st.Code != "" {
		message += ": " + st.Detail + " (" + st.Code + ")"
	}
	return &phases.Error{Code: cause, Message: message, Retryable: true}
}

// failureOf classifies an error and removes the plugin's secrets from it. The class is
// read first: redaction may hide what it depends on.
func (in *Instance) failureOf(err error) *supervise.Failure {
	f := failureOf(in.redactor.err(err))
	f.Class = classOf(err)
	return f
}

func failureOf(err error) *supervise.Failure {
	return &supervise.Failure{Class: classOf(err), Code: string(phases.CodeOf(err)), Detail: phases.Words(err), Err: err}
}

func classOf(err error) supervise.Class {
	_, rejected := errors.AsType[*phases.ConfigError](err)
	switch code := phases.CodeOf(err); code {
	case phases.CauseVersionMismatch, phases.CauseChecksumMismatch, phases.CauseUnsafePath, phases.CauseDescriptionChanged,
		phases.CauseInvalidReply, phases.CauseForbidden:
		return supervise.ClassPermanent
	case phases.CauseOOM:
		return supervise.ClassMemory
	default:
		switch {
		case rejected:
			return supervise.ClassPermanent
		case proc.IsResource(err):
			return supervise.ClassResource
		case code == phases.CauseExecFailed:
			return supervise.ClassPermanent
		}
		return supervise.ClassOrdinary
	}
}

func (in *Instance) spec() (proc.Spec, error) {
	p := &in.Declared
	s := proc.Spec{
		Name: p.Name, Path: p.Path, Args: p.Args, SHA256: p.SHA256, Pins: p.Pins, AllowUnsafePath: p.UnsafePath,
		Frame: FrameSize(p), MutualTLS: p.TLS, Stdio: p.Transport == config.TransportStdio, Env: proc.Environment{Pass: p.Env.Pass, Set: map[string]string{}}, Log: in.logged, Redact: in.redactor.text,
	}
	for name, value := range p.Env.Set {
		s.Env.Set[name] = value.Value
	}
	var err error
	if s.Sandbox, err = Confinement(p); err != nil {
		return s, phases.Errorf(phases.CauseExecFailed, "the plugin %s cannot be confined: %w", p.Name, err)
	}
	if err := p.Absent(); err != nil {
		return s, phases.Errorf(phases.CauseExecFailed, "the plugin did not start: %w", err)
	}
	if p.Builtin == "" {
		s.Sums = &in.pool.sums
		return s, nil
	}
	own, ok := in.pool.opts.Programs[p.Builtin]
	if !ok {
		return s, phases.Errorf(phases.CauseExecFailed, "this host has no built-in plugin %q", p.Builtin)
	}
	s.Path, s.File, s.Args = own.Path, own.File, append(slices.Clone(own.Args), p.Args...)
	s.AllowUnsafePath = true // the host itself lies there
	maps.Copy(s.Env.Set, own.Env)
	return s, nil
}

func (in *Instance) logged(l proc.LogLine) {
	in.pool.opts.Logger.LogAttrs(context.Background(), l.Level, l.Message, slog.String("plugin", in.Declared.Name), l.Attr()) //nolint:sloglint // the plugin's own words
	in.pool.opts.Observer.Logged(in, l)
}

// configuring notifies the observer of a configuration; the returned function reports its end, redacted.
func (in *Instance) configuring(inc *Incarnation) func(*phases.Configuration, *phases.Description, error) {
	done := in.pool.opts.Observer.Configuring(inc)
	return func(c *phases.Configuration, d *phases.Description, err error) {
		if done != nil {
			done(c, d, in.redactor.err(err))
		}
	}
}

func (in *Instance) configuration(d *phases.Description) (*phases.Configuration, error) {
	if err := configschema.Check(d.ConfigSchema, in.Declared.Config); err != nil {
		if rejected, ok := errors.AsType[*phases.ConfigError](err); ok {
			return nil, &phases.Error{ // what the schema says quotes the configuration
				Code: phases.CauseInternal, Message: "its configuration does not fit the plugin's schema", Detail: rejected.Error(), Err: rejected,
			}
		}
		return nil, invalidDescription(err)
	}
	return &phases.Configuration{
		Instance: in.Declared.Name, Config: slices.Clone(in.Declared.Config), Services: in.pool.opts.Services(in.Declared.Grants.Host), Host: in.host,
	}, nil
}

// OutcomeOf says what a call means for the breaker of its hook: crashes, invalid answers and timeouts
// count, a timeout only if the plugin had the whole of its own time.
func OutcomeOf(err *phases.Error, ownTime bool) supervise.Outcome {
	switch {
	case err == nil:
		return supervise.OutcomeSuccess
	case err.Code == phases.CauseCrash, err.Code == phases.CauseInvalidReply, err.Code == phases.CauseTimeout && ownTime:
		return supervise.OutcomeFailure
	}
	return supervise.OutcomeNeutral
}

// Retryable reports whether another attempt at a call may succeed.
func Retryable(err *phases.Error) bool {
	switch err.Code {
	case phases.CauseTimeout, phases.CauseCrash, phases.CauseOOM, phases.CauseSessionReset, phases.CauseUnavailable, phases.CauseOverloaded:
		return true
	}
	return err.Retryable
}
