//go:build unix

package owned

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	hasModes = true
	noFollow = syscall.O_NOFOLLOW
	nonBlock = syscall.O_NONBLOCK
)

// Other reports whether something belongs to neither this process's user nor root.
func Other(info os.FileInfo) (uid int, other bool) {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	uid = int(owner.Uid)
	return uid, uid != 0 && uid != os.Geteuid()
}

const mostLinks = 40 // as many as Linux follows

// Dir refuses a directory in which another user could replace our files: it, each directory above it and each directory
// that a link on the way leads through belong to this user or root and are writable by nobody else, or sticky.
func Dir(dir string) error {
	path, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	at, links := "/", 0
	for rest := path; ; {
		if err := one(at, true); err != nil || rest == "" {
			return err
		}
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		target, err := readLink(next)
		switch {
		case err != nil:
			return err
		case target == "":
			at = next
			continue
		case filepath.IsAbs(target):
			at = "/"
		}
		if links++; links > mostLinks {
			return errors.New(dir + " leads through too many links; name the directory itself")
		}
		rest = target + "/" + rest
	}
}

// readLink returns the target of a link, and "" for anything else.
func readLink(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", plain(path, err)
	}
	if info.Mode()&os.ModeSymlink == 0 {
		return "", nil
	}
	if uid, other := Other(info); other {
		return "", errors.New("the link " + path + " belongs to another user (" + strconv.Itoa(uid) + "), who could let it lead elsewhere; choose a directory of your own")
	}
	target, err := os.Readlink(path)
	if err != nil {
		return "", plain(path, err)
	}
	return target, nil
}

// Exclusive is [Dir] for a directory in which another user may not even create files.
func Exclusive(dir string) error {
	if err := Dir(dir); err != nil {
		return err
	}
	return one(dir, false)
}

// one checks a directory without its parents.
func one(dir string, stickyIsFine bool) error {
	info, err := os.Stat(dir)
	if err != nil {
		return plain(dir, err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() {
		return errors.New(dir + " is not a directory")
	}
	me, mode := os.Geteuid(), info.Mode()
	ownGroup := int(owner.Gid) == os.Getegid() && int(owner.Gid) == me
	uid, other := Other(info)
	switch {
	case other:
		return errors.New("the directory " + dir + " belongs to another user (" + strconv.Itoa(uid) + "), who could replace what is in it; choose a directory of your own")
	case stickyIsFine && mode&os.ModeSticky != 0:
		return nil
	case mode.Perm()&0o002 != 0 || mode.Perm()&0o020 != 0 && !ownGroup:
		return errors.New("others may write to the directory " + dir + " (mode " + octal(mode) + ") and could replace what is in it; choose a directory of your own")
	}
	return nil
}

// Open opens a file that belongs to this user alone, and makes it if flags say so. It follows no link, and does not wait
// for a pipe's other end.
func Open(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|noFollow|nonBlock, 0o600)
	if err != nil {
		return nil, plain(path, err)
	}
	info, err := f.Stat()
	if err == nil {
		owner, ok := info.Sys().(*syscall.Stat_t)
		if ok && info.Mode().IsRegular() && int(owner.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0 {
			return f, nil
		}
		err = errors.New(path + " is not a file that this user alone may open; remove it")
	}
	return nil, errors.Join(err, f.Close())
}
