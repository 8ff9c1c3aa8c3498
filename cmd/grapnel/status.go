package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/gateway"
)

// statusTime bounds the question: a gateway that does not answer it is not well.
const statusTime = 10 * time.Second

// statusCommand asks a running gateway how it is.
func (a *app) statusCommand() *cobra.Command {
	var f reachFlags
	var hooks bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Show how a running gateway is: plugins, hooks, who is in trouble and why",
		Long: "Status asks a running gateway for its plugins (state, restarts, last error, how long they take,\n" +
			"memory), what is in trouble, why, and what may help, its store, connections and counters; with\n" +
			"--hooks also for each hook. Without --url or --socket it is the one gateway of yours that runs\n" +
			"on this machine. With tokens it takes one with the right admin.\n\n" +
			"Exit code 3 says that there is none, or that it does not answer. Trouble of plugins is an answer:\n" +
			"the exit code is 0.",
		Example: "  grapnel status\n" +
			"  grapnel status --hooks\n" +
			"  grapnel status --url http://127.0.0.1:7433 --json",
		Args: noArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return a.status(c.Context(), &f, hooks) },
	}
	f.register(c)
	c.Flags().BoolVar(&hooks, "hooks", false, "show every hook and phase too")
	return c
}

// statusResult is the JSON of status.
type statusResult struct {
	Target string `json:"target" jsonschema:"where the gateway is called"`
	gateway.Status
}

// status asks and prints.
func (a *app) status(ctx context.Context, f *reachFlags, hooks bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, statusTime, fmt.Errorf("no answer within %s", statusTime))
	defer cancel()
	r, err := f.reach(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // everything was answered
	result := statusResult{Target: r.target}
	if err := r.Call(ctx, "status", nil, &result.Status); err != nil {
		return r.failed(err)
	}
	if a.json {
		return a.printJSON(result)
	}
	a.printStatus(&result)
	if hooks {
		a.printHooks(&result)
	}
	return nil
}
