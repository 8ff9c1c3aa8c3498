package runtime

import (
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/pool"
)

// BenchmarkNobodyRecords is what a call of a plugin pays for Options.OnExchange where
// that is nil.
func BenchmarkNobodyRecords(b *testing.B) {
	e, inc := &Engine{}, &pool.Incarnation{Instance: &pool.Instance{}}
	b.ReportAllocs()
	for b.Loop() {
		e.beginExchange(b.Context(), inc, ExchangeDispatch, 1, "plugin.hook").ended(nil, nil, time.Time{})
	}
}
