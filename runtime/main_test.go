package runtime_test

import (
	"flag"
	"os"
	goruntime "runtime"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails the package when an engine leaves a goroutine behind. The test
// binary is also the plugins that the tests start, and a host that is killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asProgram {
		os.Exit(program(os.Args[2], os.Args[3:]))
	}
	_ = flag.Set("test.parallel", strconv.Itoa(2*goruntime.GOMAXPROCS(0))) // most parallel tests wait for processes
	goleak.VerifyTestMain(m)
}

// asProgram makes the test binary behave as another program: see program.
const asProgram = "-as-program"
