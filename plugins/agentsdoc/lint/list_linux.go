//go:build linux

package lint

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bufferSize is how much of a folder the kernel tells at once.
const bufferSize = 32 << 10

// folder is the descriptor of an open folder. Bare system calls relative to the
// parent's descriptor cost less than the standard library's, which opens by the
// whole path, and cannot be led astray by a link that appears on the way.
type folder int

const listFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NONBLOCK

// openTop opens the folder at a path, links followed.
func openTop(path string) (folder, error) { return openFolder(unix.AT_FDCWD, path, listFlags) }

// child opens a folder in this one.
func (f folder) child(name string) (folder, error) {
	child, err := openFolder(int(f), name, listFlags|unix.O_NOFOLLOW)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		err = errReplaced
	}
	return child, err
}

// openFolder opens, as often as it is interrupted.
func openFolder(at int, path string, flags int) (folder, error) {
	for {
		fd, err := unix.Openat(at, path, flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return folder(fd), err
		}
	}
}

// close closes it. There is nothing to do about a failure.
func (f folder) close() { _ = unix.Close(int(f)) }

// kind asks for the kind of an entry.
func (f folder) kind(name string) entryKind {
	var st unix.Stat_t
	if err := unix.Fstatat(int(f), name, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return folderEntry
	}
	return otherEntry
}

// Offsets in the kernel's record of an entry.
const (
	offLength = int(unsafe.Offsetof(unix.Dirent{}.Reclen))
	offType   = int(unsafe.Offsetof(unix.Dirent{}.Type))
	offName   = int(unsafe.Offsetof(unix.Dirent{}.Name))
)

// each calls see for each entry. The name is good until see returns.
func (f folder) each(l *lister, see func(name []byte, kind entryKind)) error {
	if l.buf == nil {
		l.buf = make([]byte, bufferSize)
	}
	for {
		n, err := unix.ReadDirent(int(f), l.buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n <= 0:
			return nil
		}
		for buf := l.buf[:n]; len(buf) > offName; {
			size := int(binary.NativeEndian.Uint16(buf[offLength:]))
			if size <= offName || size > len(buf) {
				break
			}
			if name := entryName(buf[offName:size]); name != nil {
				see(name, kindOf(buf[offType]))
			}
			buf = buf[size:]
		}
	}
}

// entryName is the name in a record, without what fills it up; nil for the folder
// itself and its parent.
func entryName(field []byte) []byte {
	n := 0
	for n < len(field) && field[n] != 0 {
		n++
	}
	if name := field[:n]; string(name) != "." && string(name) != ".." && n > 0 {
		return name
	}
	return nil
}

// kindOf translates the kernel's kinds.
func kindOf(t byte) entryKind {
	switch t {
	case unix.DT_DIR:
		return folderEntry
	case unix.DT_UNKNOWN:
		return unknownEntry
	default:
		return otherEntry
	}
}
