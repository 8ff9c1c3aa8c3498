package wire

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

// pluginSocket is the variable that makes the test binary a plugin: it then
// serves testPlugin on the socket that the variable names.
const pluginSocket = "GRAPNEL_WIRE_TEST_SOCKET"

func TestMain(m *testing.M) {
	if path := os.Getenv(pluginSocket); path != "" {
		if err := servePluginProcess(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
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
