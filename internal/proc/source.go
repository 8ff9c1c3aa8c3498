package proc

import (
	"errors"
	"io"
	"os"
	"time"
)

// maxPipe is at least what a pipe holds.
const maxPipe = 1 << 20

// source reads one of the child's pipes to its end. If others keep the pipe open, cutShort ends it too: what is in the pipe
// by then is still read. It is for one goroutine.
type source struct {
	file *os.File
	over bool // cutShort was called
	left int  // bytes to read after that
}

func newSource(file *os.File) *source { return &source{file: file, left: maxPipe} }

// cutShort ends the source of a pipe at what the pipe holds now.
func cutShort(file *os.File) {
	if file.SetReadDeadline(time.Unix(1, 0)) != nil {
		closeQuietly(file) // this system's pipes have no deadlines
	}
}

func (s *source) Read(p []byte) (n int, err error) {
	if !s.over {
		n, err = s.file.Read(p)
		if s.over = errors.Is(err, os.ErrDeadlineExceeded); !s.over {
			return n, err
		}
		_ = s.file.SetReadDeadline(time.Time{}) // it had one
	}
	if s.left == 0 {
		return 0, io.EOF
	}
	raw, err := s.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	if err := raw.Read(func(fd uintptr) bool { n = readNow(fd, p[:min(len(p), s.left)]); return true }); err != nil {
		return 0, err
	}
	if s.left -= n; n == 0 {
		err = io.EOF
	}
	return n, err
}
