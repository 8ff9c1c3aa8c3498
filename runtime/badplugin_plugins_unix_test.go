//go:build unix

package runtime_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ghost dies of its first call. Started again, it answers the call of its earlier
// life before the one that it was asked.
func (p *badProgram) ghost() error {
	path := p.Arg("count") // of nobody else
	return p.serveRaw(func(_ *badProgram, s *rawSession, f *rawFrame) error {
		var id, incarnation uint64
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			if err := os.WriteFile(path, fmt.Appendf(nil, "%d %d", f.ID, f.Incarnation), 0o600); err != nil {
				return err
			}
			os.Exit(3)
		}
		if _, scanned := fmt.Sscanf(string(data), "%d %d", &id, &incarnation); err != nil || scanned != nil {
			return errors.Join(err, scanned)
		}
		return errors.Join(
			s.Send(sectionFrame(id, incarnation, wrongText)),
			s.Send(sectionFrame(f.ID, incarnation, wrongText)),
			answerWith(s, f, rightText),
		)
	})
}
