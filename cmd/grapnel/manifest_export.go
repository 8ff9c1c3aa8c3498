package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/store"
)

// manifestExportCommand writes the log as it is stored.
func (a *app) manifestExportCommand() *cobra.Command {
	var f filterFlags
	c := &cobra.Command{
		Use:   "export",
		Short: "Write the kept manifests to standard output, as JSON lines",
		Long: "Export writes one manifest a line, oldest first: the canonical JSON that was stored and\n" +
			"that the hashes are over, with or without --json. It streams, so that a log of any size\n" +
			"can be exported. A line that could not be written whole is not written.",
		Example: "  grapnel manifest export --thread t1 >t1.jsonl",
		Args:    noArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withStore(c.Context(), store.Options{ReadOnly: true}, func(s *openedStore) error {
				return a.manifestExport(c.Context(), s, f.filter())
			})
		},
	}
	f.register(c)
	return c
}

// manifestExport writes past the buffer that other results wait in. A reader that
// goes away early has what it wanted.
func (a *app) manifestExport(ctx context.Context, s *openedStore, f store.Filter) error {
	out := bufio.NewWriterSize(a.stdout, 1<<16)
	progress := a.newTally("exporting: %s manifests")
	_, err := s.Export(ctx, &counted{out, progress, a.terminal}, f)
	progress.stop()
	if err == nil {
		err = out.Flush()
	}
	switch {
	case errors.Is(err, syscall.EPIPE):
		return nil
	case err != nil:
		return unable(fmt.Errorf("the export is not complete: %w", err))
	}
	return nil
}

// counted counts the lines that pass through it.
type counted struct {
	io.Writer

	tally    *tally
	terminal bool
}

// Write passes on, and counts the end of a line: each is written by itself. The hashes are
// over these bytes, so only a terminal gets them escaped.
func (c *counted) Write(p []byte) (int, error) {
	if len(p) == 1 && p[0] == '\n' {
		c.tally.add()
	}
	if !c.terminal {
		return c.Writer.Write(p)
	}
	if _, err := c.Writer.Write(escapeJSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
