//go:build linux

package fsview

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Descriptors of directories are opened with O_PATH: that needs no right to read the directory, only to pass through
// its parent, and suffices for the *at calls.
const (
	directoryFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
	fileFlags      = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
)

// OpenDir implements [FS].
func (OS) OpenDir(path string) (Dir, error) {
	fd, err := openat(unix.AT_FDCWD, path, directoryFlags)
	if err != nil {
		return nil, err
	}
	return fdDir(fd), nil
}

type fdDir int

func (d fdDir) OpenDir(name string) (Dir, error) {
	fd, err := openat(int(d), name, directoryFlags|unix.O_NOFOLLOW)
	if errors.Is(err, unix.ENOTDIR) {
		// The kernel says the same of a link and of a file.
		if info, statErr := d.Lstat(name); statErr == nil && info.IsLink() {
			err = ErrLink
		}
	}
	if err != nil {
		return nil, err
	}
	return fdDir(fd), nil
}

func (d fdDir) Lstat(name string) (Info, error) {
	var st unix.Stat_t
	for {
		err := plain(unix.Fstatat(int(d), name, &st, unix.AT_SYMLINK_NOFOLLOW))
		if err == nil {
			return statInfo(&st), nil
		}
		if !interrupted(err) {
			return Info{}, err
		}
	}
}

func (d fdDir) Open(name string) (File, error) {
	fd, err := openat(int(d), name, fileFlags)
	if err != nil {
		return nil, err
	}
	return fdFile(fd), nil
}

func (d fdDir) Entries(most int) ([]fs.DirEntry, error) {
	fd, err := openat(int(d), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return entries(os.NewFile(uintptr(fd), "."), most)
}

func (d fdDir) Info() (Info, error) { return fdFile(d).Info() }

func (d fdDir) Close() error { return unix.Close(int(d)) }

type fdFile int

func (f fdFile) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		n, err := unix.Read(int(f), p)
		switch {
		case interrupted(err):
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (f fdFile) Info() (Info, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f), &st); err != nil {
		return Info{}, err
	}
	return statInfo(&st), nil
}

func (f fdFile) Close() error { return unix.Close(int(f)) }

// openat opens relative to a descriptor. Slow file systems may interrupt it.
func openat(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags, 0)
		if !interrupted(err) {
			return fd, plain(err)
		}
	}
}

// plain replaces the most frequent error: most names that are looked for are missing, and comparing with
// fs.ErrNotExist itself is cheaper.
func plain(err error) error {
	if err == unix.ENOENT { //nolint:errorlint // straight from the kernel, never wrapped
		return fs.ErrNotExist
	}
	return err
}

func interrupted(err error) bool {
	return err == unix.EINTR //nolint:errorlint // straight from the kernel, never wrapped
}

func statInfo(st *unix.Stat_t) Info {
	return Info{
		Mode:    fileType(st.Mode),
		Size:    st.Size,
		MTimeMs: st.Mtim.Nano() / 1e6,
		ID:      FileID{Dev: uint64(st.Dev), Ino: st.Ino}, //nolint:unconvert // the type of Dev differs by architecture
	}
}

// fileType distinguishes what callers do: files, directories and links.
func fileType(mode uint32) fs.FileMode {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return 0
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFLNK:
		return fs.ModeSymlink
	default:
		return fs.ModeIrregular
	}
}
