package proc

import (
	"bytes"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// ringSize is how much of a plugin's last output is kept for its crash report.
const ringSize = 64 << 10

// sink takes what a plugin writes to stderr. Its lines go to one function, at
// a bounded rate; the last bytes are kept, whatever the rate. Writers for
// several streams may share it.
type sink struct {
	name string
	log  func(LogLine)
	now  func() time.Time
	// redact takes secrets out of texts; nil leaves them.
	redact func(string) string

	mu      sync.Mutex
	ring    ring
	bucket  bucket
	pending int // dropped since the last report
	dropped int // dropped in all
}

// newSink returns the sink of one plugin. The spec has its defaults.
func newSink(s Spec) *sink {
	return &sink{
		name: s.Name, log: s.Log, now: s.Now, redact: s.Redact,
		bucket: bucket{rate: float64(s.LogRate), burst: float64(2 * s.LogRate)},
	}
}

// tail returns the cleaned lines that the ring holds, oldest first.
func (s *sink) tail() []string {
	s.mu.Lock()
	raw := s.ring.bytes()
	s.mu.Unlock()
	// The first line of a full ring has lost its beginning, and may begin with half of
	// a secret.
	if _, rest, found := bytes.Cut(raw, []byte{'\n'}); found && len(raw) == ringSize {
		raw = rest
	}

	var lines []string
	for line := range bytes.Lines(raw) {
		if text := clean(s.shown(string(line)), maxLine); text != "" {
			lines = append(lines, s.shown(text))
		}
	}
	return lines
}

// shown is a text without secrets. Who cleans a text calls it before, since a
// secret that was cut is not found any more, and after, since one that control
// characters were strewn in was not found until then.
func (s *sink) shown(text string) string {
	if s.redact == nil {
		return text
	}
	return s.redact(text)
}

// keep adds a text to what is kept, without logging it.
func (s *sink) keep(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring.write([]byte("\n" + text + "\n"))
}

// droppedLines returns how many lines were not logged because of the rate.
func (s *sink) droppedLines() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// close ends the logging; later lines are only kept.
func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = func(LogLine) {}
}

// emit logs one raw line, or counts it when the rate is used up. The lock is
// held during the call: lines must not overtake each other.
func (s *sink) emit(now time.Time, raw []byte, more int) {
	if !s.bucket.take(now) {
		s.pending++
		s.dropped++
		return
	}
	s.report(now)
	if s.redact != nil {
		raw = []byte(s.redact(string(raw)))
	}
	line := parseLine(raw)
	if line.Message == "" && len(line.Fields) == 0 {
		return
	}
	line.Message = s.shown(line.Message)
	for i, f := range line.Fields {
		line.Fields[i] = Field{Key: s.shown(f.Key), Value: s.shown(f.Value)}
	}
	if more > 0 {
		line.Message += fmt.Sprintf(" (%d more bytes)", more)
	}
	line.Plugin, line.Time = s.name, now
	s.log(line)
}

// report tells of lines dropped since the last report.
func (s *sink) report(now time.Time) {
	if s.pending == 0 {
		return
	}
	s.log(LogLine{
		Plugin: s.name, Time: now, Level: slog.LevelWarn, Dropped: s.pending,
		Message: fmt.Sprintf("dropped %d lines: the plugin logs more than its rate", s.pending),
	})
	s.pending = 0
}

// lineWriter splits one stream into the lines of a sink. Close it when the
// stream ends. It is for one goroutine; its sink may be shared.
type lineWriter struct {
	sink    *sink
	partial []byte // the beginning of a line, at most maxLine bytes
	more    int    // bytes of that line beyond maxLine
}

// Write implements io.Writer; it never fails. The clock is read once a call:
// a flood must cost little.
func (w *lineWriter) Write(p []byte) (int, error) {
	s := w.sink
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring.write(p)
	now, rest := s.now(), p
	for {
		line, after, found := bytes.Cut(rest, []byte{'\n'})
		w.add(line)
		if !found {
			return len(p), nil
		}
		w.flush(now)
		rest = after
	}
}

// Close logs an unfinished last line and reports what was dropped. It implements io.Closer.
func (w *lineWriter) Close() error {
	s := w.sink
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if len(w.partial) > 0 {
		w.flush(now)
	}
	s.report(now)
	return nil
}

// add appends to the current line within its bound.
func (w *lineWriter) add(text []byte) {
	kept := min(len(text), maxLine-len(w.partial))
	w.partial = append(w.partial, text[:kept]...)
	w.more += len(text) - kept
}

// flush hands the current line to the sink and begins the next.
func (w *lineWriter) flush(now time.Time) {
	w.sink.emit(now, w.partial, w.more)
	w.partial, w.more = w.partial[:0], 0
}

// bucket is a token bucket. It is full at its first use.
type bucket struct {
	rate, burst float64 // tokens a second, tokens at most
	tokens      float64
	last        time.Time
}

// take takes a token if there is one.
func (b *bucket) take(now time.Time) bool {
	if b.last.IsZero() {
		b.tokens, b.last = b.burst, now
	}
	// A clock that jumps back gives nothing until it is where it was.
	if d := now.Sub(b.last); d > 0 {
		b.tokens, b.last = min(b.burst, b.tokens+b.rate*d.Seconds()), now
	}
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// ring keeps the last ringSize bytes written to it.
type ring struct {
	buf  []byte
	next int // where the next byte goes, once buf is full
}

// write appends p, over the oldest bytes if need be.
func (r *ring) write(p []byte) {
	if len(p) >= ringSize {
		r.buf = append(r.buf[:0], p[len(p)-ringSize:]...)
		r.next = 0
		return
	}
	if room := ringSize - len(r.buf); room > 0 {
		n := min(room, len(p))
		r.buf = append(r.buf, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(r.buf[r.next:], p)
		r.next = (r.next + n) % ringSize
		p = p[n:]
	}
}

// bytes returns a copy of what is kept, oldest first.
func (r *ring) bytes() []byte {
	out := make([]byte, 0, len(r.buf))
	out = append(out, r.buf[r.next:]...)
	return append(out, r.buf[:r.next]...)
}
