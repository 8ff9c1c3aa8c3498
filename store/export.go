package store

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// errStopped ends an iteration that the caller has enough of.
var errStopped = &Error{Code: CodeInternal, Message: "stopped"}

func isStopped(err error) bool { return errors.Is(err, errStopped) }

// Export writes manifests as JSON lines, oldest first: each line is the
// canonical JSON that the hashes are over. It returns how many it wrote. The
// limit does not count here.
func (s *Store) Export(ctx context.Context, w io.Writer, f Filter) (int, error) {
	n := 0
	for r, err := range s.Records(ctx, f) {
		if err != nil {
			return n, err
		}
		for _, part := range [][]byte{r.Data, []byte("\n")} {
			if _, err := w.Write(part); err != nil {
				return n, fmt.Errorf("store: exporting: %w", err)
			}
		}
		n++
	}
	return n, nil
}
