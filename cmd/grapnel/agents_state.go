package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/lazy"
)

// A state file is what package lazy encodes, and nothing else, so that a host can
// hand its content to the plugin. It is for its owner, is locked while a command
// works on it, and is replaced by renaming, so that whoever reads it without the
// lock sees one state or the other.

// Times of waiting for another command that has the lock. It has it for
// milliseconds.
const (
	lockTime  = 10 * time.Second
	lockEvery = 2 * time.Millisecond
)

// errNoState is a state file that is not there, or has nothing in it yet.
var errNoState = errors.New("there is no state in it")

// stateFile is a state file while this process has its lock.
type stateFile struct {
	path string
	lock *os.File
	was  []byte // its content, once it was read
}

// lockState opens a state file and waits until nobody else has it. It is made if it
// may be.
func lockState(ctx context.Context, path string, create bool) (*stateFile, error) {
	// Renaming onto a link would replace the link and leave the file as it is.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	ctx, cancel := context.WithTimeoutCause(ctx, lockTime, fmt.Errorf("another process has had it for %s", lockTime))
	defer cancel()
	for {
		f, err := openState(path, create)
		if err != nil {
			return nil, err
		}
		if err := waitLock(ctx, f); err != nil {
			_ = f.Close()
			return nil, unable(fmt.Errorf("--state %s: %w", path, unwrapPath(err)))
		}
		// Who had the lock before has put another file in its place.
		if isStill(path, f) {
			return &stateFile{path: path, lock: f}, nil
		}
		_ = f.Close()
	}
}

// openState opens the file, if it is one.
func openState(path string, create bool) (*os.File, error) {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist) && create:
	case errors.Is(err, fs.ErrNotExist):
		return nil, usagef("--state %s: there is no such file; begin with: grapnel agents chain --state %s", path, path)
	case err != nil:
		return nil, usagef("--state %s: %w", path, unwrapPath(err))
	case !info.Mode().IsRegular():
		return nil, usagef("--state %s: is no regular file", path)
	}
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, usagef("--state %s: %w", path, unwrapPath(err))
	}
	return f, nil
}

// waitLock takes the lock as soon as it is free, or returns the cause of the end of
// ctx.
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

// isStill reports whether an open file is the one that has its name now.
func isStill(path string, f *os.File) bool {
	now, err := os.Stat(path)
	if err != nil {
		return false
	}
	open, err := f.Stat()
	return err == nil && os.SameFile(now, open)
}

// close gives the lock back.
func (s *stateFile) close() { _ = s.lock.Close() }

// read decodes the state.
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

// write puts another state in its place. Most touches change nothing, and cost no
// disk then.
func (s *stateFile) write(state lazy.State) error {
	data, err := lazy.Encode(state)
	if err != nil {
		return unable(fmt.Errorf("--state %s: %w", s.path, err))
	}
	if data = append(data, '\n'); bytes.Equal(data, s.was) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(s.path), ".grapnel-*") // of mode 0600
	if err != nil {
		return unable(fmt.Errorf("--state %s: %w", s.path, err))
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if !holdsLock {
		s.close()
	}
	if err == nil {
		err = os.Rename(f.Name(), s.path)
	}
	if err != nil {
		return unable(fmt.Errorf("--state %s: %w", s.path, errors.Join(err, os.Remove(f.Name()))))
	}
	return nil
}

// beginState writes the state of a session that begins. What is in the file is
// replaced if it is a state; what is none was not meant.
func beginState(ctx context.Context, path string, state lazy.State) error {
	s, err := lockState(ctx, path, true)
	if err != nil {
		return err
	}
	defer s.close()
	if _, err := s.read(); err != nil && !errors.Is(err, errNoState) {
		return usagef("--state %s: %w; it is left as it is", path, err)
	}
	return s.write(state)
}

// changeState reads a state, has it changed, and writes it.
func changeState(ctx context.Context, path string, change func(*lazy.State)) error {
	if path == "" {
		return usagef("give the session's file with --state FILE, as agents chain --state FILE wrote it")
	}
	s, err := lockState(ctx, path, false)
	if err != nil {
		return err
	}
	defer s.close()
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
