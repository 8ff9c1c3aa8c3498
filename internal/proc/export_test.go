package proc

// Mark returns the value of GRAPNEL_MARK in the environment of the process and its descendants.
func (p *Process) Mark() string { return p.child.mark }

// DroppedLines returns how many log lines were dropped because of the rate.
func (p *Process) DroppedLines() int { return p.child.sink.droppedLines() }

// StrayOutput returns how many bytes the plugin wrote to stdout after its handshake.
func (p *Process) StrayOutput() int64 { return p.child.stdout.extra.Load() }

// Forge replaces all remembered checksums.
func (s *Sums) Forge(sum string) {
	for id := range s.known {
		s.known[id] = sum
	}
}
