//go:build !linux

package proc

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// removeTree removes a directory and everything in it. What cannot be removed
// at first may lie in directories that their owner may not enter: their modes
// are changed within the directory, without following links out of it.
func removeTree(_ context.Context, _ *os.File, path string) error {
	err := os.RemoveAll(path)
	if err == nil {
		return nil
	}
	root, openErr := os.OpenRoot(path)
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	defer closeQuietly(root)
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = root.Chmod(name, 0o700)
		}
		return err
	})
	return os.RemoveAll(path)
}

// unlockFolder gives a folder in base the mode 0700.
func unlockFolder(base, name string) error {
	root, err := os.OpenRoot(base)
	if err != nil {
		return err
	}
	defer closeQuietly(root)
	return root.Chmod(name, 0o700)
}
