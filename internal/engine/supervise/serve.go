package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Serve runs the service until ctx ends: it starts it, starts it again as the policy says, and stops it in the end.
// It blocks. All changes of state happen in its goroutine. It returns the errors of stops that left something behind,
// and [ErrServed] when it was called before.
func (s *Supervisor) Serve(ctx context.Context) error {
	if s.served.Swap(true) {
		return ErrServed
	}
	var err error
	for ctx.Err() == nil {
		err = s.serveOnce(ctx)
	}
	s.retired.Wait()
	err = errors.Join(append([]error{err}, s.unstopped...)...)
	code := ""
	if err != nil {
		code = CodeInternal
	}
	s.enter(StateStopped, code, errorText(err))
	s.settle(ErrStopped)
	return err
}

// serveOnce takes one incarnation from its start, or the last of those that took over from it, to what follows its
// end. It returns the error of the stop.
func (s *Supervisor) serveOnce(ctx context.Context) error {
	runCtx, end := context.WithCancelCause(ctx)
	defer end(nil)
	r := s.begin(end)
	e := s.live(runCtx, r)
	for e.next != nil {
		next, nextCtx, ok := s.takeOver(ctx, r, e)
		if !ok {
			s.lost((&run{incarnation: e.next.number, running: e.next.running}).stop(ctx, s.opts))
			e = orderedEnding(runCtx)
			break
		}
		s.retire(ctx, r)
		r, runCtx = next, nextCtx
		e = s.watch(runCtx, r)
	}
	s.mu.Lock()
	s.current = nil // no further orders
	s.mu.Unlock()
	r.end(nil) // ends the health checks, which stop waits for

	switch {
	case ctx.Err() != nil:
		return s.drain(ctx, r, context.Cause(ctx).Error())
	case e.failure != nil:
		return s.fail(ctx, r, e.failure)
	}
	if err := s.drain(ctx, r, e.recycle); err != nil {
		// What did not end may still hold what the next start needs.
		f := failureOf(err, CodeInternal, "stopping it to recycle it failed: "+err.Error())
		f.Class = ClassResource
		return s.fail(ctx, r, f)
	}
	return nil
}

func (s *Supervisor) begin(end context.CancelCauseFunc) *run {
	first := s.number == 0
	s.number++
	r := newRun(s.number, end)
	s.mu.Lock()
	s.current = r
	s.mu.Unlock()
	s.enter(StateStarting, "", "", func(st *Status) {
		st.Incarnation = r.incarnation
		if !first {
			st.Restarts++
		}
		st.Failures = len(s.history.counted)
	})
	return r
}

// live starts the run and watches it. ctx is the run's own.
func (s *Supervisor) live(ctx context.Context, r *run) ending {
	release, err := s.opts.Limiter.Acquire(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return orderedEnding(ctx)
		}
		return failed(&Failure{Class: ClassResource, Code: CodeUnavailable, Detail: "no start slot", Err: err})
	}
	running, f := s.start(ctx, r.incarnation, release)
	r.running = running
	switch {
	case ctx.Err() != nil:
		// The start was called off; if it succeeded anyway, the run's stop ends it.
		return orderedEnding(ctx)
	case f != nil:
		return failed(f)
	}
	return s.watch(ctx, r)
}

// start calls the service's Start within its deadline. The slot is released after SlotHold at the latest.
func (s *Supervisor) start(ctx context.Context, incarnation uint64, release func()) (Running, *Failure) {
	release = sync.OnceFunc(release)
	defer release()
	slot := time.AfterFunc(s.opts.SlotHold, release)
	defer slot.Stop()
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.StartTimeout, errStartTimeout)
	defer cancel()

	running, err := s.service.Start(ctx, incarnation)
	if err != nil {
		return nil, startFailure(ctx, err)
	}
	return running, nil
}

// watch follows a running service until it ends, must end, or its successor is up. It does not stop it.
func (s *Supervisor) watch(ctx context.Context, r *run) ending {
	results := make(chan error)
	if s.opts.Health.Check != nil {
		r.checks.Go(func() { s.opts.Health.loop(ctx, results) })
	}
	n := s.newSuccession()
	defer n.due.Stop()
	var m misses
	for {
		// A known end goes before a state that would be outdated at once.
		if e, over := ended(ctx, r.running); over {
			return e
		}
		if m.count >= s.opts.Health.Misses {
			return failed(m.failure())
		}
		s.showUp(r, &m, n.stuck)
		var e ending
		var over bool
		select {
		case <-ctx.Done():
		case <-r.running.Done():
		case err := <-results:
			m.add(err)
		case <-r.marked:
		case why := <-r.asked:
			e, over = s.replace(ctx, r, n, why)
		case <-n.due.C:
			e, over = s.replace(ctx, r, n, "")
		case next := <-n.came:
			e, over = s.arrived(ctx, n, next)
		}
		if over {
			return e
		}
	}
}

