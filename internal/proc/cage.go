package proc

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
	"github.com/grapnelhq/grapnel/phases"
)

// Sandbox says how strongly a process is confined. The zero value is tier T0, which adds nothing.
type Sandbox struct {
	// Tier must be reached, or the start fails. Tiers above T0 enforce Policy; its memory limit counts in every tier.
	Tier   sandbox.Tier
	Policy sandbox.Policy
	Groups string // the control group below which T2 makes its own; "" is the one delegated to the host
}

// Confinement is how a process is confined.
type Confinement struct {
	Tier sandbox.Tier
	// Missing lists protections of the tier that this machine lacks: an old kernel, or a limited control group.
	Missing []string
	Absent  []string // Absent lists granted paths that did not exist at the start and are therefore not granted
}

// cage is the confinement of one process, empty in T0.
type cage struct {
	tier        sandbox.Tier
	confinement *sandbox.Confinement
	group       *sandbox.Group
	missing     []string // what the group lacks
}

// newCage prepares a confinement. mark names the control group. Errors are *phases.Error.
func newCage(s Spec, prog *program, directory, mark string) (*cage, error) {
	g := &cage{tier: s.Sandbox.Tier}
	if g.tier == sandbox.T0 {
		return g, nil
	}
	err := g.prepare(s.Sandbox, prog, directory, mark)
	if err == nil {
		return g, nil
	}
	err = errors.Join(err, g.remove())
	return nil, resourceOr(phases.CauseExecFailed, err, "plugin %s cannot be confined as its configuration wants: %w", s.Name)
}

func (g *cage) prepare(s Sandbox, prog *program, directory, mark string) error {
	if g.tier > sandbox.T2 {
		return errors.New(g.tier.String())
	}
	confined, done, err := prog.confined(directory)
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
	g.group, err = sandbox.NewGroup(base, dirPrefix+strings.Replace(mark, "/", "-", 1), limits)
	return err
}

func (g *cage) kill() {
	if g.group != nil {
		_ = g.group.Kill() // remove reports it
	}
}

// begun frees what only the start needed.
func (g *cage) begun() {
	if g.confinement != nil {
		g.confinement.Close()
	}
}

func (g *cage) remove() error {
	g.begun()
	if g.group == nil {
		return nil
	}
	return g.group.Remove()
}

// removeSoon retries until the last member of the control group has gone or ctx ends.
func (g *cage) removeSoon(ctx context.Context) error {
	if err := retry(ctx, g.remove, g.kill); err != nil {
		return phases.Errorf(phases.CauseInternal, "control group cannot be removed: %w", err)
	}
	return nil
}

// retry calls f, and again after each failure, with growing pauses, until it succeeds or ctx ends.
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
