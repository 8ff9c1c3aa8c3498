// Grapnel is the command line of the hook runtime: it compiles prompts, runs
// single phases, shows plans, and looks after plugins.
//
// It holds wiring, flags and printing, and no behaviour of its own: what a
// command does is done by the packages that it calls. Results go to standard
// output, for people or, with --json, for programs in the shapes that "grapnel
// schema" prints. Everything else goes to standard error.
//
// Start reading at [run]. Each command has a file of its own; how its result
// looks on paper is in print_*.go.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/grapnelhq/grapnel/builtin"
)

// main is three programs in one: a plugin's process, which never comes back from
// builtin.Main, or the command line.
func main() {
	builtin.Main() // does not return in a plugin's process
	os.Exit(mainCode())
}

// mainCode runs the command line of this process.
func mainCode() int {
	// A reader that goes away early is no reason to die: with a handler, writing
	// fails instead.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return run(context.Background(), os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
}

// streams are where a command reads and writes.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}
