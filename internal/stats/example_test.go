package stats_test

import (
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/internal/stats"
)

// Ninety-nine calls that take a tenth of a millisecond, and one that takes a
// second.
func Example() {
	var h stats.Histogram
	for range 99 {
		h.Record(100 * time.Microsecond)
	}
	h.Record(time.Second)

	s := h.Snapshot()
	fmt.Println(s.Count(), s.Quantile(0.5), s.Quantile(0.99), s.Max())
	// Output: 100 102µs 102µs 1s
}
