package storetest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The environment of a test binary that runs as another program.
const (
	programName = "GRAPNEL_TEST_PROGRAM"
	programDSN  = "GRAPNEL_TEST_DSN"
	programArg  = "GRAPNEL_TEST_ARG"
)

// Programs are what a test binary does when started as another process, by name, with a database and an argument.
type Programs map[string]func(ctx context.Context, dsn, arg string) error

// Program returns the command that runs one of the test binary's own programs. It ends with the test.
func Program(tb testing.TB, name, dsn, arg string) *exec.Cmd {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), os.Args[0]) //nolint:gosec // the test binary itself
	cmd.Env = append(os.Environ(), programName+"="+name, programDSN+"="+dsn, programArg+"="+arg)
	cmd.Stderr = os.Stderr
	return cmd
}

// Follow runs a program to its end, and calls each with the number and the text of each line that it prints. What is cut
// off does not count.
func Follow(cmd *exec.Cmd, each func(n int, line string)) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n')
		if err != nil {
			return cmd.Wait()
		}
		each(n, strings.TrimSpace(line))
	}
}

// Run runs the program that this process was started as, for TestMain, and returns its exit
// code, or false if there is none.
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

// SkipShort skips, in short runs, a test that works alone through much data: the race detector
// has nothing to find in it.
func SkipShort(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("volume without concurrency: it runs without -short")
	}
}

// Long reports whether tests should take minutes (GRAPNEL_LONG=1).
func Long() bool { return os.Getenv("GRAPNEL_LONG") == "1" }
