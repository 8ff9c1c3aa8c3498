package proc

import (
	"testing"
)

func BenchmarkReadProcesses(b *testing.B) {
	for b.Loop() {
		readProcesses(0)
	}
}
