package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/grapnelhq/grapnel/internal/owned"
	"github.com/grapnelhq/grapnel/internal/text/words"
)

// replaceFile replaces a file, or makes it, whole or not at all.
func replaceFile(path string, data []byte, mode fs.FileMode) error {
	return writeWhole(path, data, mode, os.Rename)
}

// editFile replaces a file, or the one that it links to, by what edit makes of it.
func editFile(path string, edit func([]byte) ([]byte, error)) error {
	target, err := filepath.EvalSymlinks(path) // renaming onto a link would replace the link and leave the file as it is
	if err != nil {
		return unable(err)
	}
	info, err := os.Stat(target)
	if err != nil {
		return unable(err)
	}
	data, err := os.ReadFile(target)
	if err != nil {
		return unable(err)
	}
	if data, err = edit(data); err != nil {
		return usagef("%s: %w", target, err)
	}
	if err := replaceFile(target, data, info.Mode().Perm()); err != nil {
		return unable(err)
	}
	return nil
}

// createWhole creates a file for this user alone with its whole content or not at all, also if this program is killed. An
// existing one is fs.ErrExist. It needs a file system with hard links.
func createWhole(path string, data []byte) error { return writeWhole(path, data, 0o600, os.Link) }

// writeWhole writes a file beside its place, and then puts it there.
func writeWhole(path string, data []byte, mode fs.FileMode, put func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".grapnel-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // it has its place, or is of no use
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return put(f.Name(), path)
}

const mostRegular = 8 << 20 // bytes of a file of settings or state

// readRegular reads a file that is no pipe or device; it returns nil for one that is not there.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	case info.Size() > mostRegular:
		return nil, errors.New("is longer than 8 MiB")
	}
	return os.ReadFile(path)
}

// createNew creates a file for this user alone; an existing one is fs.ErrExist. It removes one that cannot be written whole.
func createNew(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// realFile is where a file is, or will be: all links to one file have one lock.
func realFile(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(path); err == nil {
		real, err := filepath.EvalSymlinks(path)
		return real, unwrapPath(err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), unwrapPath(err)
}

const (
	lockTime  = 10 * time.Second
	lockEvery = 2 * time.Millisecond
)

// lockBeside locks a file, beside another one, that no other user can open: anybody who can open a file can lock it forever.
// One that the previous holder removed is opened again. The file holds the number of the process that has the lock.
func lockBeside(ctx context.Context, path string, limit time.Duration, busy string) (unlock func(), err error) {
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock")
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it has been locked for %s", limit))
	defer cancel()
	for {
		f, err := owned.Open(name, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return nil, err
		}
		if err := waitLock(ctx, f); err != nil {
			holder, _ := io.ReadAll(io.LimitReader(f, 20)) // without it the message says less
			_ = f.Close()
			return nil, fmt.Errorf("%s, or hangs, with the lock %s%s: %w; end that one, or remove the file", busy, name,
				words.If(len(holder) > 0, " (process "+string(holder)+")"), err)
		}
		now, err := os.Stat(name)
		if opened, failed := f.Stat(); err != nil || failed != nil || !os.SameFile(now, opened) {
			_ = f.Close()
			continue
		}
		_ = f.Truncate(0)
		_, _ = f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0) // for messages alone
		return func() {
			_ = os.Remove(name) // one that stays is used again
			_ = f.Close()       // which frees the lock
		}, nil
	}
}

// waitLock takes the lock as soon as it is free, or returns the cause of the end of ctx.
func waitLock(ctx context.Context, f *os.File) error {
	tick := time.NewTicker(lockEvery)
	defer tick.Stop()
	for {
		if got, err := tryLock(f); got || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
