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

// MaxLine is the longest line that is read. An exchange takes two frames of 16 MiB
// at most, and what was asked of the host.
const MaxLine = 256 << 20

// Entry is one exchange of a file, or what is said about those that are missing.
type Entry struct {
	// Line is the number of the line, from 1.
	Line int
	// Session is that of the program that has recorded: starts are numbered anew in
	// each.
	Session string
	// Exchange is what was recorded; nil where LeftOut exchanges are missing.
	Exchange *runtime.Exchange
	LeftOut  int
	Why      string
}

// Reader reads a file from its beginning.
type Reader struct {
	in         *bufio.Reader
	line       int
	sessions   map[string]bool
	unfinished int
	// missing are those of the gaps, by session: the last line counts all of them.
	missing map[string]int
}

// NewReader returns a reader.
func NewReader(r io.Reader) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 64<<10), sessions: map[string]bool{}, missing: map[string]int{}}
}

// Unfinished is how many lines so far were cut off: a program was killed as it wrote
// them, or is still writing.
func (r *Reader) Unfinished() int { return r.unfinished }

// Next returns the next entry; io.EOF at the end. Other errors name the line, and
// are final: a file of which something in the middle cannot be read is not what was
// recorded.
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

// next returns the next line that is not blank.
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

// read reads one line; nil for one that says nothing of exchanges.
func (r *Reader) read(data []byte) (*Entry, error) {
	var l Line
	if err := json.Unmarshal(data, &l); err != nil {
		if r.cutOff(data, err) {
			r.unfinished++
			return nil, nil
		}
		return nil, fmt.Errorf("it is no line of a record: %w", err)
	}
	switch {
	case l.Kind == KindHeader && l.Format != Format:
		return nil, fmt.Errorf("the record has the format %d; this program reads %d", l.Format, Format)
	case l.Kind == KindHeader:
		r.sessions[l.Session] = true
		return nil, nil
	case !r.sessions[l.Session]:
		return nil, fmt.Errorf("the session %q has no header: it is no record, or its beginning is missing", l.Session)
	}
	return r.entry(&l)
}

// cutOff reports whether a line is the beginning of one that would be fine: what is
// wrong with it is its end.
func (r *Reader) cutOff(data []byte, err error) bool {
	wrong, ok := errors.AsType[*json.SyntaxError](err)
	return ok && wrong.Offset >= int64(len(data)) && data[0] == '{' && (len(r.sessions) > 0 || bytes.HasPrefix(data, []byte(beginning)))
}

// entry is what a line of a session says.
func (r *Reader) entry(l *Line) (*Entry, error) {
	entry := &Entry{Line: r.line, Session: l.Session, LeftOut: l.LeftOut, Why: l.Why}
	switch l.Kind {
	case KindGap:
		r.missing[l.Session] += l.LeftOut
		return entry, nil
	case KindEnd:
		if entry.LeftOut -= r.missing[l.Session]; entry.LeftOut <= 0 {
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
