package main

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/lazy"
)

// touchFlags are the flags of agents touch.
type touchFlags struct {
	agentsFlags

	// state is the session's file; epoch is "new" or nothing.
	state, delivery, epoch string
}

// agentsTouchCommand tells which files apply to what a tool touched.
func (a *app) agentsTouchCommand() *cobra.Command {
	var f touchFlags
	c := &cobra.Command{
		Use:   "touch --state FILE PATH...",
		Short: "Tell which AGENTS.md files apply to paths that a tool touched, each once",
		Long: "Touch is for hosts that run no plugin: after a tool has read, listed or changed PATHs, it\n" +
			"tells which instruction files apply there that the session was not given yet, or that\n" +
			"changed, and the reminder to put before the model. FILE, which agents chain --state wrote,\n" +
			"remembers what was told. Relative PATHs are from --dir.\n\n" +
			"--epoch new begins a new epoch first, as after a compaction: everything may be told again.",
		Example: "  grapnel agents chain --state session.json --json\n" +
			"  grapnel agents touch --state session.json service/api/main.go --json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && f.epoch == "" {
				return usagef("touch needs at least one PATH; see: grapnel agents touch --help")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.agentsTouch(c.Context(), &f, args) },
	}
	f.register(c)
	flags := c.Flags()
	flags.StringVar(&f.state, "state", "", "the session's `FILE`")
	flags.StringVar(&f.delivery, "delivery", "", "how files are told: body, reminder or off (default the configuration's)")
	flags.StringVar(&f.epoch, "epoch", "", "new begins a new epoch before anything is touched")
	completePresets(c)
	return c
}

// agentsTouch touches and prints.
func (a *app) agentsTouch(ctx context.Context, f *touchFlags, paths []string) error {
	if f.epoch != "" && f.epoch != "new" {
		return usagef("--epoch %q: new is the only word that it takes", f.epoch)
	}
	f.config.Resolver.Delivery = option.Delivery(f.delivery)
	in, err := a.agentsInForce(&f.agentsFlags)
	if err != nil {
		return err
	}
	absolute := make([]string, len(paths))
	for i, path := range paths {
		if path == "" {
			return usagef("touch: an empty PATH is none")
		}
		absolute[i] = path
		if !filepath.IsAbs(path) {
			absolute[i] = filepath.Join(in.dir, path)
		}
	}
	var answer lazy.Touched
	root := ""
	err = changeState(ctx, f.state, func(s *lazy.State) {
		if f.epoch != "" {
			s.NewEpoch(s.Epoch + 1)
		}
		root, answer = s.Root, s.Touch(chain.OS{}, in.Options, absolute)
	})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(answer)
	}
	a.printTouched(&answer, root)
	return nil
}

// printTouched prints the files, and the reminder as it is put before the model.
func (a *app) printTouched(t *lazy.Touched, root string) {
	if len(t.Files) == 0 {
		a.println("nothing that the session was not given")
	}
	table := newTable("files", "file", "reason", ">bytes", "delivery")
	for _, f := range t.Files {
		table.add(f.Display, f.Reason, text.Thousands(int(f.SizeBytes)), f.Delivery)
	}
	a.printTable(table)
	if t.Pending > 0 {
		a.printf("\n%s for the next event\n", several(t.Pending, "file waits", "files wait"))
	}
	a.printAgentsProblems("diagnostics", root, t.Diagnostics)
	a.printReminder(t.Reminder)
}

// printReminder prints a reminder below a rule.
func (a *app) printReminder(text string) {
	if text != "" {
		a.printf("\n%s%s\n", rule("reminder"), text)
	}
}
