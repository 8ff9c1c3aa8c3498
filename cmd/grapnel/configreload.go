package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/gateway"
)

// reloadResult is the JSON of config reload.
type reloadResult struct {
	Target string `json:"target" jsonschema:"where the gateway is called"`
	gateway.Reload
}

// configReloadCommand has a running gateway read its files again.
func (a *app) configReloadCommand() *cobra.Command {
	var f reachFlags
	c := &cobra.Command{
		Use:   "reload",
		Short: "Have a running gateway read its configuration and tokens again",
		Long: "Reload has the gateway read its configuration and its token file again, and puts them in\n" +
			"force, all or nothing. Plugins whose declaration did not change keep their process, and turns\n" +
			"on their way end with what they began with. A file with a mistake, or with another value for\n" +
			"what only a restart changes, changes nothing: it is shown with its place, and exit code 1.\n" +
			"Without --url or --socket it is the one gateway of yours that runs on this machine. With\n" +
			"tokens it takes one with the right admin. SIGHUP does the same.",
		Example: "  grapnel config reload\n" +
			"  grapnel config reload --url http://127.0.0.1:7433 --json",
		Args: noArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return a.configReload(c.Context(), &f) },
	}
	f.register(c)
	return c
}

// configReload asks and prints.
func (a *app) configReload(ctx context.Context, f *reachFlags) error {
	var result reloadResult
	target, err := f.ask(ctx, "config/reload", nil, &result.Reload)
	if err != nil {
		return err
	}
	result.Target = target
	switch {
	case a.json:
		err = a.printJSON(result)
	case result.OK:
		a.printf("%s\n", reloadedText(&result.Reload))
	}
	switch {
	case err != nil || result.OK:
		return err
	case a.json:
		return answerNo()
	}
	return refused(fmt.Errorf("nothing was changed, what was in force stays: %s", strings.TrimSpace(reloadError(&result.Reload))))
}
