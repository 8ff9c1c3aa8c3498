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
	goleak.VerifyTestMain(bothWays{m})
}

// bothWays runs the tests over gRPC alone and, but for measurements and fuzzing, over a lane.
type bothWays struct{ m *testing.M }

func (b bothWays) Run() int {
	code := b.m.Run()
	if laned = runtime.GOOS != "windows"; code != 0 || !laned || flag.Lookup("test.bench").Value.String() != "" || flag.Lookup("test.fuzz").Value.String() != "" {
		return code
	}
	return b.m.Run()
}
