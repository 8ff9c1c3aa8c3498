package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"syscall"
	"time"
)

// watchEvery is how often watched files are looked at. What is there must be the
// same twice: an editor that writes a file in several steps is waited for.
const watchEvery = time.Second

// maxWatched is how much of a file is looked at: more than a configuration or a
// list of tokens may have.
const maxWatched = 1<<20 + 1

// fileLook is what files were when they were looked at: fingerprints by path.
type fileLook map[string][sha256.Size]byte

// lookAt fingerprints files. One that is not there, or cannot be read, has a
// fingerprint too.
func lookAt(files []string) fileLook {
	look := fileLook{}
	for _, path := range files {
		h := sha256.New()
		if err := hashFile(h, path); err != nil {
			why := "\x00unreadable"
			if errors.Is(err, fs.ErrNotExist) {
				why = "\x00absent"
			}
			_, _ = io.WriteString(h, why) // a hash takes everything
		}
		look[path] = [sha256.Size]byte(h.Sum(nil))
	}
	return look
}

// hashFile adds a regular file's content. Others may never end, or change by being
// read; opening does not wait for the writer of a pipe.
func hashFile(h io.Writer, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	_, err = io.Copy(h, io.LimitReader(f, maxWatched))
	return err
}

// steady decides when files that change have settled.
type steady struct{ known, seen fileLook }

// settled reports whether a look is another one than the last that was acted on,
// and the same as the one before.
func (s *steady) settled(now fileLook) bool {
	same := maps.Equal(now, s.seen)
	s.seen = now
	if !same || maps.Equal(now, s.known) {
		return false
	}
	s.known = now
	return true
}

// watchFiles calls changed whenever one of the files has changed and settled,
// until ctx ends. Known is how they were when they were last read.
func watchFiles(ctx context.Context, known fileLook, files func() []string, changed func()) {
	s := &steady{known: known, seen: known}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if s.settled(lookAt(files())) {
				changed()
			}
		}
	}
}
