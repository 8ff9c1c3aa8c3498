package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/owned"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

const maxInput = 16 << 20

func inputName(flag, path string) string {
	if flag == "" {
		return path
	}
	return "--" + flag + " " + path
}

// readInput reads the file that a flag names, standard input for "-", and nothing for "".
func (a *app) readInput(flag, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	in := a.in
	if path != "-" {
		f, err := openNamed(path)
		if err != nil {
			return nil, usagef("%s: %w", inputName(flag, path), err)
		}
		defer f.Close() //nolint:errcheck // only read
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err != nil {
		return nil, usagef("%s: %w", inputName(flag, path), unwrapPath(err))
	}
	if len(data) > maxInput {
		return nil, usagef("%s: is larger than %d MiB", inputName(flag, path), maxInput>>20)
	}
	return data, nil
}

// openNamed opens a file that the user names. It refuses directories, and pipes and devices, which could block or never
// end, except descriptors that the shell has opened, as for <(COMMAND).
func openNamed(path string) (*os.File, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, unwrapPath(err)
	case info.IsDir():
		return nil, errors.New("is a directory")
	case info.Mode().IsRegular(), path == os.DevNull, path == "/dev/stdin", strings.HasPrefix(path, "/dev/fd/"), strings.HasPrefix(path, "/proc/self/fd/"):
		f, err := os.Open(path)
		return f, unwrapPath(err)
	}
	return nil, errors.New("is a pipe, a device or a socket; give a regular file")
}

// readSecret is readInput for a private key or a token: nobody else may read its file.
func (a *app) readSecret(flag, path string) ([]byte, error) {
	if path == "" || path == "-" {
		return a.readInput(flag, path)
	}
	data, err := owned.Secret(path)
	if err != nil {
		return nil, usagef("--%s %w", flag, err)
	}
	return data, nil
}

// readJSON is readInput for JSON: syntax errors have their position.
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

func strictJSON(data []byte, v any) error {
	if err := jsonscan.Check(data, phases.MaxJSONDepth); err != nil {
		return err
	}
	if err := jsonscan.Decode(data, v); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// contextFlags are the context of a turn.
type contextFlags struct {
	Dir       string         `flag:"dir"       usage:"working {DIR} of the turn (default the current directory)"`
	Profile   phases.Profile `flag:"profile"   usage:"how much is compiled: full, minimal or none (default full)"`
	Mode      phases.Mode    `flag:"mode"      usage:"mode of the turn: chat, agent, task, system or a word of the host's (default agent)"`
	Workspace string         `flag:"workspace" usage:"workspace {ID} (default local)"`
	Thread    string         `flag:"thread"    usage:"thread {ID} (default local)"`
	Turn      string         `flag:"turn"      usage:"turn {ID} (default local)"`
	Session   string         `flag:"session"   usage:"session {ID} (default none)"`
	Actor     string         `flag:"actor"     usage:"whom the turn is for: {KIND:ID}, such as user:ada (default a user without an id)"`
	Now       string         `flag:"now"       usage:"the turn's clock, as {RFC3339} (default the real one)"`
}

// filter selects kept manifests.
func (f *contextFlags) filter() store.Filter {
	return store.Filter{Workspace: f.Workspace, Thread: f.Thread}
}

func (f *contextFlags) fill(c phases.Context) (phases.Context, error) {
	c.WorkspaceID = cmp.Or(f.Workspace, c.WorkspaceID, "local")
	c.ThreadID = cmp.Or(f.Thread, c.ThreadID, "local")
	c.TurnID = cmp.Or(f.Turn, c.TurnID, "local")
	c.SessionID = cmp.Or(f.Session, c.SessionID)
	c.Mode = cmp.Or(f.Mode, c.Mode)
	c.Profile = cmp.Or(f.Profile, c.Profile)
	c.Dir = cmp.Or(f.Dir, c.Dir)
	if f.Actor != "" {
		kind, id, named := strings.Cut(f.Actor, ":")
		if c.Actor = (phases.Actor{Kind: kind, ID: id}); !named || c.Actor.Name() != f.Actor {
			return c, usagef("--actor %q: write KIND:ID, such as user:ada", f.Actor)
		}
	}
	c, err := api.Complete(c)
	if err != nil {
		return c, usagef("%w", err)
	}
	if f.Now != "" {
		now, err := time.Parse(time.RFC3339, f.Now)
		if err != nil {
			return c, usagef("--now %q: write a time such as 2026-01-31T12:00:00Z", f.Now)
		}
		c.Now = now
	}
	return c, fillDir(&c)
}

// fillDir keeps symbolic links in the name, as os.Getwd believes $PWD.
func fillDir(c *phases.Context) error {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return usagef("the working directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return usagef("working directory %s: %w", c.Dir, unwrapPath(err))
	}
	if !info.IsDir() {
		return usagef("working directory %s: is not a directory", c.Dir)
	}
	c.Dir = dir
	return nil
}
