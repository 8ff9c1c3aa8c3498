package proc

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of one log line.
const (
	maxLine     = 4 << 10
	maxFields   = 32
	maxFieldLen = 1 << 10
)

// LevelTrace is hclog's trace level.
const LevelTrace = slog.LevelDebug - 4

// Field is a key and value that a plugin logged: untrusted, so show them only beneath its name.
type Field struct {
	Key, Value string
}

// LogLine is one line of a plugin's stderr, cleaned: at most 4 KiB without control characters or terminal sequences.
type LogLine struct {
	Plugin  string
	Time    time.Time  // the host's arrival time
	Level   slog.Level // the plugin's, mapped to slog's; Info for plain text
	Message string
	Dropped int     // how many lines before this one were dropped because of their rate; the line says so
	Fields  []Field // those of a JSON line, sorted by key; at most 32
}

// Attr groups the fields under the plugin's name, so that none can pass for a field of the host.
func (l LogLine) Attr() slog.Attr {
	attrs := make([]slog.Attr, len(l.Fields))
	for i, f := range l.Fields {
		attrs[i] = slog.String(f.Key, f.Value)
	}
	return slog.Attr{Key: l.Plugin, Value: slog.GroupValue(attrs...)}
}

func parseLine(raw []byte) LogLine {
	if line, ok := parseJSONLine(raw); ok {
		return line
	}
	text := clean(string(raw), maxLine)
	return LogLine{Level: textLevel(text), Message: text}
}

// parseJSONLine reads a line of hclog ("@message") or slog ("msg"). The line's own time is ignored.
func parseJSONLine(raw []byte) (LogLine, bool) {
	if !bytes.HasPrefix(raw, []byte("{")) {
		return LogLine{}, false
	}
	var entry map[string]json.RawMessage
	if json.Unmarshal(raw, &entry) != nil {
		return LogLine{}, false
	}
	names := [3]string{"@message", "@level", "@timestamp"}
	if _, ok := entry[names[0]]; !ok {
		names = [3]string{"msg", "level", "time"}
	}
	var message, level string
	if json.Unmarshal(entry[names[0]], &message) != nil {
		return LogLine{}, false
	}
	if json.Unmarshal(entry[names[1]], &level) != nil {
		level = ""
	}
	for _, name := range names {
		delete(entry, name)
	}
	return LogLine{Level: parseLevel(level), Message: clean(message, maxLine), Fields: fieldsOf(entry)}, true
}

// fieldsOf cleans the other members of a JSON line and keeps those with the first keys.
func fieldsOf(entry map[string]json.RawMessage) []Field {
	var fields []Field
	for key, raw := range entry {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		key = clean(strings.TrimPrefix(key, "@"), maxFieldLen)
		fields = append(fields, Field{Key: key, Value: clean(text, maxFieldLen)})
	}
	slices.SortFunc(fields, func(a, b Field) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value))
	})
	return fields[:min(len(fields), maxFields)]
}

func parseLevel(name string) slog.Level {
	switch strings.ToLower(name) {
	case "trace":
		return LevelTrace
	case "debug":
		return slog.LevelDebug
	case "warn", "warning":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}

// textLevel reads "[WARN] …" as hclog writes it, or the first line of a Go program's death.
func textLevel(text string) slog.Level {
	if isDeath(text) {
		return slog.LevelError
	}
	if rest, ok := strings.CutPrefix(text, "["); ok {
		if name, _, ok := strings.Cut(rest, "]"); ok {
			return parseLevel(name)
		}
	}
	return slog.LevelInfo
}

func isDeath(text string) bool {
	return strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ")
}

// ringSize is how much output is kept for the crash report.
const ringSize = 64 << 10

// sink takes stderr: its lines go to one function at a bounded rate, and the last bytes are kept. Writers may
// share it.
type sink struct {
	name   string
	log    func(LogLine)
	now    func() time.Time
	redact func(string) string // redact may be nil

	mu      sync.Mutex
	kept    []byte // the last output, at most twice ringSize
	rate    *rate.Limiter
	pending int // dropped since the last report
}

func newSink(s Spec) *sink {
	return &sink{
		name: s.Name, log: s.Log, now: s.Now, redact: s.Redact,
		rate: rate.NewLimiter(rate.Limit(s.LogRate), 2*s.LogRate),
	}
}

// tail returns the kept lines, cleaned, oldest first.
func (s *sink) tail() []string {
	s.mu.Lock()
	raw := slices.Clone(s.kept[max(0, len(s.kept)-ringSize):])
	s.mu.Unlock()
	// The first line of a full ring has lost its beginning, and may begin with half of a secret.
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

// shown redacts a text. It is called before cleaning, because a cut secret is not recognized, and after it,
// because a secret with control characters in it is recognized only then.
func (s *sink) shown(text string) string {
	if s.redact == nil {
		return text
	}
	return s.redact(text)
}

func (s *sink) keep(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retain([]byte("\n" + text + "\n"))
}

// retain appends to what is kept.
func (s *sink) retain(p []byte) {
	p = p[max(0, len(p)-ringSize):]
	if len(s.kept)+len(p) > 2*ringSize {
		s.kept = append(s.kept[:0], s.kept[len(s.kept)-ringSize:]...)
	}
	s.kept = append(s.kept, p...)
}

// close ends the logging; later lines are only kept.
func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = func(LogLine) {}
}

// emit logs one raw line or counts it as dropped. The lock is held so that lines stay in order.
func (s *sink) emit(now time.Time, raw []byte, more int) {
	if !s.rate.AllowN(now, 1) {
		s.pending++
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

// lineWriter splits one stream into lines. It is for one goroutine; its sink may be shared.
type lineWriter struct {
	sink    *sink
	partial []byte // the beginning of a line, at most maxLine bytes
	more    int    // bytes of that line beyond maxLine
}

// Write reads the clock once a call: a flood must cost little.
func (w *lineWriter) Write(p []byte) (int, error) {
	s := w.sink
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retain(p)
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

// Close logs an unfinished last line.
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

func (w *lineWriter) add(text []byte) {
	kept := min(len(text), maxLine-len(w.partial))
	w.partial = append(w.partial, text[:kept]...)
	w.more += len(text) - kept
}

func (w *lineWriter) flush(now time.Time) {
	w.sink.emit(now, w.partial, w.more)
	w.partial, w.more = w.partial[:0], 0
}
