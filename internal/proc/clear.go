package proc

import (
	"context"
	"errors"
	"fmt"

	"github.com/grapnelhq/grapnel/phases"
)

// ErrAlive is in the errors of Stop and Clear if processes of the plugin may still run.
var ErrAlive = errors.New("processes of the plugin may still run")

// Clear tries again to kill and to remove what Stop could not, as a host without
// descriptors can neither look for descendants nor empty a folder. It waits for KillTime
// at most, and ClearTime each for Stop's own work to end, for processes that are ending,
// and for the folder.
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
	return errors.Join(caged, p.folder.remove(ctx))
}

// GiveUp leaves what Clear could not remove to the sweep of the next host. It does
// nothing while the process has not ended.
func (p *Process) GiveUp() {
	select {
	case <-p.gone:
		p.folder.giveUp()
	default:
	}
}

// unended is the error of a process whose removal takes too long.
func (p *Process) unended() error {
	select {
	case <-p.child.exited:
		return stillRuns("plugin %s has ended, but what it has left could not be removed in time", p.spec.Name)
	default:
		return stillRuns("plugin %s (process %d) could not be killed in time", p.spec.Name, p.PID())
	}
}

// alive is the error of descendants that live although they were killed, or that
// could not be looked for.
func (p *Process) alive(count int) error {
	if count < 0 {
		return stillRuns("plugin %s: what it has started could not be looked for", p.spec.Name)
	}
	return stillRuns("plugin %s: %d of its processes could not be killed", p.spec.Name, count)
}

// stillRuns is an error that wraps ErrAlive.
func stillRuns(format string, args ...any) error {
	return &phases.Error{Code: phases.CauseInternal, Message: fmt.Sprintf(format, args...), Err: ErrAlive}
}
