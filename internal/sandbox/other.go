//go:build !linux

package sandbox

import "runtime"

// nowhere is the answer to every wish on this system.
func nowhere(t Tier) error {
	return &UnreachableError{Tier: t, Why: runtime.GOOS + " has none of what it is made of"}
}

// Confinement exists on Linux only.
type Confinement struct{}

// Probe says what this system offers: nothing.
func Probe() Support { return Support{NoLandlock: runtime.GOOS + " has no Landlock"} }

// Prepare always fails on this system.
func Prepare(p Policy, _ Program) (*Confinement, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return nil, nowhere(T1)
}

// Apply always fails on this system.
func (*Confinement) Apply() error { return nowhere(T1) }

// DeathSignal is false: there is no confinement.
func (*Confinement) DeathSignal() bool { return false }

// Leave always fails on this system.
func (*Confinement) Leave() error { return nowhere(T1) }

// Limit always fails on this system.
func (*Confinement) Limit(int, *Group) error { return nowhere(T1) }

// Missing lists nothing: there is no confinement.
func (*Confinement) Missing() []string { return nil }

// Absent lists nothing.
func (*Confinement) Absent() []string { return nil }

// Close does nothing.
func (*Confinement) Close() {}

// Group exists on Linux only.
type Group struct{}

// FindGroupBase always fails on this system.
func FindGroupBase(_ string, l Limits) (string, Limits, error) { return "", l, nowhere(T2) }

// NewGroup always fails on this system.
func NewGroup(string, string, Limits) (*Group, error) { return nil, nowhere(T2) }

// FD is no descriptor.
func (*Group) FD() int { return -1 }

// Path is no path.
func (*Group) Path() string { return "" }

// Kill always fails on this system.
func (*Group) Kill() error { return nowhere(T2) }

// KillGroup always fails on this system.
func KillGroup(string) error { return nowhere(T2) }

// Remove has nothing to remove.
func (*Group) Remove() error { return nil }

// OOMKills is zero.
func (*Group) OOMKills() uint64 { return 0 }
