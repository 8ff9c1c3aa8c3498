package wire

import (
	"fmt"
	"os"
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
	goleak.VerifyTestMain(m)
}
