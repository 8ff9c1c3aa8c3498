package wire

import (
	"flag"
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(allWays{m})
}

// allWays runs the tests over gRPC alone and, but for measurements and fuzzing, over a lane, and over lines.
type allWays struct{ m *testing.M }

func (a allWays) Run() (code int) {
	for _, way = range []string{overGRPC, overLane, overLines} {
		if code = a.m.Run(); code != 0 || runtime.GOOS == "windows" || flag.Lookup("test.bench").Value.String() != "" || flag.Lookup("test.fuzz").Value.String() != "" {
			break
		}
	}
	return code
}
