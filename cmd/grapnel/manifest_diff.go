package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// manifestDiffCommand compares two manifests. Files are taken as well as ids, so
// that a turn of another machine can be compared with one that was kept.
func (a *app) manifestDiffCommand() *cobra.Command {
	var f filterFlags
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two manifests: sections, granted budgets, policies and tools",
		Long: "Diff says what the later manifest B has that the earlier A has not: sections added,\n" +
			"removed, moved, changed and re-owned, granted budgets, policies and tools. A and B are\n" +
			"ids of the store, which may be shortened, the word latest, or files with a manifest or\n" +
			"with what compile --json prints. A file whose name could be an id is written ./NAME.\n\n" +
			"Exit code 1 says that they differ, 3 that one of them could not be had.",
		Example: "  grapnel manifest diff 01JD1 latest\n" +
			"  grapnel compile --json >now.json; grapnel manifest diff latest now.json",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("diff needs two manifests: ids, latest, or files; see: %s --help", c.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: a.completeManifests(2),
		RunE: func(c *cobra.Command, args []string) error {
			var both [2]*manifest.Manifest
			for i, arg := range args {
				var err error
				if both[i], err = a.manifestNamed(c.Context(), arg, f.filter()); err != nil {
					return err
				}
			}
			return a.manifestDiff(both[0], both[1])
		},
	}
	f.register(c)
	return c
}

// manifestNamed returns the manifest that an argument names: one of the store, or
// of a file. That there is none is no answer to a question about two.
func (a *app) manifestNamed(ctx context.Context, arg string, f store.Filter) (*manifest.Manifest, error) {
	if !isStored(arg) {
		return a.readManifest("", arg)
	}
	var m *manifest.Manifest
	err := a.withStore(ctx, store.Options{ReadOnly: true}, func(s *openedStore) error {
		var err error
		m, err = s.find(ctx, arg, f)
		return storeError(err)
	})
	return m, err
}

// manifestDiff prints the differences; the exit code says whether there are any.
func (a *app) manifestDiff(from, to *manifest.Manifest) error {
	d := manifest.Diff(from, to)
	if a.json {
		if err := a.printJSON(d); err != nil {
			return err
		}
	} else {
		a.printDiff(from, to, &d)
	}
	if !d.Same {
		return answerNo()
	}
	return nil
}
