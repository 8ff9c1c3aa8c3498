//go:build unix

package runtime_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// aloneVariable is set in a process that runs one test of this binary.
const aloneVariable = "GRAPNEL_TEST_ALONE"

// alone runs a test that counts what its whole process has open, beside others: in a process of
// its own. It returns false in that process.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneVariable) != "" {
		return false
	}
	t.Parallel()
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^") + "$"
	args := []string{"-test.run=" + pattern, "-test.v", "-test.timeout=5m"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), aloneVariable+"=1", "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	switch text := string(out); {
	case err != nil:
		t.Errorf("%v\n%s", err, text)
	case strings.Contains(text, "--- SKIP: "+t.Name()+" "):
		t.Skip(text)
	case !strings.Contains(text, "--- PASS: "+t.Name()+" "):
		t.Errorf("it did not run:\n%s", text)
	}
	return true
}
