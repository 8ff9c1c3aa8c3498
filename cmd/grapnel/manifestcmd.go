package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/surface"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// manifestCommand holds the audit: what was kept, what changed, who broke the
// cache, and whether the log is whole.
func (a *app) manifestCommand() *cobra.Command {
	return group("manifest", "The audit log: look at kept manifests, compare and verify them",
		a.manifestListCommand(), a.manifestShowCommand(), a.manifestAuditsCommand(), a.manifestDiffCommand(), a.manifestBlameCommand(),
		a.manifestVerifyCommand(), a.manifestExportCommand(), a.manifestPruneCommand(),
	)
}

// filterFlags say which manifests of the store are meant.
type filterFlags struct {
	workspace, thread string
}

// register adds the flags to a command that reads the store.
func (f *filterFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.workspace, "workspace", "", "only manifests of the workspace `ID` (default all)")
	flags.StringVar(&f.thread, "thread", "", "only manifests of the thread `ID` (default all)")
}

// filter is what the store takes.
func (f *filterFlags) filter() store.Filter {
	return store.Filter{Workspace: f.workspace, Thread: f.thread}
}

// about says whose manifests were looked for, as the end of a sentence.
func (f *filterFlags) about() string {
	s := ""
	if f.thread != "" {
		s += " of the thread " + strconv.Quote(f.thread)
	}
	if f.workspace != "" {
		s += " in the workspace " + strconv.Quote(f.workspace)
	}
	return s
}

// given reports whether anything was asked for.
func (f *filterFlags) given() bool { return f.workspace != "" || f.thread != "" }

// latest is the word for the newest manifest.
const latest = surface.Latest

// isStored reports whether an argument names a manifest of the store. All else is
// a file: a file whose name looks like an id is named with its folder, as in
// ./01H. What an argument means thus never depends on what lies in the working
// folder.
func isStored(arg string) bool { return surface.IsManifestID(arg) }

// find returns a manifest by its id, the beginning of one, or "latest".
func (s *openedStore) find(ctx context.Context, id string, f store.Filter) (*manifest.Manifest, error) {
	return surface.Find(ctx, s, id, f)
}

// notThere makes of "there is none" the answer "no", and of other failures what
// they are.
func notThere(err error) error {
	if store.HasCode(err, store.CodeNotFound) {
		return refused(err)
	}
	return storeError(err)
}

// completeManifests completes ids: those of the newest manifests, with what tells
// one from another.
func (a *app) completeManifests(most int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		words := []string{latest + "\tthe newest"}
		err := a.withStore(c.Context(), store.Options{ReadOnly: true}, func(s *openedStore) error {
			list, err := s.List(c.Context(), store.Filter{Limit: surface.ListLimit})
			for i := len(list) - 1; i >= 0; i-- {
				x := &list[i]
				words = append(words, x.ManifestID+"\t"+clock(x.CreatedAt)+" "+clean(x.ThreadID)+" "+clean(x.TurnID))
			}
			return err
		})
		if err != nil && errors.Is(err, context.Canceled) {
			return nil, cobra.ShellCompDirectiveError
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}
