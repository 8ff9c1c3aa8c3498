//go:build unix

package proc

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/grapnelhq/grapnel/phases"
)

// checkPath refuses a program that somebody else could replace: the opened
// file and each folder above it, both of the path as written and of the path
// with its links resolved, must belong to this user or root, and nobody else
// may write them. Sticky folders may be written by all.
func checkPath(path string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return resourceOr(phases.CauseUnsafePath, err, "%s cannot be examined: %w", path)
	}
	if problem := writableByOthers(info); problem != "" {
		return unsafePath(path, path, problem)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return resourceOr(phases.CauseUnsafePath, err, "%s cannot be resolved: %w", path)
	}
	for _, p := range []string{path, resolved} {
		for dir := filepath.Dir(p); ; dir = filepath.Dir(dir) {
			info, err := os.Stat(dir)
			if err != nil {
				return resourceOr(phases.CauseUnsafePath, err, "%s cannot be examined: %w", dir)
			}
			if problem := writableByOthers(info); problem != "" {
				return unsafePath(path, dir, problem)
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return nil
}

// unsafePath names the program, what is wrong, and where.
func unsafePath(program, where, problem string) error {
	return phases.Errorf(phases.CauseUnsafePath, "%s could be replaced by somebody else: %s %s", program, where, problem)
}

// writableByOthers says how somebody else could change a file or the entries
// of a folder, or "". The private group that many systems give each user
// (same number as the user) is not somebody else.
func writableByOthers(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	mode, me := info.Mode(), os.Geteuid()
	if owner := int(st.Uid); owner != 0 && owner != me {
		return fmt.Sprintf("belongs to user %d", owner)
	}
	if info.IsDir() && mode&fs.ModeSticky != 0 {
		return ""
	}
	if mode.Perm()&0o002 != 0 {
		return fmt.Sprintf("may be written by everybody (mode %04o)", mode.Perm())
	}
	private := int(st.Gid) == os.Getegid() && int(st.Gid) == me
	if mode.Perm()&0o020 != 0 && !private {
		return fmt.Sprintf("may be written by group %d (mode %04o)", st.Gid, mode.Perm())
	}
	return ""
}
