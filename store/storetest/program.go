package storetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// The environment of a test binary that is started as another program.
const (
	programName = "GRAPNEL_TEST_PROGRAM"
	programDSN  = "GRAPNEL_TEST_DSN"
	programArg  = "GRAPNEL_TEST_ARG"
)

// Programs are what a test binary is when it is started as another process, which can
// be killed: by name, what it does with a database and an argument.
type Programs map[string]func(ctx context.Context, dsn, arg string) error

// Program returns the command that runs one of the test binary's own programs. It
// ends with the test.
func Program(tb testing.TB, name, dsn, arg string) *exec.Cmd {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), os.Args[0]) //nolint:gosec // the test binary itself
	cmd.Env = append(os.Environ(), programName+"="+name, programDSN+"="+dsn, programArg+"="+arg)
	cmd.Stderr = os.Stderr
	return cmd
}

// Run runs the program that this process was started as, for TestMain, and returns its
// exit code. False says that it was started as none.
func (p Programs) Run(ctx context.Context) (code int, ok bool) {
	name, ok := os.LookupEnv(programName)
	if !ok {
		return 0, false
	}
	run, known := p[name]
	if !known {
		fmt.Fprintf(os.Stderr, "there is no program %q\n", name)
		return 4, true
	}
	if err := run(ctx, os.Getenv(programDSN), os.Getenv(programArg)); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 3, true
	}
	return 0, true
}

// Long says whether tests are to do much more than in an ordinary run
// (GRAPNEL_LONG=1), which takes minutes.
func Long() bool { return os.Getenv("GRAPNEL_LONG") == "1" }
