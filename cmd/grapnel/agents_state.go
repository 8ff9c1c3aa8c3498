package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/lazy"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
)

type touchFlags struct {
	agentsFlags

	State    string         `flag:"state"    usage:"the session's {FILE}"`
	Delivery chain.Delivery `flag:"delivery" usage:"how files are reported: body, reminder or off (default the configuration's)"`
	Epoch    string         `flag:"epoch"    usage:"new begins a new epoch before anything is touched"                           words:"new"`
}

type resumeFlags struct {
	agentsFlags

	State string `flag:"state" usage:"the session's {FILE}"`
}

func (a *app) agentsTouch(ctx context.Context, f *touchFlags, paths []string) error {
	if len(paths) == 0 && f.Epoch == "" {
		return usagef("touch needs at least one PATH; see: grapnel agents touch --help")
	}
	layer := f.layer()
	layer.Resolver.Delivery = f.Delivery
	in, err := a.agentsInForce(f.Dir, layer)
	if err != nil {
		return err
	}
	absolute := make([]string, len(paths))
	for i, path := range paths {
		if path == "" {
			return usagef("touch: an empty PATH is not a path")
		}
		absolute[i] = path
		if !filepath.IsAbs(path) {
			absolute[i] = filepath.Join(in.dir, path)
		}
	}
	var answer lazy.Touched
	root := ""
	err = changeState(ctx, f.State, func(s *lazy.State) {
		if f.Epoch != "" {
			s.NewEpoch(s.Epoch + 1)
		}
		root, answer = s.Root, s.Touch(chain.OS{}, in.Options, absolute)
	})
	if err != nil {
		return err
	}
	return a.print(answer, func() { a.printTouched(&answer, root) })
}

func (a *app) printTouched(t *lazy.Touched, root string) {
	if len(t.Files) == 0 {
		a.println("nothing that the session was not given")
	}
	printList(a, "files", "file|reason|>bytes|delivery", t.Files, func(f *lazy.File) cells {
		return cells{f.Display, f.Reason, text.Thousands(int(f.SizeBytes)), f.Delivery}
	})
	if t.Pending > 0 {
		a.printf("\n%s for the next event\n", words.Count(t.Pending, "file waits", "files wait"))
	}
	a.printAgentsProblems("diagnostics", root, t.Diagnostics)
	a.printReminder(t.Reminder)
}

func (a *app) printReminder(text string) {
	if text != "" {
		a.printf("\n%s%s\n", rule("reminder"), text)
	}
}

func (a *app) agentsResume(ctx context.Context, f *resumeFlags, _ []string) error {
	in, err := a.agentsInForce(f.Dir, f.layer())
	if err != nil {
		return err
	}
	var answer lazy.Resumed
	err = changeState(ctx, f.State, func(s *lazy.State) {
		answer = s.Resume(chain.Resolve(chain.OS{}, in.dir, in.Options))
	})
	if err != nil {
		return err
	}
	return a.print(answer, func() { a.printResumed(&answer) })
}

func (a *app) printResumed(r *lazy.Resumed) {
	if !r.Changed {
		a.println("nothing has changed since the session was left")
	}
	t := newTable("changes", "what|path|from|to|named")
	for _, c := range r.Changes {
		from, to := c.From, c.To
		if c.Path != "" {
			from, to = shortSum(from), shortSum(to) // of files they are hashes
		}
		t.add(c.What, inTree(r.Root, c.Path), from, to, cmp.Or(words.If(c.Named, "yes"), "counted"))
	}
	a.printTable(t)
	a.printReminder(r.Reminder)
}

// A state file holds what package lazy encodes and nothing else, so that a host can pass its content to the plugin. Only its
// owner can read it. A command locks it while working on it and replaces it by renaming, so that readers without the lock
// see one state or the other.

var errNoState = errors.New("there is no state in it")

// beginState writes the state of a new session. It replaces only a file that holds a state.
func beginState(ctx context.Context, path string, state lazy.State) error {
	return replaceState(ctx, path, func(_ lazy.State, err error) (lazy.State, error) {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoState) {
			err = nil
		}
		return state, err
	})
}

func changeState(ctx context.Context, path string, change func(*lazy.State)) error {
	if path == "" {
		return usagef("give the session's file with --state FILE, as agents chain --state FILE wrote it")
	}
	return replaceState(ctx, path, func(state lazy.State, err error) (lazy.State, error) {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return state, usagef("--state %s: there is no such file; begin with: grapnel agents chain --state %s", path, path)
		case errors.Is(err, errNoState):
			return state, usagef("--state %s: %w; begin with: grapnel agents chain --state %s", path, err, path)
		case err == nil:
			change(&state)
		}
		return state, err
	})
}

// replaceState replaces the state in a file by the next one, unless it is the same.
func replaceState(ctx context.Context, name string, next func(lazy.State, error) (lazy.State, error)) error {
	failed := func(err error) error { return unable(fmt.Errorf("--state %s: %w", name, err)) }
	path, err := realFile(name)
	if err != nil {
		return usagef("--state %s: %w", name, err)
	}
	unlock, err := lockBeside(ctx, path, lockTime, "another command works on it")
	if err != nil {
		return failed(err)
	}
	defer unlock()
	was, state, err := readState(path)
	if state, err = next(state, err); err != nil {
		if _, coded := errors.AsType[*exitError](err); coded {
			return err
		}
		return usagef("--state %s: %w; it is left as it is", name, unwrapPath(err))
	}
	data, err := lazy.Encode(state)
	if err != nil {
		return failed(err)
	}
	if data = append(data, '\n'); bytes.Equal(data, was) {
		return nil
	}
	if err := replaceFile(path, data, 0o600); err != nil {
		return failed(err)
	}
	return nil
}

func readState(path string) (data []byte, state lazy.State, err error) {
	data, err = readRegular(path)
	switch {
	case err != nil:
		return nil, state, err
	case data == nil:
		return nil, state, fs.ErrNotExist
	case len(data) == 0:
		return nil, state, errNoState
	}
	state, err = lazy.Decode(bytes.TrimSuffix(data, []byte("\n")))
	return data, state, err
}
