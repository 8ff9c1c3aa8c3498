package proc

import (
	"bytes"
	"cmp"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Bounds of one log line.
const (
	maxLine     = 4 << 10
	maxFields   = 32
	maxFieldLen = 1 << 10
)

// LevelTrace is the level of hclog's trace lines, which slog has no name for.
const LevelTrace = slog.LevelDebug - 4

// Field is one key and value that a plugin logged. Both are its own words:
// show them only beneath its name.
type Field struct {
	Key, Value string
}

// LogLine is one line of a plugin's stderr, cleaned: one line of text without
// control characters or terminal sequences, at most 4 KiB.
type LogLine struct {
	// Plugin is the operator's name of the plugin.
	Plugin string
	// Time is the host's, taken when the line arrived.
	Time time.Time
	// Level is what the plugin said, mapped to the host's levels; Info for
	// plain text.
	Level   slog.Level
	Message string
	// Dropped is how many lines before this one were dropped because of their rate; it
	// is set where the line says so.
	Dropped int
	// Fields are those of a JSON line, sorted by key; at most 32.
	Fields []Field
}

// Attr returns the fields as one group under the plugin's name, so that none
// of them can pass for a field of the host.
func (l LogLine) Attr() slog.Attr {
	attrs := make([]slog.Attr, len(l.Fields))
	for i, f := range l.Fields {
		attrs[i] = slog.String(f.Key, f.Value)
	}
	return slog.Attr{Key: l.Plugin, Value: slog.GroupValue(attrs...)}
}

// parseLine makes a log line of raw text: hclog's or slog's JSON, or anything
// else as it stands.
func parseLine(raw []byte) LogLine {
	if line, ok := parseJSONLine(raw); ok {
		return line
	}
	text := clean(string(raw), maxLine)
	return LogLine{Level: textLevel(text), Message: text}
}

// parseJSONLine reads one line of hclog ("@message") or slog ("msg"). What a
// line says about its time is left out: the host's clock counts.
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

// fieldsOf cleans the remaining members of a JSON line. Of too many, those
// with the first keys stay, so that the choice does not depend on chance.
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

// parseLevel maps a level's name; what is none counts as Info.
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

// textLevel finds the level of a plain line: "[WARN] …" as hclog writes it, or
// the first line of a Go program's death.
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

// isDeath reports whether a line is the first of a Go program's last words.
func isDeath(text string) bool {
	return strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ")
}
