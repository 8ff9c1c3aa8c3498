package proc

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

const (
	// folderPrefix begins the names of all private folders; folderRandom hex
	// digits follow. The sweep removes folders with such a name, so nobody may
	// give one to theirs by chance.
	folderPrefix = "grapnel-"
	folderRandom = 16
	// socketRoom is what the longest path of a socket needs beyond the runtime
	// folder: the folder, and "/plugin" with a random number.
	socketRoom = len("/"+folderPrefix) + folderRandom + len("/plugin") + 10
	// folderTries is how often newFolder makes a folder that the sweep of another
	// host removes before it is locked.
	folderTries = 100
)

// errTaken says that somebody else has locked or removed a folder.
var errTaken = errors.New("somebody else has locked or removed it")

// folder is the private folder of one plugin process: its sockets, its
// temporary files and its working folder. While it is in use it is locked, so
// that other hosts can tell it from one that was left behind.
type folder struct {
	path   string
	lock   *os.File
	closed bool // removed, or given up
}

// newFolder makes a private folder below runtimeDir, or below the first fit
// one of the standard places.
func newFolder(runtimeDir string) (*folder, error) {
	base, err := chooseBase(runtimeDir)
	if err != nil {
		return nil, err
	}
	for range folderTries {
		f := &folder{path: filepath.Join(base, folderName())}
		if err = os.Mkdir(f.path, 0o700); err != nil {
			return nil, resourceOr(phases.CauseExecFailed, err, "no private folder: %w")
		}
		if f.lock, err = lockFolder(f.path); err == nil {
			return f, nil
		}
		if !errors.Is(err, errTaken) {
			_ = os.Remove(f.path)
			break
		}
	}
	return nil, resourceOr(phases.CauseExecFailed, err, "private folder cannot be locked: %w")
}

// folderName returns a new name for a private folder.
func folderName() string {
	var b [folderRandom / 2]byte
	_, _ = rand.Read(b[:]) // never fails
	return folderPrefix + hex.EncodeToString(b[:])
}

// isFolderName reports whether a name is one that folderName may return.
func isFolderName(name string) bool {
	digits, ok := strings.CutPrefix(name, folderPrefix)
	return ok && len(digits) == folderRandom && strings.Trim(digits, "0123456789abcdef") == ""
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

// remove deletes the folder with all that is in it. When ctx ends before that
// is done, the folder stays locked, and remove may be called again, until giveUp.
func (f *folder) remove(ctx context.Context) error {
	if f.closed {
		return nil
	}
	if err := removeTree(ctx, f.lock, f.path); err != nil {
		return err
	}
	f.giveUp()
	return nil
}

// giveUp unlocks the folder: what is left of it is the next sweep's. It is safe to
// call twice.
func (f *folder) giveUp() {
	if !f.closed && f.lock != nil {
		closeQuietly(f.lock)
	}
	f.closed = true
}

// sweepFolders removes private folders that no living host has locked, and
// returns how many. It stops early when ctx ends.
func sweepFolders(ctx context.Context, runtimeDir string) (removed int) {
	for _, base := range bases(runtimeDir) {
		if unfit(base) != "" { // others could have moved anything there
			continue
		}
		entries, err := os.ReadDir(base)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if ctx.Err() != nil {
				return removed
			}
			if e.IsDir() && isFolderName(e.Name()) && removeStale(ctx, base, e.Name()) {
				removed++
			}
		}
	}
	return removed
}

// removeStale removes one folder if it is ours and not locked. A plugin may
// have given its folder any mode and any time: they say nothing.
func removeStale(ctx context.Context, base, name string) bool {
	path := filepath.Join(base, name)
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || !ownedByUser(info) {
		return false
	}
	if info.Mode().Perm()&0o700 != 0o700 && unlockFolder(base, name) != nil {
		return false
	}
	lock, err := lockFolder(path)
	if err != nil || lock == nil {
		return false
	}
	defer closeQuietly(lock)
	return removeTree(ctx, lock, path) == nil
}
