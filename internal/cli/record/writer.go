package record

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/runtime"
)

// DefaultMaxBytes is how large a file gets where nobody says otherwise.
const DefaultMaxBytes = 256 << 20

// Options say how to record. The zero value is ready.
type Options struct {
	// MaxBytes bounds the file with its earlier content; 0 is DefaultMaxBytes. The few
	// lines about missing exchanges come on top.
	MaxBytes int64
	// Program names who records, for readers of the file.
	Program string
	// Now is the clock of headers and gaps; nil is time.Now.
	Now func() time.Time
	// Entropy makes the session's word; nil is crypto/rand.
	Entropy io.Reader

	_ struct{}
}

// Writer appends exchanges to a file. It is safe for concurrent use.
type Writer struct {
	o       Options
	session string

	mu   sync.Mutex
	file io.WriteCloser
	size int64
	torn bool // the file does not end with a whole line
	// recorded and omitted count exchanges, missing those since the last gap line; why is the last reason.
	recorded, omitted, missing int
	why                        error
	// full says that the bound was reached: from then on everything is omitted.
	full, closed bool
}

var errClosed = errors.New("the record is closed")

// Open opens a file for appending, creates it if necessary, and begins a session. It
// refuses what is not a record, not a regular file, or can be read by others.
func Open(path string, o Options) (*Writer, error) {
	if err := checkKind(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	size, torn, err := checkFile(f)
	if err == nil {
		var w *Writer
		if w, err = newWriter(f, size, torn, o); err == nil {
			return w, nil
		}
	}
	return nil, errors.Join(err, f.Close())
}

// checkKind looks before opening: opening a pipe waits for its other end.
func checkKind(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	}
	return nil
}

// checkFile returns the file's length, and whether its last line is unfinished.
func checkFile(f *os.File) (size int64, torn bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, false, err
	}
	size = info.Size()
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return 0, false, errors.New("it is not a regular file")
	case mode.Perm()&0o077 != 0 && goruntime.GOOS != "windows":
		return 0, false, fmt.Errorf("others may read it (mode %#o), and a record holds what users wrote: chmod 600 it, or take another file", mode.Perm())
	case size == 0:
		return 0, false, nil
	}
	head := make([]byte, len(beginning))
	if _, err := f.ReadAt(head, 0); err != nil || string(head) != beginning {
		return 0, false, errors.New("it exists and is not a record: take another file")
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, size-1); err != nil {
		return 0, false, err
	}
	return size, last[0] != '\n', nil
}

// beginning is how every file begins.
const beginning = `{"grapnel_record":`

func newWriter(f io.WriteCloser, size int64, torn bool, o Options) (*Writer, error) {
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes)
	o.Entropy = cmp.Or(o.Entropy, rand.Reader)
	if o.Now == nil {
		o.Now = time.Now
	}
	word := make([]byte, 8)
	if _, err := io.ReadFull(o.Entropy, word); err != nil {
		return nil, fmt.Errorf("a word for the session: %w", err)
	}
	w := &Writer{o: o, session: hex.EncodeToString(word), file: f, size: size, torn: torn}
	return w, w.note(KindHeader, &Line{Format: Format, Program: o.Program})
}

// Write appends an exchange; see runtime.Options.OnExchange. After an error the exchange is
// omitted and counted; the next one may be written.
func (w *Writer) Write(x *runtime.Exchange) error {
	var b bytes.Buffer
	err := encodeExchange(&b, w.session, x) // outside of the lock: it takes longest
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		err = w.take(b.Bytes())
	}
	if err != nil {
		w.omitted++
		w.missing++
		w.why = err
		return err
	}
	w.recorded++
	return nil
}

// take writes an exchange's line if it fits, and before it a gap line if some are missing.
func (w *Writer) take(line []byte) error {
	if w.closed {
		return errClosed
	}
	if w.full = w.full || w.size+int64(len(line)) > w.o.MaxBytes; w.full {
		return &FullError{w.o.MaxBytes}
	}
	if w.missing > 0 {
		if err := w.note(KindGap, &Line{Omitted: w.missing, Why: w.why.Error()}); err != nil {
			return err
		}
		w.missing = 0
	}
	return w.append(line)
}

// FullError says that a file has reached its bound.
type FullError struct{ MaxBytes int64 }

// Error implements error.
func (e *FullError) Error() string {
	return fmt.Sprintf("the record has reached its bound of %d bytes", e.MaxBytes)
}

func (w *Writer) note(kind Kind, l *Line) error {
	l.Kind, l.Session, l.Begin = kind, w.session, w.o.Now().UTC()
	var b bytes.Buffer
	if err := l.encode(&b); err != nil {
		return err
	}
	return w.append(b.Bytes())
}

// append writes a line by one call, so that lines of several programs do not mix.
func (w *Writer) append(line []byte) error {
	if w.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := w.file.Write(line)
	w.size += int64(n)
	if n > 0 {
		w.torn = n < len(line)
	}
	return err
}

// Counts returns how many exchanges this writer has recorded and omitted, and the last reason for the latter.
func (w *Writer) Counts() (recorded, omitted int, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.recorded, w.omitted, w.why
}

// Close ends the session with its counts, and the file. A second call does nothing.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	end := &Line{Recorded: w.recorded, Omitted: w.omitted}
	if w.why != nil {
		end.Why = w.why.Error()
	}
	return errors.Join(w.note(KindEnd, end), w.file.Close())
}
