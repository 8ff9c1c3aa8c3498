package supervise

import "testing"

func TestStateUp(t *testing.T) {
	t.Parallel()
	up := map[State]bool{StateReady: true, StateDegraded: true}
	for _, s := range []State{
		"", StateDeclared, StateStarting, StateReady, StateDegraded, StateBackoff, StateQuarantined, StateDraining, StateStopped,
	} {
		if got, want := s.Up(), up[s]; got != want {
			t.Errorf("%v.Up() = %v, want %v", s, got, want)
		}
	}
}
