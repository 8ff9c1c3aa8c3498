package proc

// Mark returns the value of GRAPNEL_MARK in the environment of the process and its descendants.
func (p *Process) Mark() string { return p.child.mark }

// Forge replaces all remembered checksums.
func (s *Sums) Forge(sum string) {
	for id := range s.known {
		s.known[id] = sum
	}
}
