package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/store"
)

// manifestPruneCommand is retention. It is the only command that takes anything
// out of the log.
func (a *app) manifestPruneCommand() *cobra.Command {
	var older string
	var keep int
	c := &cobra.Command{
		Use:   "prune",
		Short: "Take old manifests out of the log, so that what stays can be verified",
		Long: "Prune takes manifests away that are older than --older, or that are not among the newest\n" +
			"--keep of their thread, audit events by the same rules, and kept texts that nothing names any\n" +
			"more. The sign-off of each\n" +
			"thread then begins with the first manifest that stays: verify finds it whole as before.\n" +
			"Nothing else changes the log, and nothing brings back what was taken away.",
		Example: "  grapnel manifest prune --older 90d\n" +
			"  grapnel manifest prune --older 36h --keep 1000",
		Args: noArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := retention(c.Flags().Changed("keep"), older, keep)
			if err != nil {
				return err
			}
			return a.withStore(c.Context(), store.Options{}, func(s *openedStore) error {
				return a.manifestPrune(c.Context(), s, r)
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&older, "older", "", "take away what is older than the `DURATION`, such as 90d, 36h or 1d12h")
	flags.IntVar(&keep, "keep", 0, "take away what is not among the newest `N` of its thread")
	return c
}

// manifestPrune takes away and tells how much that was, also when not all of it
// could be done.
func (a *app) manifestPrune(ctx context.Context, s *openedStore, r store.Retention) error {
	done, err := s.Prune(ctx, r, time.Now())
	switch {
	case err != nil && done == (store.Pruned{}):
		return storeError(err)
	case a.json:
		if err := a.printJSON(done); err != nil {
			return err
		}
	default:
		a.printf("took away %s, %s%s, %s%s and %s%s\n", manifests(done.Manifests), text.Thousands(done.Texts), plural(done.Texts, " kept text", " kept texts"),
			text.Thousands(done.Audits), plural(done.Audits, " audit event", " audit events"), text.Thousands(done.States), plural(done.States, " state of a plugin", " states of plugins"))
	}
	return storeError(err)
}

// retention reads what may go. Without a rule everything would stay: that is
// most likely a mistake.
func retention(keepGiven bool, older string, keep int) (store.Retention, error) {
	r := store.Retention{Count: keep}
	switch {
	case older == "" && !keepGiven:
		return r, usagef("prune needs --older DURATION or --keep N; without a rule nothing goes")
	case keepGiven && keep < 1:
		return r, usagef("--keep %d: give the number of manifests that stay of each thread, 1 or more", keep)
	case older == "":
		return r, nil
	}
	age, err := parseAge(older)
	if err != nil || age <= 0 {
		return r, usagef("--older %q: give a time such as 90d, 36h or 1d12h", older)
	}
	r.Age = age
	return r, nil
}

// parseAge is time.ParseDuration with days of 24 hours in front.
func parseAge(s string) (time.Duration, error) {
	number, rest, found := strings.Cut(s, "d")
	if !found {
		return time.ParseDuration(s)
	}
	days, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("days: %w", err)
	}
	age := time.Duration(days) * 24 * time.Hour
	if rest == "" {
		return age, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 || age+more < age {
		return 0, fmt.Errorf("behind the days: %q", rest)
	}
	return age + more, nil
}
