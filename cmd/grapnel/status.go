package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/text"
)

// statusTime bounds the question: a gateway that does not answer it is not well.
const statusTime = 10 * time.Second

// statusCommand asks a running gateway how it is.
func (a *app) statusCommand() *cobra.Command {
	var f reachFlags
	c := &cobra.Command{
		Use:   "status",
		Short: "Show how a running gateway is: plugins, store, connections",
		Long: "Status asks a running gateway for its plugins (state, restarts, last error), its store,\n" +
			"connections and counters. Without --url or --socket it is the one gateway of yours that\n" +
			"runs on this machine. With tokens it takes one with the right admin.\n\n" +
			"Exit code 3 says that there is none, or that it does not answer.",
		Example: "  grapnel status\n" +
			"  grapnel status --url http://127.0.0.1:7433 --json",
		Args: noArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return a.status(c.Context(), &f) },
	}
	f.register(c)
	return c
}

// statusResult is the JSON of status.
type statusResult struct {
	Target string `json:"target" jsonschema:"where the gateway is called"`
	gateway.Status
}

// status asks and prints.
func (a *app) status(ctx context.Context, f *reachFlags) error {
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
	return nil
}

// printStatus prints it for people.
func (a *app) printStatus(r *statusResult) {
	a.printf("%s", rule("gateway"))
	t := newTable("")
	t.add("target", r.Target)
	t.add("version", r.Version)
	t.add("up", upText(r.UptimeSeconds)+", since "+clock(r.StartedAt))
	t.add("store", r.Store)
	t.add("connections", fmt.Sprintf("%s, which watch %s workspaces", text.Thousands(r.Connections), text.Thousands(r.Watchers)))
	if r.Seq == nil {
		t.add("changes", "the database has not been reached yet")
	} else {
		t.add("changes", fmt.Sprintf("told up to %d", *r.Seq))
	}
	s := &r.Stats
	t.add("manifests", fmt.Sprintf("%d kept, %d not kept, of which %d late", s.ManifestsKept, s.ManifestsNotKept, s.ManifestsKeptLate))
	if s.SinkHanging > 0 {
		t.add("hanging", fmt.Sprintf("%d calls of the store were given up and have not returned", s.SinkHanging))
	}
	a.printTable(t)
	a.printPlugins("plugins", r.Plugins)
}

// upText is a time since, as exact as is of use.
func upText(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < 24*time.Hour:
		return d.Round(time.Minute).String()
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}
