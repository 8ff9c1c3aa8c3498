package home

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// seeds are the first texts of a new home.
//
//go:embed seed/SOUL.md seed/IDENTITY.md
var seeds embed.FS

// Seed prepares a home: the folder, SOUL.md and IDENTITY.md, each only where
// nothing of that name is there. What is there is never touched, not even an
// empty file or a link to nothing: somebody may want it that way. USER.md is
// never made. The files are for their owner alone, and so is a folder that Seed
// makes.
//
// It returns the paths of both kinds of files. An error is one of the disk; what
// was created until then stays and is returned with it. Several processes may
// seed one home at once: each file is created by one of them and kept by the
// others.
func Seed(dir string) (created, kept []string, err error) {
	if dir == "" {
		return nil, nil, errors.New("runtime home: no folder is named")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("runtime home: %w", err)
	}
	for _, name := range []string{SoulFile, IdentityFile} {
		content, err := seeds.ReadFile("seed/" + name)
		if err != nil {
			return created, kept, fmt.Errorf("runtime home: %w", err)
		}
		path := filepath.Join(dir, name)
		made, err := create(path, func(w io.Writer) error {
			_, err := w.Write(content)
			return err
		})
		switch {
		case err != nil:
			return created, kept, fmt.Errorf("runtime home: %w", err)
		case made:
			created = append(created, path)
		default:
			kept = append(kept, path)
		}
	}
	return created, kept, nil
}

// create writes a file where nothing is. One that cannot be written whole is
// removed again: half a text would be kept for ever.
func create(path string, write func(io.Writer) error) (made bool, err error) {
	// Looking first lets a home be seeded again that may only be read.
	if _, err := os.Lstat(path); err == nil {
		return false, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err = errors.Join(write(f), f.Close()); err != nil {
		return false, errors.Join(err, os.Remove(path))
	}
	return true, nil
}
