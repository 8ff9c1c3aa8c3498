// Package bench measures the engine side by side with what it is compared to: a bare go-plugin unary call of the same
// payload, to the same number of processes, in one run on one machine. It holds benchmarks only.
//
//	go test -run '^$' -bench . ./internal/tests/bench
//
// BenchmarkPaired is the one to quote: it alternates batches of both and reports the median ratio, so that a machine
// that gets slower in between does not decide. BenchmarkGrowth measures what takes longer when there is more of
// something. What was measured stands in docs/PERFORMANCE.md.
package bench
