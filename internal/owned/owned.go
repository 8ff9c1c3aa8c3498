// Package owned refuses files, directories and sockets that another user made, reads or could replace. The user may be
// this one or root. It links nothing but the basics, because grapnel-hook starts for every event of an agent.
//
// On systems without file modes it relies on the access rights of the directory.
//
// Stability: internal.
package owned

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// MostSecret bounds a file that holds a secret.
const MostSecret = 64 << 10

// Socket refuses the path of a unix socket at which another user could listen now or in a moment: it is absolute, the
// socket is this user's, and nobody else may write to its directory, not even to a sticky one such as /tmp. A socket that
// is not there is [os.ErrNotExist].
func Socket(path string) error {
	if !filepath.IsAbs(path) {
		return errors.New("the path of the socket " + strconv.Quote(path) + " is not absolute, so it would depend on the directory; give the whole path")
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if err := Exclusive(filepath.Dir(path)); err != nil {
		return err
	}
	if info.Mode()&os.ModeSocket == 0 {
		return errors.New(path + " is not a socket; remove it, or name another one")
	}
	if uid, other := Other(info); other {
		return errors.New(path + " belongs to another user (" + strconv.Itoa(uid) + "), who would decide; remove it, or name another socket")
	}
	return nil
}

// Secret reads a private key or a token from a file that only this user may read. It follows links and reads pipes, such as
// those of a shell's <(command), but waits for nobody to open one.
func Secret(path string) ([]byte, error) { return read(path, 0, os.ModeNamedPipe) }

// Token is [Secret] for a file that nobody named: it is neither a link nor a pipe.
func Token(path string) ([]byte, error) { return read(path, noFollow, 0) }

func read(path string, flags int, allowed os.FileMode) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlock|flags, 0)
	if err != nil {
		return nil, plain(path, err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err == nil && info.Mode().Type()&^allowed != 0 {
		err = errors.New(path + " is not a regular file; name one that holds the secret")
	}
	if err == nil {
		err = CheckSecret(path, info)
	}
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, MostSecret+1))
	switch {
	case err != nil:
		return nil, plain(path, err)
	case len(data) > MostSecret:
		return nil, errors.New(path + " is larger than 64 KiB, so it holds no secret")
	}
	return data, nil
}

// CheckSecret refuses an opened file that others may read or change; the error is an [os.ErrPermission] then.
func CheckSecret(path string, info os.FileInfo) error {
	uid, other := Other(info)
	mode := info.Mode()
	switch {
	case other:
		return refused(path + " belongs to another user (" + strconv.Itoa(uid) + "), who could change it: remove it, or run chown on it")
	case hasModes && mode.Perm()&0o077 != 0:
		return refused(path + " has the mode " + octal(mode) + ", so others can read or change it: run chmod 600 on it, and replace the secret if another user may have read it")
	}
	return nil
}

// File refuses a file that another user owns or may write to.
func File(path string, info os.FileInfo) error {
	if uid, other := Other(info); other || hasModes && info.Mode().Perm()&0o002 != 0 {
		return errors.New(path + " belongs to another user (" + strconv.Itoa(uid) + "), or others may write to it (mode " + octal(info.Mode()) + "); remove it, or choose another")
	}
	return nil
}

// refused is why a secret is not taken.
type refused string

func (e refused) Error() string { return string(e) }

func (e refused) Unwrap() error { return os.ErrPermission }

// plain is an error with the path in front, and without what was called.
func plain(path string, err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		err = p.Err
	}
	return &fileError{path, err}
}

type fileError struct {
	path string
	err  error
}

func (e *fileError) Error() string { return e.path + ": " + e.err.Error() }

func (e *fileError) Unwrap() error { return e.err }

func octal(mode os.FileMode) string {
	bits := int64(mode.Perm())
	if mode&os.ModeSticky != 0 {
		bits |= 0o1000
	}
	text := strconv.FormatInt(bits, 8)
	return "0000"[min(4, len(text)):] + text
}
