package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// manifestBlame is the JSON of manifest blame.
type manifestBlame struct {
	Turns []manifest.BlamedTurn `json:"turns" jsonschema:"one entry per kept manifest, oldest first"`
}

// manifestBlameCommand names, turn by turn, who broke the prompt's prefix.
func (a *app) manifestBlameCommand() *cobra.Command {
	var f filterFlags
	c := &cobra.Command{
		Use:   "blame --thread ID",
		Short: "Name, turn by turn, the section that broke the provider's prompt cache",
		Long: "Blame walks a thread and compares each prompt with the one before it. It names the first\n" +
			"section that differs (changed, added, moved or removed), its owner, and how many tokens\n" +
			"stood from there on and had to be read anew. Behind a compaction that is expected.",
		Example: "  grapnel manifest blame --thread t1",
		Args:    noArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.thread == "" {
				return usagef("blame needs a --thread; see: grapnel manifest list")
			}
			return a.withStore(c.Context(), store.Options{ReadOnly: true}, func(s *openedStore) error {
				progress := a.newTally("reading: %s manifests")
				rows, err := s.blame(c.Context(), f.filter(), progress.add)
				progress.stop()
				if err != nil {
					return storeError(err)
				}
				if len(rows) == 0 {
					return refused(fmt.Errorf("there are no manifests%s; see: grapnel manifest list", f.about()))
				}
				return a.printBlame(rows, &f)
			})
		},
	}
	f.register(c)
	return c
}

// blamedRow is one turn with what else its manifest says.
type blamedRow struct {
	manifest.BlamedTurn

	index manifest.Index
}

// blame compares each manifest with the one before it, and holds no more than
// those two: a thread may have any number of turns. Each one is told to seen.
func (s *openedStore) blame(ctx context.Context, f store.Filter, seen func()) ([]blamedRow, error) {
	var rows []blamedRow
	last := map[string]*manifest.Manifest{} // by workspace
	for r, err := range s.Records(ctx, f) {
		if err != nil {
			return nil, err
		}
		m, err := manifest.Parse(r.Data)
		if err != nil {
			return nil, fmt.Errorf("manifest %s is not readable: %w; see: grapnel manifest verify", r.Index.ManifestID, oneLine{err})
		}
		pair := []*manifest.Manifest{&m}
		if before := last[m.WorkspaceID]; before != nil {
			pair = []*manifest.Manifest{before, &m}
		}
		blamed := manifest.Blame(pair)
		rows = append(rows, blamedRow{blamed[len(blamed)-1], m.Index()})
		last[m.WorkspaceID] = &m
		seen()
	}
	return rows, nil
}
