package proc

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// Stop asks over the connection, sends SIGTERM after a quarter of the grace and SIGKILL at its end, and waits
// until nothing is left. It takes at most the grace and twice KillTime, and up to ClearTime more while the
// system takes down what was killed. The end of ctx kills at once. Concurrent calls wait for the same end. The
// error says what could not be removed; [ErrAlive] if processes may still run.
func (p *Process) Stop(ctx context.Context) error {
	limit := time.NewTimer(p.spec.Grace + KillTime)
	defer limit.Stop()
	p.child.asked.Store(true)
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

func (p *Process) escalate(ctx context.Context) {
	p.child.noteFamily()
	// This call may hang as long as the plugin does; finish waits for it.
	go p.hangUp()
	if await(p.child.exited, ctx.Done(), p.spec.Grace/4) {
		return
	}
	p.child.signal(syscall.SIGTERM)
	if await(p.child.exited, ctx.Done(), p.spec.Grace-p.spec.Grace/4) {
		return
	}
	p.Kill()
}

// Kill kills the process and its descendants without waiting; cleaning up continues in the background.
func (p *Process) Kill() {
	p.child.asked.Store(true)
	p.cage.kill() // nothing leaves a control group, so its members need not be looked up
	p.child.noteFamily()
	p.child.signal(syscall.SIGKILL)
}

// Killed reports whether the process was sent SIGKILL, for whatever reason.
func (p *Process) Killed() bool {
	select {
	case <-p.child.condemned:
		return true
	default:
		return false
	}
}

// Orphans waits for the end of the process, and returns how many others it had started that were still there; 0 without
// Spec.CountOrphans, or without /proc.
func (p *Process) Orphans() int {
	<-p.child.exited
	return p.child.orphans
}

// Signal signals the process and its group, unless it has ended.
func (p *Process) Signal(sig syscall.Signal) {
	p.child.asked.Store(true)
	p.child.signal(sig)
}

// HangUp ends the connection as the first step of Stop does, and nothing else. It may block as long as the plugin does.
func (p *Process) HangUp() {
	p.child.asked.Store(true)
	p.hangUp()
}

// await waits until c is closed, for at most d or until stop is closed, and reports whether it was.
func await(c, stop <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-stop:
	case <-t.C:
	}
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// awaitGone waits for at most d, or d and ClearTime if everything left was killed and is ending.
func (p *Process) awaitGone(d time.Duration) bool {
	end := time.Now().Add(d + ClearTime)
	gone := await(p.gone, nil, d)
	for f := p.child.descendants(); !gone && f != nil && f.ending.Load() && time.Now().Before(end); {
		gone = await(p.gone, nil, 10*time.Millisecond)
	}
	return gone
}

// ErrAlive says that processes of the plugin may still run.
var ErrAlive = errors.New("processes of the plugin may still run")

// Clear retries what Stop could not kill or remove. It takes at most KillTime and thrice ClearTime.
func (p *Process) Clear() error {
	if !p.awaitGone(ClearTime) {
		return p.unended()
	}
	ctx := context.Background()
	if left := p.killAll(ctx); left != 0 {
		return p.alive(left)
	}
	ctx, cancel := context.WithTimeout(ctx, KillTime)
	defer cancel()
	caged := p.cage.removeSoon(ctx)
	ctx, cancel = context.WithTimeout(context.Background(), ClearTime)
	defer cancel()
	return errors.Join(caged, p.dir.remove(ctx))
}

// GiveUp leaves to the next host's sweep what Clear could not remove. It does nothing before the end of the process.
func (p *Process) GiveUp() {
	select {
	case <-p.gone:
		p.dir.giveUp()
	default:
	}
}

func (p *Process) unended() error {
	select {
	case <-p.child.exited:
		return stillRuns("plugin %s has ended, but what it has left could not be removed in time", p.spec.Name)
	default:
		return stillRuns("plugin %s (process %d) could not be killed in time", p.spec.Name, p.PID())
	}
}

func (p *Process) alive(count int) error {
	if count < 0 {
		return stillRuns("plugin %s: what it has started could not be looked for", p.spec.Name)
	}
	return stillRuns("plugin %s: %d of its processes could not be killed", p.spec.Name, count)
}

func stillRuns(format string, args ...any) error {
	return &phases.Error{Code: phases.CauseInternal, Message: fmt.Sprintf(format, args...), Err: ErrAlive}
}
