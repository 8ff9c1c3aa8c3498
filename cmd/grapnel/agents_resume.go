package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/lazy"
)

// agentsResumeCommand tells what changed while a session was left.
func (a *app) agentsResumeCommand() *cobra.Command {
	var f agentsFlags
	var state string
	c := &cobra.Command{
		Use:   "resume --state FILE",
		Short: "Tell what changed of a session's AGENTS.md files since it was left",
		Long: "Resume compares what a session was told, as FILE remembers it, with the chain of the\n" +
			"working folder as it is now: the folder, the root, the markers, and the files. It tells\n" +
			"what differs and the reminder to put before the model, and goes on from there: FILE\n" +
			"then has the new state. That nothing changed is an answer, too.",
		Example: "  grapnel agents resume --state session.json\n" +
			"  grapnel agents resume --state session.json --dir ./other --json",
		Args: noArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return a.agentsResume(c.Context(), &f, state) },
	}
	f.register(c)
	c.Flags().StringVar(&state, "state", "", "the session's `FILE`")
	completePresets(c)
	return c
}

// agentsResume compares and prints.
func (a *app) agentsResume(ctx context.Context, f *agentsFlags, state string) error {
	in, err := a.agentsInForce(f)
	if err != nil {
		return err
	}
	var answer lazy.Resumed
	err = changeState(ctx, state, func(s *lazy.State) {
		answer = s.Resume(chain.Resolve(chain.OS{}, in.dir, in.Options))
	})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(answer)
	}
	a.printResumed(&answer)
	return nil
}

// printResumed prints the changes, and the reminder as it is put before the model.
func (a *app) printResumed(r *lazy.Resumed) {
	if !r.Changed {
		a.println("nothing has changed since the session was left")
	}
	t := newTable("changes", "what", "path", "from", "to", "told")
	for _, c := range r.Changes {
		told := "yes"
		if !c.Told {
			told = "counted"
		}
		from, to := c.From, c.To
		if c.Path != "" {
			from, to = shortSum(from), shortSum(to) // of files they are hashes
		}
		t.add(c.What, inTree(r.Root, c.Path), from, to, told)
	}
	a.printTable(t)
	a.printReminder(r.Reminder)
}
