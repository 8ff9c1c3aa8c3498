package home

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

var (
	errNotRegular = errors.New("not a regular file")
	errDangling   = errors.New("it is a link to a file that is not there")
)

// readTime bounds the reading of what pretends to be a regular file, as some
// files of the kernel do whose reader waits. It does not bound a disk.
const readTime = time.Second

// read returns what a file holds, up to one byte more than MaxBytes, and the
// size that it has by its own account.
//
// It looks before it opens, because opening is enough to make some devices do
// something, and looks again at what it has opened, because that may be another
// file by then. For that case opening does not wait either: see openFlags.
func read(path string) (data []byte, size int64, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, linked := os.Lstat(path); linked == nil {
			return nil, 0, errDangling
		}
	}
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errNotRegular
	}
	f, err := os.OpenFile(path, openFlags, 0)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err = f.Stat(); err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errNotRegular
	}
	data, err = readAtMost(f, min(info.Size(), MaxBytes), readTime)
	return data, max(info.Size(), int64(len(data))), err
}

// readAtMost reads at most MaxBytes and one more. The expected size only saves
// copying: a file that grows meanwhile is read on.
func readAtMost(f *os.File, expected int64, limit time.Duration) ([]byte, error) {
	_ = f.SetReadDeadline(time.Now().Add(limit)) // an error means a file that cannot wait
	data := make([]byte, 0, expected+512)
	for len(data) <= MaxBytes {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):min(cap(data), MaxBytes+1)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return data, nil
}
