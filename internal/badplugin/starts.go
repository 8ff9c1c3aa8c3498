//go:build unix

package badplugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/grapnelhq/grapnel/internal/wire/wiretest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// starts are the modes that matter while a plugin starts, or starts again.
func starts() map[string]func(*Program) error {
	return map[string]func(*Program) error{
		"stuck":  stuck,
		"herd":   (*Program).herd,
		"ghost":  (*Program).ghost,
		"nested": func(p *Program) error { return p.serve(nested) },
	}
}

// stuck never accepts its configuration.
func stuck(*Program) error {
	return serve.Serve(&sdk.Plugin{Name: "bad", Version: "1.0.0", OnConfigure: func(context.Context, *phases.Configuration) (sdk.Setup, error) {
		select {}
	}})
}

// herd is one of many. It writes its name ("name=") and number into the file "log"
// of a folder ("dir=") as it begins, and goes on once the file "go-NAME" is there.
func (p *Program) herd() error {
	dir, name := p.arg("dir"), p.arg("name")
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(log, "%s %d\n", name, os.Getpid())
	if err := errors.Join(err, log.Close()); err != nil {
		return err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go-"+name)); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, p.serve(good))
		}
		pause(context.Background(), 5*time.Millisecond)
	}
}

// nested asks the host for what leads to a dispatch of itself, and answers with the
// time that was left to it.
func nested(ctx context.Context, _ *Program, c *sdk.Call) ([]phases.Contribution, error) {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	pause(ctx, 20*time.Millisecond)
	_, err := c.Host.Call(ctx, "again", "now", nil)
	return sdk.Reply(&phases.PromptSection{SectionID: section, Content: fmt.Sprintf("%d %s", left.Microseconds(), phases.CodeOf(err))})
}

// ghost dies of its first call. Started again, it answers the call of its earlier
// life before the one that it was asked.
func (p *Program) ghost() error {
	path := p.arg("count") // of nobody else
	return p.serveRaw(func(_ *Program, s *wiretest.Session, f *wiretest.Frame) error {
		var id, incarnation uint64
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = os.WriteFile(path, fmt.Appendf(nil, "%d %d", f.ID, f.Incarnation), 0o600)
			p.Exit(3)
			return err
		}
		if _, scanned := fmt.Sscanf(string(data), "%d %d", &id, &incarnation); err != nil || scanned != nil {
			return errors.Join(err, scanned)
		}
		return errors.Join(
			s.Send(wiretest.Section(id, incarnation, section, wrong)),
			s.Send(wiretest.Section(f.ID, incarnation, section, wrong)),
			answer(s, f, right),
		)
	})
}
