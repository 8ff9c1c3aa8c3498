package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/config"
	recording "github.com/grapnelhq/grapnel/record"
	"github.com/grapnelhq/grapnel/runtime"
)

// recordFlags say where the exchanges with plugins are recorded. They are the same
// for every command that dispatches.
type recordFlags struct {
	// file is empty for no record.
	file  fileFlag
	limit sizeFlag
}

// register adds the flags to a command.
func (f *recordFlags) register(c *cobra.Command) {
	f.limit = recording.DefaultMaxBytes
	flags := c.Flags()
	flags.Var(&f.file, "record", "append what plugins are sent and answer to `FILE`, for plugin replay; it holds what users wrote")
	flags.Var(&f.limit, "record-limit", "the largest `SIZE` of that file; what is left out is counted")
}

// fileFlag is a file on the command line. An empty name, of a variable that is not set,
// say, would record nothing without a word.
type fileFlag string

// Set implements pflag.Value.
func (f *fileFlag) Set(text string) error {
	if text == "" {
		return errors.New("the name is empty; leave it out for no record")
	}
	*f = fileFlag(text)
	return nil
}

// String implements pflag.Value.
func (f *fileFlag) String() string { return string(*f) }

// Type implements pflag.Value.
func (*fileFlag) Type() string { return "string" }

// sizeFlag is a size with a unit on the command line.
type sizeFlag config.Size

// Set implements pflag.Value.
func (s *sizeFlag) Set(text string) error {
	var size config.Size
	if err := size.UnmarshalText([]byte(text)); err != nil {
		return err
	}
	if size == 0 {
		return errors.New("nothing would be recorded")
	}
	*s = sizeFlag(size)
	return nil
}

// String implements pflag.Value.
func (s *sizeFlag) String() string { return config.Size(*s).String() }

// Type implements pflag.Value.
func (*sizeFlag) Type() string { return "size" }

// recordExchanges lets the options of an engine record, if the command was told to.
// Done ends the record once the engine is closed, and says what is not in it.
func (a *app) recordExchanges(o *runtime.Options) (done func(), err error) {
	if a.record.file == "" {
		return func() {}, nil
	}
	w, err := recording.Open(string(a.record.file), recording.Options{MaxBytes: int64(a.record.limit), Program: "grapnel " + version})
	if err != nil {
		return nil, usagef("--record %s: %w", a.record.file, unwrapPath(err))
	}
	o.OnExchange = w.Write
	return func() {
		err := w.Close()
		switch _, leftOut, why := w.Counts(); {
		case leftOut > 0:
			tellf(a.err, "grapnel: %s\n", fmt.Sprintf("--record %s: %d %s not in it: %v", a.record.file, leftOut, plural(leftOut, "exchange is", "exchanges are"), why))
		case err != nil:
			tellf(a.err, "grapnel: %s\n", fmt.Sprintf("--record %s: its end is missing: %v", a.record.file, unwrapPath(err)))
		}
	}, nil
}
