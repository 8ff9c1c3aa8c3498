//go:build linux

package lint

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
)

// directory is an open directory. A child is opened relative to its parent's descriptor, so that no new link leads
// elsewhere.
type directory struct{ file *os.File }

func openTop(path string) (directory, error) { return openDirectory(unix.AT_FDCWD, path, path, 0) }

func (d directory) child(name string) (directory, error) {
	child, err := openDirectory(int(d.file.Fd()), name, chain.Below(d.file.Name(), name), unix.O_NOFOLLOW)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		err = errReplaced
	}
	return child, err
}

func openDirectory(at int, name, path string, flags int) (directory, error) {
	for {
		fd, err := unix.Openat(at, name, flags|unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return directory{}, err
		default:
			return directory{os.NewFile(uintptr(fd), path)}, nil
		}
	}
}

func (d directory) read() ([]fs.DirEntry, error) { return d.file.ReadDir(-1) }
func (d directory) close()                       { _ = d.file.Close() }
