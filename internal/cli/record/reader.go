package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/grapnelhq/grapnel/runtime"
)

// MaxLine is the longest line that is read. An exchange has two frames of 16 MiB at most, and its host calls.
const MaxLine = 256 << 20

// Entry is one exchange of a file, or a number of missing ones.
type Entry struct {
	// Line is the number of the line, from 1.
	Line int
	// Session is the recording program's: starts are numbered in each session.
	Session string
	// Exchange is what was recorded; nil where Omitted exchanges are missing.
	Exchange *runtime.Exchange
	Omitted  int
	Why      string
}

// Reader reads a file from its beginning.
type Reader struct {
	in         *bufio.Reader
	line       int
	sessions   map[string]bool
	unfinished int
	missing    map[string]int // counts the exchanges of gaps, by session: the last line counts them again
}

// NewReader returns a reader.
func NewReader(r io.Reader) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 64<<10), sessions: map[string]bool{}, missing: map[string]int{}}
}

// Unfinished is how many lines so far were cut off: their program was killed, or is still writing.
func (r *Reader) Unfinished() int { return r.unfinished }

// Next returns the next entry; io.EOF at the end. Other errors name the line, and are final.
func (r *Reader) Next() (*Entry, error) {
	for {
		data, err := r.next()
		if err != nil {
			return nil, err
		}
		entry, err := r.read(data)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", r.line, err)
		}
		if entry != nil {
			return entry, nil
		}
	}
}

func (r *Reader) next() ([]byte, error) {
	for {
		var line []byte
		for {
			part, err := r.in.ReadSlice('\n')
			line = append(line, part...)
			if err == nil || errors.Is(err, io.EOF) && len(line) > 0 {
				break
			}
			switch {
			case !errors.Is(err, bufio.ErrBufferFull):
				return nil, err
			case len(line) > MaxLine:
				return nil, fmt.Errorf("line %d: it is longer than %d bytes", r.line+1, MaxLine)
			}
		}
		r.line++
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

// read reads one line; nil for one without exchanges.
func (r *Reader) read(data []byte) (*Entry, error) {
	var l Line
	if err := json.Unmarshal(data, &l); err != nil {
		if r.cutOff(data, err) {
			r.unfinished++
			return nil, nil
		}
		return nil, fmt.Errorf("it is not a line of a record: %w", err)
	}
	switch {
	case l.Kind == KindHeader && l.Format != Format:
		return nil, fmt.Errorf("the record has the format %d; this program reads %d", l.Format, Format)
	case l.Kind == KindHeader:
		r.sessions[l.Session] = true
		return nil, nil
	case !r.sessions[l.Session]:
		return nil, fmt.Errorf("the session %q has no header: it is not a record, or its beginning is missing", l.Session)
	}
	return r.entry(&l)
}

// cutOff reports whether a line is the beginning of a valid one.
func (r *Reader) cutOff(data []byte, err error) bool {
	wrong, ok := errors.AsType[*json.SyntaxError](err)
	return ok && wrong.Offset >= int64(len(data)) && data[0] == '{' && (len(r.sessions) > 0 || bytes.HasPrefix(data, []byte(beginning)))
}

func (r *Reader) entry(l *Line) (*Entry, error) {
	entry := &Entry{Line: r.line, Session: l.Session, Omitted: l.Omitted, Why: l.Why}
	switch l.Kind {
	case KindGap:
		r.missing[l.Session] += l.Omitted
		return entry, nil
	case KindEnd:
		if entry.Omitted -= r.missing[l.Session]; entry.Omitted <= 0 {
			return nil, nil
		}
		return entry, nil
	default:
		x, err := l.exchange()
		if err != nil {
			return nil, err
		}
		return &Entry{Line: r.line, Session: l.Session, Exchange: x}, nil
	}
}
