//go:build !linux

package proc

import "os"

// awaitEnd waits for the end of a child, reaps it, and calls last. The group
// is signalled after the reaping here, which is right as long as any of it
// lives: only then does the number still belong to it.
func awaitEnd(p *os.Process, last func()) *os.ProcessState {
	state, err := p.Wait()
	last()
	if err != nil {
		return nil
	}
	return state
}
