//go:build !linux

package sandbox

import "runtime"

func nowhere(t Tier) error {
	return &UnreachableError{Tier: t, Why: runtime.GOOS + " has no Landlock and no control groups"}
}

// Confinement exists on Linux only: here every function fails, and every method fails or does nothing.
type Confinement struct{ Missing, Absent []string }

func Probe() Support { return Support{NoLandlock: runtime.GOOS + " has no Landlock"} }

func Prepare(p Policy, _ Program) (*Confinement, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return nil, nowhere(T1)
}

func (*Confinement) Apply() error            { return nowhere(T1) }
func (*Confinement) DeathSignal() bool       { return false }
func (*Confinement) Leave() error            { return nowhere(T1) }
func (*Confinement) Limit(int, *Group) error { return nowhere(T1) }
func (*Confinement) Close()                  {}

// Group exists on Linux only.
type Group struct{}

func FindGroupBase(_ string, l Limits) (string, Limits, error) { return "", l, nowhere(T2) }
func NewGroup(string, string, Limits) (*Group, error)          { return nil, nowhere(T2) }
func KillGroup(string) error                                   { return nowhere(T2) }
func (*Group) Kill() error                                     { return nowhere(T2) }
func (*Group) Remove() error                                   { return nil }
func (*Group) OOMKills() uint64                                { return 0 }
