//go:build unix

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// herd is one of many. It writes its name ("name=") and number into the file "log"
// of a directory ("dir=") as it begins, and goes on once the file "go-NAME" is there.
func (p *badProgram) herd() error {
	dir, name := p.Arg("dir"), p.Arg("name")
	if err := appendTo(filepath.Join(dir, "log"), fmt.Sprintf("%s %d\n", name, os.Getpid())); err != nil {
		return err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go-"+name)); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, p.serve(good))
		}
		pause(context.Background(), 5*time.Millisecond)
	}
}

// nested asks the host for what leads to a dispatch of itself, and answers with the time that was left to it.
func nested(ctx context.Context, _ *badProgram, c *sdk.Call) ([]phases.Contribution, error) {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	pause(ctx, 20*time.Millisecond)
	_, err := c.Host.Call(ctx, "again", "now", nil)
	return sdk.Reply(&phases.PromptSection{SectionID: badSection, Content: fmt.Sprintf("%d %s", left.Microseconds(), phases.CodeOf(err))})
}

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
