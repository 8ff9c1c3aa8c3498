package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/surface"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// manifestListCommand shows the newest manifests, newest last: on a terminal the
// end is what is seen.
func (a *app) manifestListCommand() *cobra.Command {
	var f filterFlags
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List the newest kept manifests",
		Long:  "List shows the newest manifests of the store, newest last, and how many older ones there\nare.",
		Example: "  grapnel manifest list --thread t1\n" +
			"  grapnel manifest list --limit 0 --json",
		Args: noArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef("--limit %d: give a number of manifests, or 0 for all", limit)
			}
			return a.withStore(c.Context(), store.Options{ReadOnly: true}, func(s *openedStore) error {
				return storeError(a.manifestList(c.Context(), s, &f, limit))
			})
		},
	}
	f.register(c)
	c.Flags().IntVar(&limit, "limit", surface.ListLimit, "list the newest `N`; 0 lists all")
	return c
}

// manifestList prints one row per manifest.
func (a *app) manifestList(ctx context.Context, s *openedStore, f *filterFlags, limit int) error {
	filter := f.filter()
	filter.Limit = limit
	list, err := s.List(ctx, filter)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(surface.ManifestList{Manifests: list})
	}
	older := 0
	if limit > 0 && len(list) == limit {
		all, err := s.Count(ctx, filter)
		if err != nil {
			return err
		}
		older = all - len(list)
	}
	a.printManifestList(list, f, older)
	return nil
}

// printManifestList prints the rows, and what is not among them.
func (a *app) printManifestList(list []manifest.Index, f *filterFlags, older int) {
	if len(list) == 0 {
		a.printf("there are no manifests%s\n", f.about())
		return
	}
	t := newTable("", "manifest", "created", "workspace", "thread", ">seq", "turn", "profile", "prompt")
	for i := range list {
		x := &list[i]
		t.add(x.ManifestID, clock(x.CreatedAt), x.WorkspaceID, x.ThreadID, x.Seq, x.TurnID, x.Profile, x.FingerprintFull)
	}
	a.printTable(t)
	if older > 0 {
		a.printf("\n%s older %s not shown; --limit 0 shows all\n", text.Thousands(older), plural(older, "manifest is", "manifests are"))
	}
}
