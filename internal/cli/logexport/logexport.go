// Package logexport writes the records of a log in formats that other tools read, one record at a time, so that a log
// of any size can be exported. [New] makes a [Writer].
//
// Stability: internal.
package logexport

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"

	"github.com/grapnelhq/grapnel/manifest"
)

// Format is a format of exports.
type Format string

// The formats.
const (
	JSONL  Format = "jsonl"   // the canonical JSON that was hashed, one record a line
	CSV    Format = "csv"     // one row a section
	InToto Format = "in-toto" // an in-toto statement in a signed DSSE envelope, one record a line
	OTLP   Format = "otlp"    // OTLP/JSON log data, one record a line
)

// Formats returns all formats.
func Formats() []Format { return []Format{JSONL, CSV, InToto, OTLP} }

// Options are what some formats need.
type Options struct {
	// Usage returns the reports about a manifest, newest last. OTLP and InToto need it.
	Usage func(manifestID string) ([]manifest.Usage, error)
	// Envelope signs a payload and returns the envelope, one line of JSON. InToto needs it.
	Envelope func(payloadType string, payload []byte) ([]byte, error)
	// Clean changes the lines of a record before they are written; nil leaves them as they are.
	Clean func(lines []byte) []byte
}

// Writer writes records, made by [New].
type Writer struct {
	w     io.Writer
	o     Options
	buf   bytes.Buffer
	lines func(r manifest.Record) error // writes to buf
}

// New returns a writer of a format.
func New(f Format, to io.Writer, o Options) (*Writer, error) {
	w := &Writer{w: to, o: o}
	switch f {
	case JSONL:
		w.lines = w.line(func(r manifest.Record) ([]byte, error) { return r.Data, nil })
	case CSV:
		t := csv.NewWriter(&w.buf)
		w.lines = func(r manifest.Record) error { return rows(t, r) }
		return w, writeRow(t, Columns())
	case InToto:
		w.lines = w.line(o.envelope)
	case OTLP:
		w.lines = w.line(o.logData)
	default:
		return nil, fmt.Errorf("there is no format %q", f)
	}
	return w, nil
}

func (w *Writer) line(encode func(r manifest.Record) ([]byte, error)) func(manifest.Record) error {
	return func(r manifest.Record) error {
		data, err := encode(r)
		w.buf.Write(data)
		w.buf.WriteByte('\n')
		return err
	}
}

// Write writes a record and keeps nothing of it.
func (w *Writer) Write(r manifest.Record) error {
	if err := w.lines(r); err != nil {
		return fmt.Errorf("the manifest %s cannot be written: %w", r.Index.ManifestID, err)
	}
	return w.Close()
}

// Close writes what stands in every file, if there was no record to write it with.
func (w *Writer) Close() error {
	data := w.buf.Bytes()
	w.buf.Reset()
	if len(data) == 0 {
		return nil
	}
	if w.o.Clean != nil {
		data = w.o.Clean(data)
	}
	_, err := w.w.Write(data)
	return err
}
