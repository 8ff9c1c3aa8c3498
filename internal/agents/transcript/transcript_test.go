package transcript_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agents"
)

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
