package transcript_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/transcript"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// FuzzTranscripts holds what the readers say to what an event must have.
func FuzzTranscripts(f *testing.F) {
	home := filepath.Join("..", "testdata", "home")
	err := filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" {
			return err
		}
		data, err := os.ReadFile(path)
		for _, a := range agents.All() {
			if a.Transcripts != nil && strings.HasPrefix(path, a.Transcripts.Dirs(home, func(string) string { return "" })[0]) {
				f.Add(a.Name, string(data))
			}
		}
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("copilot", `{"type":"session.start","data":{"sessionId":"s"}}
{"type":"tool.execution_start","data":{"toolCallId":"c","toolName":"","arguments":{}}}
{"type":"tool.execution_complete","data":{"toolCallId":"c"}}`)
	f.Fuzz(func(t *testing.T, name, text string) {
		a, path := agents.Lookup(name), filepath.Join(t.TempDir(), "rollout-1.jsonl")
		if a == nil || a.Transcripts == nil || name == "opencode" {
			return
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for s, err := range a.Transcripts.Read(path) {
			if err != nil {
				t.Fatal(err)
			}
			if e := &s.Event; e.Step != "" && e.SessionID == "" || e.Step.OfTool() && (e.Call.Tool == "" || e.Call.Arguments != nil && !json.Valid(e.Call.Arguments)) {
				t.Fatalf("no hook is told of such an event: %+v", e)
			}
		}
	})
}

// FuzzValue compares what is found in valid JSON with what encoding/json decodes.
func FuzzValue(f *testing.F) {
	f.Add(`{"a":{"b":[1,"x\\"}",{"text":"y"}],"c":true}, "d" : "\\\\" }`)
	f.Add(`[{"text":"a"},{"text":"b"}]`)
	f.Add(`{"a":`)
	f.Fuzz(func(t *testing.T, text string) {
		v := transcript.Value(text)
		compare(t, v, text)
		for _, e := range v.List() {
			_, _ = e.Texts(), e.At("text", "a")
		}
	})
}

// compare compares the members and elements of a value, if it is JSON without duplicate names.
func compare(t *testing.T, v transcript.Value, text string) {
	t.Helper()

	var object map[string]json.RawMessage
	var list []json.RawMessage
	if jsonscan.Unique([]byte(text)) != nil || text != strings.TrimSpace(text) {
		return
	}
	if json.Unmarshal([]byte(text), &list) == nil {
		got := v.List()
		if len(got) != len(list) {
			t.Fatalf("%d elements instead of %d in %q", len(got), len(list), text)
		}
		for i := range list {
			if string(got[i]) != string(list[i]) {
				t.Fatalf("%q instead of %q in %q", got[i], list[i], text)
			}
			compare(t, got[i], string(list[i]))
		}
		return
	}
	_ = json.Unmarshal([]byte(text), &object) // anything else has no members
	for name, want := range object {
		if strings.Contains(text, `\`) || !utf8.ValidString(text) {
			return // names are compared as they are written
		}
		if got := v.At(name); string(got) != string(want) {
			t.Fatalf("%q is %q instead of %q in %q", name, got, want, text)
		}
		compare(t, v.At(name), string(want))
	}
}

// BenchmarkRead reads files of 100 MB: those of testdata, in which every fourth line is a call or a result, and their lines that say nothing.
func BenchmarkRead(b *testing.B) {
	for name, dir := range map[string]string{"claude-code": ".claude", "codex": ".codex"} {
		a := agents.Lookup(name)
		var all, plain []byte
		err := filepath.WalkDir(filepath.Join("..", "testdata", "home", dir), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			all = append(all, data...)
			for line := range bytes.Lines(data) {
				if !saying.Match(line) {
					plain = append(plain, line...)
				}
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		for _, kind := range []struct {
			name  string
			lines []byte
		}{{"all", all}, {"plain", plain}} {
			b.Run(name+"/"+kind.name, func(b *testing.B) {
				path := filepath.Join(b.TempDir(), "rollout-1.jsonl")
				data := bytes.Repeat(kind.lines, 100<<20/len(kind.lines))
				if err := os.WriteFile(path, data, 0o600); err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(data)))
				said := 0
				for b.Loop() {
					for _, err := range a.Transcripts.Read(path) {
						if said++; err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(bytes.Count(data, []byte("\n"))*b.N)/b.Elapsed().Seconds(), "lines/s")
				b.ReportMetric(float64(said)/b.Elapsed().Seconds(), "said/s")
			})
		}
	}
}

// saying finds lines that say something.
var saying = regexp.MustCompile(`"type":"(user|assistant|session_meta|turn_context|function_call|function_call_output|task_started|task_complete|item_completed|compacted)"`)
