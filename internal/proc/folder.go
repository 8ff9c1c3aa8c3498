package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

const (
	// folderPrefix begins the names of all private folders.
	folderPrefix = "grapnel-"
	// socketRoom is what the longest path of a socket needs beyond the runtime
	// folder: "/grapnel-" and "/plugin", each with a random number.
	socketRoom = len("/"+folderPrefix) + 10 + len("/plugin") + 10
	// staleAge protects a folder that is just being made from the sweep of
	// another host: it is not locked yet.
	staleAge = time.Minute
)

// folder is the private folder of one plugin process: its sockets, its
// temporary files and its working folder. While it is in use it is locked, so
// that other hosts can tell it from one that was left behind.
type folder struct {
	path string
	lock *os.File
}

// newFolder makes a private folder below runtimeDir, or below the first fit
// one of the standard places.
func newFolder(runtimeDir string) (*folder, error) {
	base, err := chooseBase(runtimeDir)
	if err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(base, folderPrefix)
	if err != nil {
		return nil, resourceOr(phases.CauseExecFailed, err, "no private folder: %w")
	}
	f := &folder{path: path}
	if f.lock, err = lockFolder(path); err != nil {
		_ = f.remove() // it is empty
		return nil, resourceOr(phases.CauseExecFailed, err, "private folder cannot be locked: %w")
	}
	return f, nil
}

// bases lists where private folders may be made, best first.
func bases(runtimeDir string) []string {
	if runtimeDir != "" {
		return []string{runtimeDir}
	}
	var list []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		list = append(list, dir)
	}
	list = append(list, os.TempDir())
	if shortTemp != "" && !slices.Contains(list, shortTemp) {
		list = append(list, shortTemp)
	}
	return list
}

// chooseBase returns the first fit base. The error tells what is wrong with
// each of them.
func chooseBase(runtimeDir string) (string, error) {
	var problems []string
	for _, base := range bases(runtimeDir) {
		problem := unfit(base)
		if problem == "" {
			return base, nil
		}
		problems = append(problems, problem)
	}
	return "", phases.Errorf(phases.CauseExecFailed,
		"no folder for the plugin's socket: %s; set XDG_RUNTIME_DIR or TMPDIR to a short private folder", strings.Join(problems, "; "))
}

// unfit says why private folders cannot be made in base, or "".
func unfit(base string) string {
	info, err := os.Stat(base)
	switch {
	case !filepath.IsAbs(base):
		return fmt.Sprintf("%q is not absolute", base)
	case err != nil:
		return err.Error()
	case !info.IsDir():
		return base + " is no folder"
	case maxSocketPath > 0 && len(base)+socketRoom > maxSocketPath:
		return fmt.Sprintf("%s is too long: a socket in it would have a path of %d bytes, and the system allows %d",
			base, len(base)+socketRoom, maxSocketPath)
	}
	if problem := writableByOthers(info); problem != "" {
		return base + " " + problem
	}
	return ""
}

// remove deletes the folder with all that is in it. It is safe to call twice.
func (f *folder) remove() error {
	err := os.RemoveAll(f.path)
	if f.lock != nil {
		closeQuietly(f.lock)
		f.lock = nil
	}
	if err == nil {
		return nil
	}
	return removeTree(f.path)
}

// removeTree removes what os.RemoveAll could not: a plugin may have made
// folders that not even their owner may enter, and the host may have but one
// descriptor left, the one that the lock had. Links are not followed.
func removeTree(path string) error {
	if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // a folder needs the x
		return err
	}
	entries, err := os.ReadDir(path)
	errs := []error{err}
	for _, e := range entries {
		inner := filepath.Join(path, e.Name())
		if e.IsDir() {
			errs = append(errs, removeTree(inner))
		} else {
			errs = append(errs, os.Remove(inner))
		}
	}
	return errors.Join(append(errs, os.Remove(path))...)
}

// sweepFolders removes private folders that no living host has locked, and
// returns how many. It stops early when ctx ends.
func sweepFolders(ctx context.Context, runtimeDir string, now time.Time) (removed int) {
	for _, base := range bases(runtimeDir) {
		entries, err := os.ReadDir(base)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if ctx.Err() != nil {
				return removed
			}
			if e.IsDir() && strings.HasPrefix(e.Name(), folderPrefix) && removeStale(filepath.Join(base, e.Name()), now) {
				removed++
			}
		}
	}
	return removed
}

// removeStale removes one folder if it is ours, old enough and not locked.
func removeStale(path string, now time.Time) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 || now.Sub(info.ModTime()) < staleAge || writableByOthers(info) != "" {
		return false
	}
	lock, err := lockFolder(path)
	if err != nil || lock == nil {
		return false
	}
	f := &folder{path: path, lock: lock}
	return f.remove() == nil
}
