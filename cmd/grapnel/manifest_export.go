package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/grapnelhq/grapnel/internal/cli/logexport"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

type exportFlags struct {
	filterFlags

	Format  string `default:"jsonl" flag:"format"                                                        usage:"what to write: jsonl, csv (one row a section), in-toto (signed statements) or otlp (OTLP/JSON logs)" words:"jsonl|csv|in-toto|otlp"`
	KeyFile string `flag:"key-file" usage:"{FILE} with the private key of the log, for --format in-toto"`
}

func (a *app) manifestExport(ctx context.Context, f *exportFlags, _ []string) error {
	envelope, err := a.exportEnvelope(f)
	if err != nil {
		return err
	}
	return a.withStore(ctx, store.Options{ReadOnly: true}, func(s *openedStore) error { return a.exportTo(ctx, s, f, envelope) })
}

// exportEnvelope checks the flags, and returns the function that signs; nil for formats without signatures.
func (a *app) exportEnvelope(f *exportFlags) (envelope func(payloadType string, payload []byte) ([]byte, error), err error) {
	signed := f.Format == string(logexport.InToto)
	switch {
	case a.JSON && f.Format == string(logexport.CSV):
		return nil, usagef("--json and --format csv contradict each other")
	case !signed && f.KeyFile != "":
		return nil, usagef("--key-file is for --format in-toto alone")
	case !signed:
		return nil, nil
	}
	l, err := a.signingLog(f.KeyFile)
	if err != nil {
		return nil, err
	}
	return l.Envelope, nil
}

// The export bypasses the buffer of other results. A closed pipe is not an error.
func (a *app) exportTo(ctx context.Context, s *openedStore, f *exportFlags, envelope func(string, []byte) ([]byte, error)) error {
	out := bufio.NewWriterSize(a.stdout, 1<<16)
	w, err := logexport.New(logexport.Format(f.Format), out, logexport.Options{
		Usage:    func(id string) ([]manifest.Usage, error) { return s.Usage(ctx, id) },
		Envelope: envelope, Clean: a.cleaned(f.Format),
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
