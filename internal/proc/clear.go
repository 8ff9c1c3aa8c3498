package proc

import (
	"context"
	"errors"

	"github.com/grapnelhq/grapnel/phases"
)

// Clear tries again to kill and to remove what Stop could not, as a host without
// descriptors can neither look for descendants nor empty a folder. It takes at most
// KillTime and ClearTime, and is an error while the process has not ended.
func (p *Process) Clear() error {
	select {
	case <-p.gone:
	default:
		return phases.Errorf(phases.CauseInternal, "plugin %s has not ended", p.spec.Name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), KillTime)
	defer cancel()
	p.cage.kill()
	if left := p.child.killFamily(ctx); left != 0 {
		return p.alive(left)
	}
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

// alive is the error of descendants that live although they were killed, or that
// could not be looked for.
func (p *Process) alive(count int) error {
	if count < 0 {
		return phases.Errorf(phases.CauseInternal, "plugin %s: what it has started could not be looked for", p.spec.Name)
	}
	return phases.Errorf(phases.CauseInternal, "plugin %s: %d of its processes could not be killed", p.spec.Name, count)
}
