package proc

import (
	"os"
	"testing"
)

func TestParsePSS(t *testing.T) {
	t.Parallel()

	const rollup = "559820ccf000-7ffed3722000 ---p 00000000 00:00 0    [rollup]\nRss:    1704 kB\nPss:     340 kB\nPss_Dirty:   112 kB\n"
	tests := []struct {
		name, text string
		want       int64
		ok         bool
	}{
		{"as it is", rollup, 340 << 10, true},
		{"another line first", "Pss_Anon: 1 kB\nPss: 2 kB\n", 2 << 10, true},
		{"no line", "Rss: 3 kB\n", 0, false},
		{"no number", "Pss: x kB\n", 0, false},
		{"no unit", "Pss: 3\n", 0, false},
		{"nothing", "", 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if got, ok := parsePSS([]byte(tt.text)); got != tt.want || ok != tt.ok {
				t.Errorf("parsePSS = %d, %v; want %d, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
	own, rss := proportionalSize(os.Getpid()), int64(0)
	if p, ok := readProcess(os.Getpid()); ok {
		rss = p.pages * int64(os.Getpagesize())
	}
	if own < 1<<20 || own > 2*rss {
		t.Errorf("this process holds %d of %d", own, rss)
	}
	if got := proportionalSize(-1); got != 0 {
		t.Errorf("a process that there is not holds %d", got)
	}
}
