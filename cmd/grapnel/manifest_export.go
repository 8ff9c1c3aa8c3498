package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/logexport"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/translog"
)

type exportFlags struct {
	filterFlags
	format, keyFile string
}

func (a *app) manifestExportCommand() *cobra.Command {
	var f exportFlags
	c := newCommand("export", "Write the kept manifests to standard output, as JSON lines or in a format of other tools", noArgs(),
		func(c *cobra.Command, _ []string) error {
			envelope, err := a.exportOptions(&f)
			if err != nil {
				return err
			}
			return a.withStore(c.Context(), store.Options{ReadOnly: true}, func(s *openedStore) error {
				return a.manifestExport(c.Context(), s, &f, envelope)
			})
		})
	f.register(c)
	c.Flags().StringVar(&f.format, "format", string(logexport.JSONL), "what to write: jsonl, csv (one row a section), in-toto (signed statements) or otlp (OTLP/JSON logs)")
	c.Flags().StringVar(&f.keyFile, "key-file", "", "`FILE` with the private key of the log, for --format in-toto")
	return c
}

// exportOptions checks the flags, and returns what signs.
func (a *app) exportOptions(f *exportFlags) (envelope func(payloadType string, payload []byte) ([]byte, error), err error) {
	signed := f.format == string(logexport.InToto)
	switch {
	case !slices.Contains(logexport.Formats(), logexport.Format(f.format)):
		return nil, usagef("--format %q: use jsonl, csv, in-toto or otlp", f.format)
	case a.json && f.format == string(logexport.CSV):
		return nil, usagef("--json and --format csv contradict each other")
	case !signed && f.keyFile != "":
		return nil, usagef("--key-file is for --format in-toto alone")
	case !signed:
		return nil, nil
	}
	key, err := a.keyIn("key-file", f.keyFile)
	if err != nil {
		return nil, err
	}
	l, err := translog.NewLog(key)
	if err != nil {
		return nil, usagef("--key-file %s: %w", f.keyFile, err)
	}
	return l.Envelope, nil
}

// The export bypasses the buffer of other results. A closed pipe is not an error.
func (a *app) manifestExport(ctx context.Context, s *openedStore, f *exportFlags, envelope func(string, []byte) ([]byte, error)) error {
	out := bufio.NewWriterSize(a.stdout, 1<<16)
	w, err := logexport.New(logexport.Format(f.format), out, logexport.Options{
		Usage:    func(id string) ([]manifest.Usage, error) { return s.Usage(ctx, id) },
		Envelope: envelope, Clean: a.cleaned(f.format),
	})
	if err != nil {
		return err
	}
	progress := a.startCount("exporting: %s manifests")
	for r, failed := range s.Records(ctx, f.filter()) {
		if err = failed; err == nil {
			err = w.Write(r)
		}
		if err != nil {
			break
		}
		progress.add()
	}
	if err == nil {
		err = errors.Join(w.Close(), out.Flush())
	}
	progress.stop()
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return unable(fmt.Errorf("the export is not complete: %w", err))
}

// cleaned makes lines harmless to a terminal. Elsewhere they stay as they are: hashes and signatures are over these bytes.
func (a *app) cleaned(format string) func([]byte) []byte {
	switch {
	case !a.terminal:
		return nil
	case format == string(logexport.CSV):
		return func(rows []byte) []byte { return []byte(printable(string(rows))) }
	}
	return escapeJSON
}
