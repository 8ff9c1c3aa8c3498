package proc

import (
	"syscall"
	"testing"
)

func TestJudge(t *testing.T) {
	t.Parallel()

	const limit = 800
	killed := Exit{Code: -1, Signal: syscall.SIGKILL}
	asked := Exit{Code: -1, Signal: syscall.SIGKILL, Asked: true}
	tests := []struct {
		name string
		exit Exit
		// limit, held, condemned and host are those of memory.
		limit, held, condemned, host int64
		grouped                      bool
		peak                         int64
		oom                          bool
		want                         int64
	}{
		{name: "killed here", exit: killed, limit: limit, held: 900, condemned: 850, oom: true, want: 850},
		{name: "killed here while it was being stopped", exit: asked, limit: limit, condemned: 850, oom: true, want: 850},
		{name: "ended by itself before it could be killed", exit: Exit{Code: 1}, limit: limit, condemned: 850, peak: 10},
		{name: "stopped", exit: asked, limit: limit, held: 900, grouped: true},
		{name: "ended well", exit: Exit{}, limit: limit, held: 900},
		{name: "killed in its group", exit: killed, grouped: true, held: 5, oom: true, want: 5},
		{name: "crashed near what was killed in its group", exit: Exit{Code: 1}, grouped: true, held: 5},
		{name: "refused memory", exit: Exit{Code: 2}, limit: limit, held: 100, peak: 801, oom: true, want: 801},
		{name: "a peak of the host's", exit: Exit{Code: 2}, limit: limit, held: 100, peak: 801, host: 801},
		{name: "killed near its limit", exit: killed, limit: limit, held: 700, oom: true, want: 700},
		{name: "crashed near its limit", exit: Exit{Code: -1, Signal: syscall.SIGSEGV}, limit: limit, held: 700},
		{name: "killed far from its limit", exit: killed, limit: limit, held: 699},
		{name: "killed without a limit", exit: killed, held: 1 << 40},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			m := memory{limit: tt.limit, host: tt.host, system: oomKills() + 1<<20}
			m.held.Store(tt.held)
			m.killed.Store(tt.condemned)
			oom, held := m.judge(tt.exit, tt.grouped, tt.peak)
			if oom != tt.oom || held != tt.want {
				t.Errorf("judge = %v, %d; want %v, %d", oom, held, tt.oom, tt.want)
			}
		})
	}
	guess := memory{system: oomKills() - 1}
	if oom, _ := guess.judge(killed, false, 0); !oom {
		t.Error("killed while the system was killing for memory: not for memory")
	}
}
