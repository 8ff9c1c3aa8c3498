package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/lazy"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/words"
)

type touchFlags struct {
	agentsFlags

	State    string         `flag:"state"    usage:"the session's {FILE}"`
	Delivery chain.Delivery `flag:"delivery" usage:"how files are reported: body, reminder or off (default the configuration's)"`
	Epoch    string         `flag:"epoch"    words:"new" usage:"new begins a new epoch before anything is touched"`
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

// A state file holds what package lazy encodes and nothing else, so that a host can pass its
// content to the plugin. Only its owner can read it. A command locks it while working on it
// and replaces it by renaming, so that readers without the lock see one state or the other.

const (
	lockTime  = 10 * time.Second
	lockEvery = 2 * time.Millisecond
)

var errNoState = errors.New("there is no state in it")

type stateFile struct {
	path string
	lock *os.File
	was  []byte // its content, once it was read
}

func lockState(ctx context.Context, path string, create bool) (*stateFile, error) {
	// Renaming onto a link would replace the link and leave the file as it is.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	f, err := lockFile(ctx, path, lockTime, func() (*os.File, error) { return openState(path, create) },
		func(_ *os.File, err error) error { return unable(fmt.Errorf("--state %s: %w", path, unwrapPath(err))) })
	if err != nil {
		return nil, err
	}
	return &stateFile{path: path, lock: f}, nil
}

// lockFile opens a file and waits for its lock; busy makes the error if that fails. A file that the previous holder
// replaced or removed is opened again.
func lockFile(ctx context.Context, path string, limit time.Duration, open func() (*os.File, error), busy func(*os.File, error) error) (*os.File, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it has been locked for %s", limit))
	defer cancel()
	for {
		f, err := open()
		if err != nil {
			return nil, err
		}
		if err := waitLock(ctx, f); err != nil {
			err = busy(f, err)
			_ = f.Close() // nothing was written
			return nil, err
		}
		now, err := os.Stat(path)
		if opened, failed := f.Stat(); err == nil && failed == nil && os.SameFile(now, opened) {
			return f, nil
		}
		_ = f.Close()
	}
}

func openState(path string, create bool) (*os.File, error) {
	info, err := os.Stat(path)
	flags := os.O_RDWR
	if create && errors.Is(err, fs.ErrNotExist) {
		flags, err = os.O_RDWR|os.O_CREATE, nil
	} else if err == nil && !info.Mode().IsRegular() {
		err = errors.New("is not a regular file")
	}
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(path, flags, 0o600)
	}
	switch {
	case !create && errors.Is(err, fs.ErrNotExist):
		return nil, usagef("--state %s: there is no such file; begin with: grapnel agents chain --state %s", path, path)
	case err != nil:
		return nil, usagef("--state %s: %w", path, unwrapPath(err))
	}
	return f, nil
}

// waitLock takes the lock as soon as it is free, or returns the cause of the end of ctx.
func waitLock(ctx context.Context, f *os.File) error {
	tick := time.NewTicker(lockEvery)
	defer tick.Stop()
	for {
		switch got, err := tryLock(f); {
		case err != nil:
			return err
		case got:
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func (s *stateFile) read() (lazy.State, error) {
	var err error
	if s.was, err = io.ReadAll(io.LimitReader(s.lock, lazy.MaxBytes+2)); err != nil {
		return lazy.State{}, unwrapPath(err)
	}
	if len(s.was) == 0 {
		return lazy.State{}, errNoState
	}
	return lazy.Decode(bytes.TrimSuffix(s.was, []byte("\n")))
}

// write replaces the state, unless it did not change.
func (s *stateFile) write(state lazy.State) error {
	data, err := lazy.Encode(state)
	if err != nil {
		return unable(fmt.Errorf("--state %s: %w", s.path, err))
	}
	if data = append(data, '\n'); bytes.Equal(data, s.was) {
		return nil
	}
	if !holdsLock {
		_ = s.lock.Close()
	}
	if err := replaceFile(s.path, data, 0o600); err != nil {
		return unable(fmt.Errorf("--state %s: %w", s.path, err))
	}
	return nil
}

// beginState writes the state of a new session. It replaces only a file that holds a state.
func beginState(ctx context.Context, path string, state lazy.State) error {
	s, err := lockState(ctx, path, true)
	if err != nil {
		return err
	}
	defer func() { _ = s.lock.Close() }()
	if _, err := s.read(); err != nil && !errors.Is(err, errNoState) {
		return usagef("--state %s: %w; it is left as it is", path, err)
	}
	return s.write(state)
}

func changeState(ctx context.Context, path string, change func(*lazy.State)) error {
	if path == "" {
		return usagef("give the session's file with --state FILE, as agents chain --state FILE wrote it")
	}
	s, err := lockState(ctx, path, false)
	if err != nil {
		return err
	}
	defer func() { _ = s.lock.Close() }()
	state, err := s.read()
	switch {
	case errors.Is(err, errNoState):
		return usagef("--state %s: %w; begin with: grapnel agents chain --state %s", path, err, path)
	case err != nil:
		return usagef("--state %s: %w; it is left as it is", path, err)
	}
	change(&state)
	return s.write(state)
}
