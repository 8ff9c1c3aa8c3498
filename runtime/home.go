package runtime

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/home"
)

// prepareHome settles where the runtime home is, whatever folder the process
// works in later, and seeds it if that is wanted. Here is where a home that
// cannot be made is an error: later it would only be missing, turn after turn.
func (o *Options) prepareHome() error {
	if o.Home == "" {
		if o.SeedHome {
			return errors.New("the option SeedHome needs a Home")
		}
		return nil
	}
	dir, err := filepath.Abs(o.Home)
	if err != nil {
		return fmt.Errorf("runtime home %q: %w", o.Home, err)
	}
	o.Home = dir
	if !o.SeedHome {
		return nil
	}
	created, _, err := home.Seed(dir)
	for _, path := range created {
		o.Logger.Info("the runtime home was seeded", "file", path)
	}
	return err
}

// readHome reads the runtime home, once a recording, and gives its texts to the
// sections for which the host brought none. The host's own text makes the file
// irrelevant: it gets no row. Whatever is wrong with a file, the turn goes on
// without it.
func (r *recording) readHome(in *compiler.Input) {
	dir := r.turn.engine.opts.Home
	if dir == "" {
		return
	}
	first := r.home == nil
	if first {
		files := home.Load(dir)
		r.home = &files
	}
	in.Files = slices.Clip(in.Files)
	texts := []*string{&in.Host.SoulCore, &in.Host.IdentityCore, &in.Host.UserPersona}
	for i, f := range r.home.All() {
		if *texts[i] != "" {
			continue
		}
		*texts[i] = f.Text
		row := f.Row
		row.Chars = 0 // nothing of it is in a prompt yet
		in.Files = append(in.Files, row)
		if first {
			r.notes = append(r.notes, f.Diagnostics...)
		}
	}
}
