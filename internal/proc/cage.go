package proc

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/sandbox"
	"github.com/grapnelhq/grapnel/phases"
)

// Sandbox says how strongly a process is confined. The zero value is tier T0:
// what this package does for every process.
type Sandbox struct {
	// Tier is what must be reached: if it cannot be, the start fails, and
	// never is a process less confined than this. A tier above T0 enforces
	// Policy. Its limit of memory counts in every tier: for EnforceMemory, and
	// for what is said of an end.
	Tier   sandbox.Tier
	Policy sandbox.Policy
	// Groups is the folder of the control group below which T2 makes its own,
	// "" for the one that was delegated to the host.
	Groups string
}

// Confinement is how a process is confined.
type Confinement struct {
	Tier sandbox.Tier
	// Missing lists protections of the tier that this machine does not give: the
	// kernel is too old, or the control group has less than it could.
	Missing []string
	// Absent lists granted paths that were not there at the start, and are not
	// granted therefore.
	Absent []string
}

// cage is the confinement of one process, made ready before its start. In T0
// it is empty.
type cage struct {
	tier        sandbox.Tier
	confinement *sandbox.Confinement
	group       *sandbox.Group
	// missing is what the group lacks.
	missing []string
}

// newCage makes a confinement ready. mark names the process's control group.
// Errors are *phases.Error.
func newCage(s Spec, prog *program, folder, mark string) (*cage, error) {
	g := &cage{tier: s.Sandbox.Tier}
	if g.tier == sandbox.T0 {
		return g, nil
	}
	err := g.prepare(s.Sandbox, prog, folder, mark)
	if err == nil {
		return g, nil
	}
	err = errors.Join(err, g.remove())
	return nil, resourceOr(phases.CauseExecFailed, err, "plugin %s cannot be confined as its configuration wants: %w", s.Name)
}

// prepare makes what the tier is made of.
func (g *cage) prepare(s Sandbox, prog *program, folder, mark string) error {
	if g.tier > sandbox.T2 {
		return errors.New(g.tier.String())
	}
	confined, done, err := prog.confined(folder)
	if err != nil {
		return err
	}
	defer done()
	if g.confinement, err = sandbox.Prepare(s.Policy, confined); err != nil || g.tier < sandbox.T2 {
		return err
	}
	base, limits, err := sandbox.FindGroupBase(s.Groups, s.Policy.Limits)
	if err != nil {
		return err
	}
	g.missing = sandbox.MissingGrouped(s.Policy.Limits, limits)
	g.group, err = sandbox.NewGroup(base, groupName(mark), limits)
	return err
}

// groupName is the name of a process's control group: its mark, so that one
// that was left behind can be told from others.
func groupName(mark string) string { return folderPrefix + strings.ReplaceAll(mark, "/", "-") }

// hostOfGroup is the part of groupName's inverse that says whose a group is.
func hostOfGroup(name string) (string, bool) {
	mark, ok := strings.CutPrefix(name, folderPrefix)
	i := strings.LastIndexByte(mark, '-')
	if !ok || i < 0 {
		return "", false
	}
	return hostOf(mark[:i] + "/" + mark[i+1:])
}

// enter restricts the calling thread.
func (g *cage) enter() error {
	if g.confinement == nil {
		return nil
	}
	return g.confinement.Apply()
}

// oomKilled reports whether the system has killed something in the process's
// control group for memory.
func (g *cage) oomKilled() bool { return g.group != nil && g.group.OOMKills() > 0 }

// boundsMemory reports whether the system itself keeps all processes of the
// plugin together below their limit of memory.
func (g *cage) boundsMemory() bool { return g.group != nil }

// kill kills all that is in the control group.
func (g *cage) kill() {
	if g.group != nil {
		_ = g.group.Kill() // remove tells
	}
}

// begun frees what only the start needed.
func (g *cage) begun() {
	if g.confinement != nil {
		g.confinement.Close()
	}
}

// remove removes what the confinement needed. Members of the control group
// must have been killed.
func (g *cage) remove() error {
	g.begun()
	if g.group == nil {
		return nil
	}
	return g.group.Remove()
}

// removeSoon is remove, repeated until the last member of the control group
// has gone, or ctx ends.
func (g *cage) removeSoon(ctx context.Context) error {
	if err := retry(ctx, g.remove, g.kill); err != nil {
		return phases.Errorf(phases.CauseInternal, "control group cannot be removed: %w", err)
	}
	return nil
}

// retry calls f until it succeeds, and before each further time again, with
// growing pauses. It returns the last error when ctx ends.
func retry(ctx context.Context, f func() error, again func()) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		err := f()
		if err == nil {
			return nil
		}
		again()
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}
