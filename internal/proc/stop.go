package proc

import (
	"context"
	"syscall"
	"time"
)

// Stop ends the process: it asks over the connection, sends SIGTERM to the
// group after a quarter of the grace and SIGKILL at its end, and waits until
// nothing is left. It takes at most the grace and twice KillTime, and up to ClearTime
// more for what has been killed and is still being taken down by the system, as a
// process that held much memory is. When ctx ends, it kills at once. Any number of callers may
// call it at any time; all of them wait for the same end. The error says what could
// not be removed; it is [ErrAlive] if processes may still run.
func (p *Process) Stop(ctx context.Context) error {
	limit := time.NewTimer(p.spec.Grace + KillTime)
	defer limit.Stop()
	p.child.expectEnd()
	if p.stopping.CompareAndSwap(false, true) {
		p.escalate(ctx)
	}
	select {
	case <-p.gone:
		return p.leftover
	case <-ctx.Done():
	case <-limit.C:
	}
	p.Kill()
	if p.awaitGone(KillTime) {
		return p.leftover
	}
	return p.unended()
}

// escalate brings about the end of the process, by ever stronger means.
func (p *Process) escalate(ctx context.Context) {
	p.child.noteFamily()
	// This call may hang as long as the plugin does; finish waits for it.
	go p.hangUp()
	if p.awaitExit(ctx, p.spec.Grace/4) {
		return
	}
	p.child.signal(syscall.SIGTERM)
	if p.awaitExit(ctx, p.spec.Grace-p.spec.Grace/4) {
		return
	}
	p.Kill()
}

// Kill kills the process with all its descendants and does not wait for their end. What
// is left is removed in the background; Stop waits for that.
func (p *Process) Kill() {
	p.child.expectEnd()
	p.cage.kill() // nothing leaves a control group: it needs no look at who is in it
	p.child.noteFamily()
	p.child.signal(syscall.SIGKILL)
}

// Killed reports whether the process has been sent SIGKILL, by whatever rule.
func (p *Process) Killed() bool {
	select {
	case <-p.child.condemned:
		return true
	default:
		return false
	}
}

// awaitExit waits for the end of the process, for at most d, and reports
// whether it came.
func (p *Process) awaitExit(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.child.exited:
		return true
	case <-ctx.Done():
	case <-t.C:
	}
	return false
}

// await waits until c is closed, for at most d, and reports whether it was.
func (p *Process) await(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
	}
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// awaitGone waits until nothing is left of the process, for at most d, or d and
// ClearTime if all that is left has been killed and is ending.
func (p *Process) awaitGone(d time.Duration) bool {
	end := time.Now().Add(d + ClearTime)
	gone := p.await(p.gone, d)
	for !gone && p.child.ending() && time.Now().Before(end) {
		gone = p.await(p.gone, 10*time.Millisecond)
	}
	return gone
}
