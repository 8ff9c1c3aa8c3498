package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
)

// ResolveCommand returns the absolute path of a plugin's command. A path is taken
// as it is, or relative to dir, the folder of the configuration file. A bare name
// is looked up in the folders that the variable PATH lists, relative ones
// ignored: what lies in a working folder is never found by its name.
//
// The path is also returned with an error that says why nothing can be executed
// there, such as fs.ErrNotExist or fs.ErrPermission; for a bare name it is then
// the place in the first folder of PATH, or "" if there is none.
// [Load] ignores the error: a plugin that is absent fails at its start, alone.
func ResolveCommand(dir, command string, lookupEnv func(string) (string, bool)) (string, error) {
	if command == "" {
		return "", errors.New("the command is empty")
	}
	if filepath.IsAbs(command) {
		return executable(filepath.Clean(command))
	}
	if filepath.Base(command) != command || command == "." || command == ".." {
		return executable(filepath.Join(dir, command))
	}
	first := ""
	path, _ := lookupEnv("PATH")
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			continue
		}
		candidate := filepath.Join(folder, command)
		if first == "" {
			first = candidate
		}
		if found, err := executable(candidate); err == nil {
			return found, nil
		}
	}
	return first, fmt.Errorf("%q is in no folder of PATH: %w", command, fs.ErrNotExist)
}

// executable returns the path of a program that lies at an absolute path, on
// Windows with its extension.
func executable(path string) (string, error) {
	found, err := exec.LookPath(path)
	if err != nil {
		if lookup, ok := errors.AsType[*exec.Error](err); ok {
			err = lookup.Err // it repeats the path
		}
		return path, fmt.Errorf("%s cannot be executed: %w", path, err)
	}
	return found, nil
}
