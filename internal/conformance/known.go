package conformance

import (
	"bufio"
	"embed"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/internal/wire"
)

// requirements has a frozen list of ids for each version.
//
//go:embed requirements
var requirements embed.FS

// newest is the default version.
const newest = "v1"

// OptionError is a mistake in [Options].
type OptionError struct{ message string }

// Error implements error.
func (e *OptionError) Error() string { return e.message }

// Requirements returns the ids of a version of the list of checks.
func Requirements(version string) ([]string, error) {
	data, err := requirements.Open(path.Join("requirements", path.Base(version)+".txt"))
	if err != nil {
		return nil, &OptionError{fmt.Sprintf("there are no requirements %q; those that exist: %s", version, strings.Join(versions(), ", "))}
	}
	ids, err := ReadIDs(data)
	_ = data.Close() // embedded
	return ids, err
}

func versions() (list []string) {
	entries, _ := requirements.ReadDir("requirements") // embedded
	for _, e := range entries {
		list = append(list, strings.TrimSuffix(e.Name(), ".txt"))
	}
	return list
}

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

// selected returns the ids of the checks to run.
func selected(o *Options) ([]string, error) {
	if o.Transport != wire.Transport && o.Transport != wire.TransportStdio {
		return nil, &OptionError{fmt.Sprintf("there is no transport %q; want %s or %s", o.Transport, wire.Transport, wire.TransportStdio)}
	}
	required, err := Requirements(o.Requirements)
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Concat(o.Known, o.Only) {
		if !slices.Contains(required, id) {
			return nil, &OptionError{fmt.Sprintf("there is no check %q%s", id, suggest.DidYouMean(id, required))}
		}
	}
	if len(o.Only) > 0 {
		return o.Only, nil
	}
	return required, nil
}
