package runtime

import "testing"

// BenchmarkNobodyRecords is what a call of a plugin pays for Options.OnExchange where
// that is nil.
func BenchmarkNobodyRecords(b *testing.B) {
	inc := &incarnation{in: &instance{engine: &Engine{}}}
	b.ReportAllocs()
	for b.Loop() {
		inc.beginExchange(ExchangeDispatch, 1, "plugin.hook").dispatched(nil, nil, nil)
	}
}
