package supervise

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

var errCause = errors.New("the cause")

// fakeService is a service under the test's control. It checks on its own that
// the supervisor keeps to the contract of Service.
type fakeService struct {
	t *testing.T
	// onStart replaces the start; nil means that it succeeds at once.
	onStart func(ctx context.Context, incarnation uint64) error
	// onStop replaces the stop.
	onStop func(ctx context.Context) error
	// onDrain replaces the drain of one that was replaced.
	onDrain func(ctx context.Context)
	// beside is how many incarnations may run when another is started.
	beside int32
	// stillborn says that all but the first incarnation have ended when they are up.
	stillborn bool

	alive  atomic.Int32 // started and not stopped
	starts atomic.Int32

	mu   sync.Mutex
	last uint64
	run  *fakeRun
}

func (f *fakeService) Start(ctx context.Context, incarnation uint64) (Running, error) {
	f.starts.Add(1)
	f.mu.Lock()
	if incarnation <= f.last {
		f.t.Errorf("incarnation %d after %d", incarnation, f.last)
	}
	f.last = incarnation
	f.mu.Unlock()
	if n := f.alive.Load(); n > f.beside {
		f.t.Errorf("started while %d incarnations are not stopped", n)
	}
	if f.onStart != nil {
		if err := f.onStart(ctx, incarnation); err != nil {
			return nil, err
		}
	}
	f.alive.Add(1)
	r := &fakeRun{service: f, done: make(chan struct{})}
	f.mu.Lock()
	f.run = r
	f.mu.Unlock()
	if f.stillborn && incarnation > 1 {
		r.finish(nil)
	}
	return r, nil
}

// crash ends the current run with err.
func (f *fakeService) crash(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.run.finish(err)
}

// fakeRun is one started fakeService.
type fakeRun struct {
	service *fakeService
	once    sync.Once
	done    chan struct{}
	err     error
	stops   atomic.Int32
}

func (r *fakeRun) Done() <-chan struct{} { return r.done }
func (r *fakeRun) Err() error            { return r.err }

func (r *fakeRun) Drain(ctx context.Context) {
	if r.service.onDrain != nil {
		r.service.onDrain(ctx)
	}
}

func (r *fakeRun) finish(err error) {
	r.once.Do(func() {
		r.err = err
		close(r.done)
	})
}

func (r *fakeRun) Stop(ctx context.Context) error {
	if n := r.stops.Add(1); n != 1 {
		r.service.t.Errorf("stopped %d times", n)
	}
	if _, bounded := ctx.Deadline(); !bounded || ctx.Err() != nil {
		r.service.t.Errorf("stop context: bounded %v, error %v", bounded, ctx.Err())
	}
	var err error
	if r.service.onStop != nil {
		err = r.service.onStop(ctx)
	}
	r.finish(nil)
	r.service.alive.Add(-1)
	return err
}

// rig is a supervisor with its fake service and a record of its events. It is
// made for use inside a synctest bubble.
type rig struct {
	*Supervisor
	t       *testing.T
	service *fakeService
	begun   time.Time
	stop    context.CancelCauseFunc
	ended   chan error

	mu     sync.Mutex
	events []string
}

// newRig builds a rig without serving it. Waits have no jitter.
func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	r := &rig{t: t, service: &fakeService{t: t}, begun: time.Now(), ended: make(chan error, 1)}
	o.Name = "fake"
	if o.Random == nil {
		o.Random = func() float64 { return 0 }
	}
	next := o.OnEvent
	o.OnEvent = func(e Event) {
		r.record(e)
		if next != nil {
			next(e)
		}
	}
	sup := New(r.service, o)
	r.Supervisor = sup
	return r
}

// record keeps an event as one line: when, state, code, detail.
func (r *rig) record(e Event) {
	line := fmt.Sprintf("%v %v", time.Since(r.begun), e.Status.State)
	if e.Status.Code != "" {
		line += " " + e.Status.Code
	}
	if e.Status.Detail != "" {
		line += ": " + e.Status.Detail
	}
	if e.Replaced != "" {
		line += fmt.Sprintf(" %d, replaced: %s", e.Status.Incarnation, e.Replaced)
	}
	if !e.Status.NextAttempt.IsZero() {
		line += fmt.Sprintf(" (in %v)", time.Until(e.Status.NextAttempt))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, line)
}

// serve runs the supervisor until halt and waits until it has nothing to do.
func (r *rig) serve() {
	ctx, stop := context.WithCancelCause(context.Background())
	r.stop = stop
	go func() { r.ended <- r.Serve(ctx) }()
	synctest.Wait()
}

var errShutdown = errors.New("host stops")

// halt stops the supervisor, and checks that nothing is left.
func (r *rig) halt() error {
	r.t.Helper()
	r.stop(errShutdown)
	err := <-r.ended
	if n := r.service.alive.Load(); n != 0 {
		r.t.Errorf("%d incarnations left", n)
	}
	if got := r.Status().State; got != StateStopped {
		r.t.Errorf("state after Serve = %v, want stopped", got)
	}
	return err
}

// mustHalt is halt for tests that expect a clean end.
func (r *rig) mustHalt() {
	r.t.Helper()
	if err := r.halt(); err != nil {
		r.t.Errorf("Serve = %v", err)
	}
}

// pause lets the time go by and everything happen that is due then.
func pause(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// log returns the events so far.
func (r *rig) log() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.events...)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
