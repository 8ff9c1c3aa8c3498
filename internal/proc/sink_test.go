package proc

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// logged runs writes through a sink whose clock advances by step each, and
// returns the messages.
func logged(rate int, step time.Duration, writes ...string) (messages []string, s *sink) {
	now := time.Unix(1000, 0)
	s = newSink(Spec{
		Name: "p", LogRate: rate,
		Now: func() time.Time { now = now.Add(step); return now },
		Log: func(l LogLine) { messages = append(messages, l.Message) },
	})
	w := &lineWriter{sink: s}
	for _, text := range writes {
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			panic("a line writer never fails")
		}
	}
	_ = w.Close()
	return messages, s
}

func TestSinkLines(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("x", maxLine)
	tests := []struct {
		name   string
		rate   int
		step   time.Duration
		writes []string
		want   []string
	}{
		{"whole lines", 100, 0, []string{"a\nb\n"}, []string{"a", "b"}},
		{"in pieces", 100, 0, []string{"a", "b\nc", "\n"}, []string{"ab", "c"}},
		{"unfinished", 100, 0, []string{"a\nb"}, []string{"a", "b"}},
		{"empty lines", 100, 0, []string{"\n\na\n\n"}, []string{"a"}},
		{"long line", 100, 0, []string{long, "yy", "y\nz\n"}, []string{long + " (3 more bytes)", "z"}},
		{"over the rate", 1, 0, []string{"a\nb\nc\nd\n"}, []string{"a", "b", "dropped 2 lines: the plugin logs more than its rate"}},
		{
			"over the rate for a while", 1, time.Second,
			[]string{"a\nb\nc\nd\n", "e\n"},
			[]string{"a", "b", "dropped 2 lines: the plugin logs more than its rate", "e"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, _ := logged(tt.rate, tt.step, tt.writes...)
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("messages (-got +want):\n%s", diff)
			}
		})
	}
}

// TestSinkRedactsBeforeItCuts: no half of a secret is left where a field, or what is
// kept, was cut within it.
func TestSinkRedactsBeforeItCuts(t *testing.T) {
	t.Parallel()

	var lines []LogLine
	s := newSink(Spec{
		LogRate: 100, Now: time.Now, Log: func(l LogLine) { lines = append(lines, l) },
		Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") },
	})
	w := &lineWriter{sink: s}
	field := strings.Repeat("x", maxFieldLen-8) + "hunter2hunter2"
	if _, err := fmt.Fprintf(w, "{\"@message\":\"m\",\"dsn\":%q}\n", field); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 1 || len(lines[0].Fields) != 1 || strings.Contains(lines[0].Fields[0].Value, "hun") {
		t.Errorf("logged: %.100v", lines)
	}
	long := strings.Repeat("y", maxLine-8) + "hunter2hunter2"
	if _, err := fmt.Fprintf(w, "hunter2%s\n%s\n", strings.Repeat("z", ringSize-len(long)-len("nter2\n\n")), long); err != nil {
		t.Fatal(err)
	}
	for _, line := range s.tail() {
		if strings.Contains(line, "hun") || strings.HasPrefix(line, "nter2") {
			t.Errorf("kept: %.20s … %s", line, line[max(0, len(line)-20):])
		}
	}
}

func TestParseLine(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, in string
		want     LogLine
	}{
		{"text", "hello", LogLine{Message: "hello"}},
		{"text with level", "[WARN] careful", LogLine{Level: slog.LevelWarn, Message: "[WARN] careful"}},
		{"brackets that are no level", "[x] y", LogLine{Message: "[x] y"}},
		{"panic", "panic: no", LogLine{Level: slog.LevelError, Message: "panic: no"}},
		{"hclog", `{"@level":"trace","@message":"m","@module":"a","@timestamp":"t"}`, LogLine{Level: LevelTrace, Message: "m", Fields: []Field{{"module", "a"}}}},
		{"slog", `{"time":"t","level":"ERROR","msg":"m","n":1,"o":{"p":[]}}`, LogLine{Level: slog.LevelError, Message: "m", Fields: []Field{{"n", "1"}, {"o", `{"p":[]}`}}}},
		{"unknown level", `{"level":"loud","msg":"m"}`, LogLine{Message: "m"}},
		{"level of another type", `{"level":4,"msg":"m"}`, LogLine{Message: "m"}},
		{"JSON without message", `{"a":1}`, LogLine{Message: `{"a":1}`}},
		{"message of another type", `{"msg":1}`, LogLine{Message: `{"msg":1}`}},
		{"broken JSON", `{"msg":"m"`, LogLine{Message: `{"msg":"m"`}},
		{"escapes in keys and values", `{"msg":"a\u001b[0mb\n","k\n\u0007":"\u202ev"}`, LogLine{Message: "ab", Fields: []Field{{"k", "v"}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(parseLine([]byte(tt.in)), tt.want); diff != "" {
				t.Errorf("line (-got +want):\n%s", diff)
			}
		})
	}
}

func TestParseLineBoundsFields(t *testing.T) {
	t.Parallel()

	var b strings.Builder
	b.WriteString(`{"msg":"m"`)
	for i := range 100 {
		fmt.Fprintf(&b, `,"k%02d":%q`, i, strings.Repeat("v", 5000))
	}
	line := parseLine([]byte(b.String() + "}"))
	if len(line.Fields) != maxFields || line.Fields[maxFields-1].Key != "k31" || len(line.Fields[0].Value) > maxFieldLen {
		t.Errorf("%d fields, last %q", len(line.Fields), line.Fields[len(line.Fields)-1].Key)
	}
}

func FuzzParseLine(f *testing.F) {
	for _, s := range []string{"", "x", `{"@message":"\u001b","a":{"b":null}}`, `{"msg":"\ud800"}`, "{"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		line := parseLine(raw)
		texts := []string{line.Message}
		for _, field := range line.Fields {
			texts = append(texts, field.Key, field.Value)
		}
		for _, text := range texts {
			if !utf8.ValidString(text) || len(text) > maxLine || strings.ContainsFunc(text, unwanted) {
				t.Fatalf("%q gives %q", raw, text)
			}
		}
		if len(line.Fields) > maxFields {
			t.Fatalf("%d fields", len(line.Fields))
		}
	})
}
