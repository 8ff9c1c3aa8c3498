package wire

import (
	"bytes"
	"context"
	"io"
)

// lines splits what a peer writes into lines of at most limit bytes. Memory for a line that does not end is bounded.
type lines struct {
	read  func(p []byte) (int, error)
	limit int

	buf  []byte // buf[r:w] was read and is not used yet
	r, w int
	seen int    // buf[r:seen] holds no line end
	long []byte // the beginning of a line that is longer than buf
}

func newLines(read func(p []byte) (int, error), limit int) *lines {
	return &lines{read: read, limit: limit, buf: make([]byte, laneBuffer)}
}

// next returns the next line without its end: the caller's own, or valid until the following call. After an error that
// passes it goes on where it was. What follows the last line end is not a line.
func (l *lines) next() (line []byte, owned bool, err error) {
	poison(l.buf[:l.r])
	for {
		if end := bytes.IndexByte(l.buf[l.seen:l.w], '\n'); end >= 0 {
			line, owned = l.take(l.seen + end)
			if len(line) > l.limit {
				return nil, false, &tooLong{l.limit, idOfLine(line)}
			}
			return line, owned, nil
		}
		l.seen = l.w
		if have := len(l.long) + l.w - l.r; have > l.limit {
			l.put()
			return nil, false, &tooLong{l.limit, idOfLine(l.long)}
		}
		l.makeRoom()
		n, err := l.read(l.buf[l.w:])
		if l.w += n; err != nil {
			return nil, false, err
		}
	}
}

// take uses up a line that ends at end.
func (l *lines) take(end int) (line []byte, owned bool) {
	line = l.buf[l.r:end]
	l.r, l.seen = end+1, end+1
	if l.long != nil {
		line, l.long = append(l.long, line...), nil
		return line, true
	}
	return line, false
}

// makeRoom makes room for reading: buf[r:w] moves to the front, or is put aside if it fills buf.
func (l *lines) makeRoom() {
	switch {
	case l.r == l.w:
		l.r, l.w, l.seen = 0, 0, 0
	case l.w < len(l.buf):
	case l.r > 0:
		l.w = copy(l.buf, l.buf[l.r:l.w])
		l.r, l.seen = 0, l.w
	default:
		l.put()
	}
}

// put puts buf[r:w] aside.
func (l *lines) put() {
	l.long = append(l.long, l.buf[l.r:l.w]...)
	l.r, l.w, l.seen = 0, 0, 0
}

// buffered reports whether next has a line without reading.
func (l *lines) buffered() bool { return bytes.IndexByte(l.buf[l.seen:l.w], '\n') >= 0 }

// lineStream carries a plugin's frames as lines.
type lineStream struct {
	ctx   context.Context //nolint:containedctx // the session's
	lines *lines
	out   io.Writer
	line  []byte
}

func newLineStream(ctx context.Context, in io.Reader, out io.Writer) *lineStream {
	return &lineStream{ctx: ctx, lines: newLines(in.Read, MaxFrame), out: out}
}

var _ frameStream = (*lineStream)(nil)

func (s *lineStream) Context() context.Context { return s.ctx }

// SendMsg implements frameStream. One goroutine at a time calls it.
func (s *lineStream) SendMsg(m any) error {
	o := m.(*outgoing) //nolint:forcetypeassert // of a carrier
	s.line = append(append(s.line[:0], *o.data...), '\n')
	o.buffer.Free()
	_, err := s.out.Write(s.line)
	if cap(s.line) > largestPooled {
		s.line = nil
	}
	return err
}

func (s *lineStream) RecvMsg(m any) error {
	line, owned, err := s.lines.next()
	if err != nil {
		return err
	}
	if !owned {
		line = bytes.Clone(line)
	}
	*m.(*incoming) = incoming{data: line, owned: true, line: true} //nolint:forcetypeassert // of a reader
	return nil
}
