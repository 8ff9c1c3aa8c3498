//go:build linux

// Soak runs the engine for a million dispatches over plugins of which a third
// misbehave at random, prints what it held at the start, in the middle and at the
// end, and fails if that differs. See package soak for what it does.
//
//	make soak SOAK='-dispatches 100000'
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/grapnelhq/grapnel/internal/soak"
)

// asPlugin is the argument by which the program starts itself as a plugin.
const asPlugin = "plugin"

func main() {
	if len(os.Args) > 1 && os.Args[1] == asPlugin {
		os.Exit(soak.Plugin(os.Args[:2], os.Args[2:], os.Exit))
	}
	os.Exit(run())
}

// run returns the exit status: 0 for a run that has passed, 1 for one that has
// not, 2 for one that could not be made.
func run() int {
	var o soak.Options
	flag.Uint64Var(&o.Dispatches, "dispatches", 1_000_000, "how many dispatches")
	flag.IntVar(&o.Plugins, "plugins", 20, "how many plugins, every third of them bad")
	flag.Uint64Var(&o.Seed, "seed", 1, "seed of what is declared and called")
	flag.DurationVar(&o.For, "for", 0, "end after this time at the latest")
	flag.IntVar(&o.Callers, "callers", 16, "how many call at once")
	asJSON := flag.Bool("json", false, "print the report as JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	self, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	o.Self, o.Progress = []string{self, asPlugin}, os.Stderr
	report, err := soak.Run(ctx, o)
	if err != nil {
		return fail(err)
	}
	if *asJSON {
		err = json.NewEncoder(os.Stdout).Encode(report)
	} else {
		err = report.Write(os.Stdout)
	}
	if err != nil {
		return fail(err)
	}
	if len(report.Problems) > 0 {
		return 1
	}
	return 0
}

func fail(err error) int {
	_, _ = fmt.Fprintln(os.Stderr, "soak:", err)
	return 2
}
