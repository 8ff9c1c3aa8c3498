package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/grapnelhq/grapnel/internal/surface"
	"github.com/grapnelhq/grapnel/phases"
)

// maxInput bounds what is read from a file or standard input.
const maxInput = 16 << 20

// inputName is how messages call an input: by its flag, unless it was an
// argument.
func inputName(flag, path string) string {
	if flag == "" {
		return path
	}
	return "--" + flag + " " + path
}

// readInput reads the file that a flag names, or standard input for "-". Nothing
// is read for "". Pipes are fine: shells hand over the output of other programs
// as one.
func (a *app) readInput(flag, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	in := a.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, usagef("%s: %w", inputName(flag, path), unwrapPath(err))
		}
		defer f.Close() //nolint:errcheck // only read
		in = f
	}
	// One byte more than allowed tells too large from just large enough.
	data, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err != nil {
		return nil, usagef("%s: %w", inputName(flag, path), unwrapPath(err))
	}
	if len(data) > maxInput {
		return nil, usagef("%s: is larger than %d MiB", inputName(flag, path), maxInput>>20)
	}
	return data, nil
}

// readJSON is readInput for JSON: a mistake in its syntax is shown with its
// place. What the value means is for the caller to check.
func (a *app) readJSON(flag, path string) ([]byte, error) {
	data, err := a.readInput(flag, path)
	if err != nil || len(bytes.TrimSpace(data)) == 0 {
		return nil, err
	}
	var value json.RawMessage
	if err := json.Unmarshal(data, &value); err != nil {
		syntax, ok := errors.AsType[*json.SyntaxError](err)
		if !ok {
			return nil, usagef("%s: %w", inputName(flag, path), err)
		}
		line, column := position(data, int(syntax.Offset))
		return nil, usagef("%s:%d:%d: %w", inputName(flag, path), line, column, err)
	}
	return data, nil
}

// position turns the offset behind a byte into its line and column, from 1.
func position(data []byte, offset int) (line, column int) {
	before := data[:max(0, min(offset, len(data))-1)]
	return bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

// strictJSON decodes one JSON value and refuses unknown fields.
func strictJSON(data []byte, v any) error {
	if err := phases.CheckJSON(data, phases.MaxJSONDepth); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// contextFlags are the flags that say where a turn happens. Empty ones leave the
// choice to fill.
type contextFlags struct {
	// dir is as it was typed; fill makes it absolute.
	dir string
	// mode and profile are words of phases.Mode and phases.Profile.
	mode, profile string
	// workspace, thread, turn and session are the host's ids.
	workspace, thread, turn, session string
	// now is a time in RFC 3339.
	now string
}

// register adds the flags of commands that run whole turns.
func (f *contextFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.dir, "dir", "", "working `DIR` of the turn (default the current folder)")
	flags.StringVar(&f.profile, "profile", "", "how much is compiled: full, minimal or none (default full)")
	flags.StringVar(&f.mode, "mode", "", "mode of the turn: chat, agent, task, system or a word of the host's (default agent)")
	flags.StringVar(&f.workspace, "workspace", "", "workspace `ID` (default local)")
	flags.StringVar(&f.thread, "thread", "", "thread `ID` (default local)")
	flags.StringVar(&f.turn, "turn", "", "turn `ID` (default local)")
	flags.StringVar(&f.session, "session", "", "session `ID` (default none)")
	flags.StringVar(&f.now, "now", "", "the turn's clock, as `RFC3339` (default the real one)")
}

// fill completes a context: what neither a file nor a flag says has the command
// line's defaults.
func (f *contextFlags) fill(c phases.Context) (phases.Context, error) {
	set(&c.WorkspaceID, f.workspace, "local")
	set(&c.ThreadID, f.thread, "local")
	set(&c.TurnID, f.turn, "local")
	set(&c.SessionID, f.session, "")
	set((*string)(&c.Mode), f.mode, "")
	set((*string)(&c.Profile), f.profile, "")
	c, err := surface.Complete(c)
	if err != nil {
		return c, usagef("%w", err)
	}
	if f.now != "" {
		now, err := time.Parse(time.RFC3339, f.now)
		if err != nil {
			return c, usagef("--now %q: write a time such as 2026-01-31T12:00:00Z", f.now)
		}
		c.Now = now
	}
	if f.dir != "" {
		c.Dir = f.dir
	}
	return c, fillDir(&c)
}

// fillDir makes the working folder absolute, as it is written: a symbolic link
// keeps its name, because os.Getwd believes $PWD.
func fillDir(c *phases.Context) error {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return usagef("the working folder: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return usagef("working folder %s: %w", c.Dir, unwrapPath(err))
	}
	if !info.IsDir() {
		return usagef("working folder %s: is not a folder", c.Dir)
	}
	c.Dir = dir
	return nil
}

// unwrapPath drops the path of a path error: the message names it already.
func unwrapPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// set gives a field the flag's value, or the default where both are empty.
func set(field *string, flag, fallback string) {
	if flag != "" {
		*field = flag
	}
	if *field == "" {
		*field = fallback
	}
}