// ended reports whether the run is over. An order goes before the end of the service, which may be the consequence of
// the order.
func ended(ctx context.Context, running Running) (ending, bool) {
	if ctx.Err() != nil {
		return orderedEnding(ctx), true
	}
	select {
	case <-running.Done():
		return failed(failureOf(running.Err(), CodeCrash, "ended without being asked to")), true
	default:
		return ending{}, false
	}
}

// showUp makes the state ready or degraded. stuck is why the run could not be replaced.
func (s *Supervisor) showUp(r *run, m *misses, stuck *reason) {
	now := time.Now()
	why := cmp.Or(r.mark.Load(), stuck)
	switch {
	case m.count > 0:
		s.history.unhealthy(now)
		s.enter(StateDegraded, CodeTimeout, m.text()+": "+errorText(m.last))
	case why != nil:
		s.history.unhealthy(now)
		s.enter(StateDegraded, why.code, why.detail)
	default:
		s.history.healthy(now)
		s.enter(StateReady, "", "")
	}
	s.settle(nil)
}

func (s *Supervisor) drain(ctx context.Context, r *run, why string) error {
	s.history.unhealthy(time.Now())
	if r.running == nil {
		return nil
	}
	s.enter(StateDraining, "", why)
	return r.stop(ctx, s.opts)
}

// fail enters backoff or quarantine, stops what is left of the run, and waits until the service may be started again
// or ctx ends.
func (s *Supervisor) fail(ctx context.Context, r *run, f *Failure) error {
	now := time.Now()
	wait, quarantine := s.history.failed(f.Class, now, s.opts.Random())
	count := len(s.history.counted)
	hold := s.openHold()
	defer s.closeHold()

	state, detail := StateBackoff, f.summary()
	if quarantine {
		state = StateQuarantined
		if f.Class != ClassPermanent {
			detail = fmt.Sprintf("%d failures within %s, the last: %s", count, failureWindow, detail)
		}
	}
	note := func(st *Status) {
		st.Last, st.Failures = f, count
		if !quarantine {
			st.NextAttempt = now.Add(wait)
		}
	}
	s.enter(state, f.Code, detail, note)
	s.settle(f)

	// The state says at once that the service is gone; the wait runs while its remains are cleared away.
	err := r.stop(ctx, s.opts)
	if err != nil {
		s.enter(state, f.Code, detail+"; "+err.Error(), note)
	}
	// A nil channel never fires: quarantine has no end of its own.
	var delay <-chan time.Time
	if !quarantine {
		timer := time.NewTimer(wait - time.Since(now))
		defer timer.Stop()
		delay = timer.C
	}
	select {
	case <-ctx.Done():
	case <-delay:
	case <-hold:
	}
	return err
}

// openHold lets Release end the coming wait.
func (s *Supervisor) openHold() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = make(chan struct{})
	return s.hold
}

// closeHold ends what openHold began. If Release was called, the past is forgotten.
func (s *Supervisor) closeHold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hold == nil {
		s.history = history{}
	}
	s.hold = nil
}

// enter puts the service into a state, with further edits for the same event.
func (s *Supervisor) enter(state State, code, detail string, also ...func(*Status)) {
	s.change("", func(st *Status) {
		st.State, st.Code, st.Detail = state, code, detail
		st.NextAttempt = time.Time{}
		for _, f := range also {
			f(st)
		}
	})
}

// change publishes a new status and calls OnEvent, unless nothing has changed. replaced is why another incarnation
// has taken over, or empty.
func (s *Supervisor) change(replaced string, edit func(*Status)) {
	old := s.Status()
	next := old
	edit(&next)
	next.Since = old.Since
	if next.same(old) {
		return
	}
	if next.State != old.State {
		next.Since = time.Now()
	}
	s.status.Store(&next)
	s.opts.OnEvent(Event{Name: s.opts.Name, From: old.State, Status: next, Replaced: replaced})
}

// settle fixes what Wait returns, the first time that it is called.
func (s *Supervisor) settle(outcome error) {
	select {
	case <-s.settled:
	default:
		s.outcome = outcome
		close(s.settled)
	}
}
