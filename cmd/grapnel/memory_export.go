package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
)

// memoryExported is the JSON of memory export with a FILE.
type memoryExported struct {
	File       string   `json:"file"`
	Items      int      `json:"items"      jsonschema:"how many memories were written, those included that others took the place of"`
	Workspaces []string `json:"workspaces"`
}

// memoryExportCommand writes memories as JSON lines.
func (a *app) memoryExportCommand() *cobra.Command {
	var f memoryFlags
	c := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write memories as JSON lines to a new FILE, or to standard output",
		Long: "Export writes one memory a line, workspace by workspace, the oldest first, with those that\n" +
			"others took the place of. Import reads it. It streams, so that any number can be exported.\n" +
			"FILE is made for this user alone, and must not be there yet; one that could not be written\n" +
			"whole is removed again.",
		Example: "  grapnel memory export memories.jsonl\n" +
			"  grapnel memory export --workspace acme | jq -r .text",
		Args: atMost(1, "export takes at most one FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] != "-" {
				return a.memoryExportTo(c.Context(), &f, args[0])
			}
			_, err := a.memoryExport(c.Context(), &f, a.stdout)
			return err
		},
	}
	f.registerWorkspace(c)
	return c
}

// memoryExport writes past the buffer that other results wait in. A reader that goes
// away early has what it wanted.
func (a *app) memoryExport(ctx context.Context, f *memoryFlags, to io.Writer) (memoryExported, error) {
	done := memoryExported{Workspaces: []string{}}
	place, workspaces, err := a.survey(ctx, f)
	if err != nil || len(workspaces) == 0 {
		return done, err
	}
	out := bufio.NewWriterSize(to, 1<<16)
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	progress := a.newTally("exporting: %s memories")
	defer progress.stop()
	err = a.withMemory(ctx, place, itemstore.Options{ReadOnly: true}, func(s *itemstore.Store) error {
		for _, workspace := range workspaces {
			err := s.Export(ctx, itemstore.View{WorkspaceID: workspace, AllScopes: true}, func(i itemstore.Item) error {
				done.Items++
				progress.add()
				line.Reset()
				if err := enc.Encode(&i); err != nil {
					return err
				}
				_, err := out.Write(escapeJSON(line.Bytes()))
				return err
			})
			if err != nil {
				return err
			}
			done.Workspaces = append(done.Workspaces, workspace)
		}
		return out.Flush()
	})
	switch {
	case errors.Is(err, syscall.EPIPE):
		return done, nil
	case err != nil:
		return done, unable(fmt.Errorf("the export is not complete: %w", err))
	}
	return done, nil
}

// memoryExportTo writes a file, and says what is in it.
func (a *app) memoryExportTo(ctx context.Context, f *memoryFlags, name string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return usagef("%s is there already; name a new FILE", name)
	case err != nil:
		return usagef("%s: %w", name, unwrapPath(err))
	}
	done, err := a.memoryExport(ctx, f, file)
	if closed := file.Close(); err == nil && closed != nil {
		err = unable(closed)
	}
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	done.File = name
	if a.json {
		return a.printJSON(done)
	}
	a.printf("wrote %s of %d %s to %s\n", memories(done.Items), len(done.Workspaces), plural(len(done.Workspaces), "workspace", "workspaces"), clean(name))
	return nil
}
