package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// dataFolder is the directory in which this program keeps things for the user.
func dataFolder() (string, error) {
	dir := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("there is no data folder ($XDG_DATA_HOME, $HOME): %w", err)
		}
		dir = filepath.Join(home, ".local", "share")
	}
	dir = filepath.Join(dir, "grapnel")
	if err := checkPlace(dir); err != nil {
		return "", fmt.Errorf("the data folder %s ($XDG_DATA_HOME, $HOME): %w", dir, err)
	}
	return dir, nil
}

// checkPlace is [checkDir] for a directory that may have to be made: then for the one
// that it will be made in.
func checkPlace(dir string) error {
	for {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return checkDir(dir)
		}
		dir = filepath.Dir(dir)
	}
}

// checkStore refuses a SQLite file that another user made, or could replace: it says
// what prompts are compiled from, and its triggers would run as this user.
func checkStore(ref storeRef) error {
	path, ok := strings.CutPrefix(ref.dsn, sqliteScheme)
	if !ok {
		return nil
	}
	path, err := filepath.Abs(path)
	if err == nil {
		err = checkPlace(filepath.Dir(path))
	}
	if info, missing := os.Stat(path); err == nil && missing == nil {
		err = checkFile(path, info)
	}
	if err != nil {
		return usagef("the store %s: %w", ref.name, err)
	}
	return nil
}
