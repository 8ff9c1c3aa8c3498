package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/lazy"
)

// agentsChainCommand shows the chain of a folder.
func (a *app) agentsChainCommand() *cobra.Command {
	var f agentsFlags
	var state string
	var textOnly bool
	c := &cobra.Command{
		Use:   "chain",
		Short: "Show the AGENTS.md files that apply to a folder, what was kept of each, and why",
		Long: "Chain shows the instruction files that a session in a folder gets, from the root of the\n" +
			"source tree down: how many bytes of each are in the text, what was cut or left out and\n" +
			"why, and the limits. --text prints the text itself, byte for byte, and nothing else.\n\n" +
			"Options come from the flags, else from the environment (GRAPNEL_AGENTS_…), else from the\n" +
			"plugin agentsdoc of the configuration, else from the preset. A flag that may be repeated\n" +
			"replaces the whole list. In the preset default the text is bounded in characters too: by\n" +
			"the budget of the subscription agentsdoc.prompt.\n\n" +
			"--state FILE also writes what a session has to remember, for touch and resume.",
		Example: "  grapnel agents chain --dir ./service\n" +
			"  grapnel agents chain --preset codex --text\n" +
			"  grapnel agents chain --fallback CLAUDE.md --json",
		Args: noArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return a.agentsChain(c.Context(), &f, state, textOnly) },
	}
	f.register(c)
	f.registerChain()
	c.Flags().StringVar(&state, "state", "", "write what a session has to remember to `FILE`")
	c.Flags().BoolVar(&textOnly, "text", false, "print the text alone, as it is")
	completePresets(c)
	return c
}

// agentsChain resolves, renders and prints.
func (a *app) agentsChain(ctx context.Context, f *agentsFlags, state string, textOnly bool) error {
	if textOnly && a.json {
		return usagef("--text and --json contradict each other: the JSON has the text in it")
	}
	in, err := a.agentsInForce(f)
	if err != nil {
		return err
	}
	c := chain.Resolve(chain.OS{}, in.dir, in.Options)
	r := in.render(c)
	if state != "" {
		if err := beginState(ctx, state, lazy.Begin(0, c, r)); err != nil {
			return err
		}
	}
	report := chain.NewReport(c, r)
	switch {
	case a.json:
		return a.printJSON(report)
	case textOnly:
		a.printf("%s", report.Text)
	default:
		a.printChain(&report, &r, in)
	}
	return nil
}
