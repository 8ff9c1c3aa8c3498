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
	// dirPrefix and dirRandom hex digits make the names of private directories, which the sweep removes:
	// unlikely by chance.
	dirPrefix = "grapnel-"
	dirRandom = 16
	// socketRoom is the longest path of a socket below the runtime directory: "/grapnel-…/plugin" and a random number.
	socketRoom = len("/"+dirPrefix) + dirRandom + len("/plugin") + 10
	// dirTries bounds the race with the sweep of another host, which may remove a directory before it is locked.
	dirTries = 100
)

var errTaken = errors.New("somebody else has locked or removed it")

// privateDir holds a plugin's sockets and temporary files and is its working directory. Its lock tells other
// hosts that it is in use.
type privateDir struct {
	path   string
	lock   *os.File
	closed bool // removed, or given up
}

// newPrivateDir makes a private directory below runtimeDir or the first usable standard place.
func newPrivateDir(runtimeDir string) (*privateDir, error) {
	var problems []string
	for _, base := range bases(runtimeDir) {
		problem := unusable(base)
		if problem == "" {
			f, err := makePrivateDir(base)
			if err == nil {
				return f, nil
			}
			if IsResource(err) {
				return nil, resourceOr(phases.CauseExecFailed, err, "no private directory: %w")
			}
			problem = err.Error()
		}
		problems = append(problems, problem)
	}
	return nil, phases.Errorf(phases.CauseExecFailed,
		"no directory for the plugin's socket: %s; set XDG_RUNTIME_DIR or TMPDIR to a short private directory that can be written to", strings.Join(problems, "; "))
}

// CheckDirectory fails if no plugin can start because there is no place for its private directory.
func CheckDirectory(ctx context.Context) error {
	f, err := newPrivateDir("")
	if err != nil {
		return err
	}
	return f.remove(ctx)
}

func makePrivateDir(base string) (f *privateDir, err error) {
	for range dirTries {
		f = &privateDir{path: filepath.Join(base, dirName())}
		if err = os.Mkdir(f.path, 0o700); err != nil {
			return nil, err
		}
		if f.lock, err = lockDir(f.path); err == nil {
			return f, nil
		}
		if !errors.Is(err, errTaken) {
			_ = os.Remove(f.path)
			break
		}
	}
	return nil, fmt.Errorf("%s cannot be locked: %w", f.path, err)
}

func dirName() string {
	var b [dirRandom / 2]byte
	_, _ = rand.Read(b[:]) // never fails
	return dirPrefix + hex.EncodeToString(b[:])
}

func isDirName(name string) bool {
	digits, ok := strings.CutPrefix(name, dirPrefix)
	return ok && len(digits) == dirRandom && strings.Trim(digits, "0123456789abcdef") == ""
}

// bases lists where private directories may be made, best first.
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

// unusable says why private directories cannot be made in base, or "".
func unusable(base string) string {
	info, err := os.Stat(base)
	switch {
	case !filepath.IsAbs(base):
		return fmt.Sprintf("%q is not absolute", base)
	case err != nil:
		return err.Error()
	case !info.IsDir():
		return base + " is not a directory"
	case maxSocketPath > 0 && len(base)+socketRoom > maxSocketPath:
		return fmt.Sprintf("%s is too long: a socket in it would have a path of %d bytes, and the system allows %d",
			base, len(base)+socketRoom, maxSocketPath)
	}
	if problem := writableByOthers(info); problem != "" {
		return base + " " + problem
	}
	return ""
}

// remove may be called again, until giveUp, if ctx ended before it was done.
func (f *privateDir) remove(ctx context.Context) error {
	if f.closed {
		return nil
	}
	if err := removeTree(ctx, f.lock, f.path); err != nil {
		return err
	}
	f.giveUp()
	return nil
}

// giveUp unlocks the directory for the next sweep. It is safe to call twice.
func (f *privateDir) giveUp() {
	if !f.closed && f.lock != nil {
		closeQuietly(f.lock)
	}
	f.closed = true
}

// SweepDirectories removes private directories in runtimeDir that no living host has locked, and returns how many.
func SweepDirectories(ctx context.Context, runtimeDir string) (removed int) {
	for _, base := range bases(runtimeDir) {
		if unusable(base) != "" { // others could have moved anything there
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
			if e.IsDir() && isDirName(e.Name()) && removeStale(ctx, base, e.Name()) {
				removed++
			}
		}
	}
	return removed
}

// removeStale removes one directory if it is ours and not locked. A plugin may set its mode and time.
func removeStale(ctx context.Context, base, name string) bool {
	path := filepath.Join(base, name)
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || !ownedByUser(info) {
		return false
	}
	if info.Mode().Perm()&0o700 != 0o700 && unlockDir(base, name) != nil {
		return false
	}
	lock, err := lockDir(path)
	if err != nil || lock == nil {
		return false
	}
	defer closeQuietly(lock)
	return removeTree(ctx, lock, path) == nil
}
