package proc_test

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/sandbox"
)

// BenchmarkSandbox measures what each tier adds to a start. The starts take
// turns, so that a busy machine slows all of them; medians are compared.
func BenchmarkSandbox(b *testing.B) {
	dir, err := os.MkdirTemp("", "gt") //nolint:usetesting // a socket needs a short path
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	limits := sandbox.Limits{Tasks: sandbox.NoLimit} // so that a group needs no controller
	start := func(how proc.Sandbox) func() { return startOnly(b, dir, func(s *proc.Spec) { s.Sandbox = how }) }
	names := []string{"T0", "T1"}
	starts := []func(){start(proc.Sandbox{}), start(proc.Sandbox{Tier: sandbox.T1})}
	if base, _, err := sandbox.FindGroupBase("", limits); err == nil {
		names = append(names, "T2")
		starts = append(starts, start(proc.Sandbox{Tier: sandbox.T2, Groups: base, Policy: sandbox.Policy{Limits: limits}}))
	}
	takeTurns(b, names, starts)
}

// startOnly returns a function that starts a plugin. Its end is not measured.
func startOnly(b *testing.B, dir string, change func(*proc.Spec)) func() {
	b.Helper()

	return func() {
		s := specFor("serve")
		s.RuntimeDir = dir
		change(&s)
		p, err := proc.Start(context.Background(), s)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		defer b.StartTimer()
		if err := p.Stop(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMutualTLS measures what certificates add to a start. What the check of
// the peer adds, which is done instead, is in BenchmarkDial.
func BenchmarkMutualTLS(b *testing.B) {
	dir, err := os.MkdirTemp("", "gt") //nolint:usetesting // a socket needs a short path
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	takeTurns(b, []string{"plain", "TLS"}, []func(){
		startOnly(b, dir, func(*proc.Spec) {}), startOnly(b, dir, func(s *proc.Spec) { s.MutualTLS = true }),
	})
}

// BenchmarkSums compares starts of a program that is not hashed with those that remember its checksum, and that read it.
func BenchmarkSums(b *testing.B) {
	dir, err := os.MkdirTemp("", "gt") //nolint:usetesting // a socket needs a short path
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var known proc.Sums
	takeTurns(b, []string{"none", "remembered", "read"}, []func(){
		startOnly(b, dir, func(*proc.Spec) {}), startOnly(b, dir, func(s *proc.Spec) { s.Sums = &known }),
		startOnly(b, dir, func(s *proc.Spec) { s.Sums = &proc.Sums{} }),
	})
}

// takeTurns runs functions by turns and reports the median of each, and of what
// each takes more than the first of the same turn.
func takeTurns(b *testing.B, names []string, functions []func()) {
	b.Helper()

	took, more := make([][]float64, len(names)), make([][]float64, len(names))
	for b.Loop() {
		first := 0.0
		for i, f := range functions {
			began := b.Elapsed()
			f()
			ms := float64(b.Elapsed()-began) / 1e6
			if i == 0 {
				first = ms
			}
			took[i], more[i] = append(took[i], ms), append(more[i], ms-first)
		}
	}
	for i, name := range names {
		b.ReportMetric(median(took[i]), name+"-ms")
		if i > 0 {
			b.ReportMetric(median(more[i]), name+"-more-ms")
		}
	}
}

// median returns the middle of a list that is not empty.
func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
