package conformance

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/internal/wire"
)

// OptionError is a mistake in [Options].
type OptionError struct{ message string }

// Error implements error.
func (e *OptionError) Error() string { return e.message }

// ReadIDs reads ids of checks, one a line. "#" begins a comment.
func ReadIDs(r io.Reader) (ids []string, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); line != "" {
			ids = append(ids, line)
		}
	}
	return ids, lines.Err()
}

// validate refuses a transport or an id that there is not.
func (o *Options) validate() error {
	if o.Transport != wire.Transport && o.Transport != wire.TransportStdio {
		return &OptionError{fmt.Sprintf("there is no transport %q; want %s or %s", o.Transport, wire.Transport, wire.TransportStdio)}
	}
	var ids []string
	for _, c := range checks() {
		ids = append(ids, c.id)
	}
	for _, id := range slices.Concat(o.Known, o.Only) {
		if !slices.Contains(ids, id) {
			return &OptionError{fmt.Sprintf("there is no check %q%s", id, suggest.DidYouMean(id, ids))}
		}
	}
	return nil
}
