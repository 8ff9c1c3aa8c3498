package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// backtestCommands are the commands of scripts about backtests.
func backtestCommands() map[string]func(*testscript.TestScript, bool, []string) {
	home, err := filepath.Abs(filepath.Join("..", "..", "internal", "agents", "testdata", "home"))
	if err != nil {
		panic(err) // there is no working directory
	}
	return map[string]func(*testscript.TestScript, bool, []string){
		"transcripts": func(ts *testscript.TestScript, _ bool, _ []string) { ts.Check(copyTranscripts(home, ts.Getenv("HOME"))) },
		"fifo":        cmdFIFO,
	}
}

// written is the day on which the committed transcripts were made.
var written = regexp.MustCompile(`2026-11-29`)

// copyTranscripts copies those that real agents have written into a home directory, as if it had been yesterday.
func copyTranscripts(from, home string) error {
	yesterday := []byte(time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly))
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		to := filepath.Join(home, below)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return os.WriteFile(to, written.ReplaceAllLiteral(data, yesterday), 0o600)
	})
}
