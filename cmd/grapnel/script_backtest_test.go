package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
		"transcripts": func(ts *testscript.TestScript, _ bool, args []string) {
			for _, agent := range []string{".claude", ".codex"} {
				ts.Check(copyTranscripts(filepath.Join(home, agent), filepath.Join(ts.Getenv("HOME"), agent), append(args, theirDir)[0]))
			}
		},
		"corpus": func(ts *testscript.TestScript, _ bool, _ []string) {
			ts.Check(os.CopyFS(ts.Getenv("HOME"), os.DirFS(home)))
		},
		"fifo": cmdFIFO,
	}
}

// The day on which the committed transcripts were made, and the project.
const (
	written  = "2026-11-29"
	theirDir = "/ada/src/app"
)

// copyTranscripts copies those that a real agent has written into another directory, as if it had been yesterday in a project.
func copyTranscripts(from, into, dir string) error {
	adapted := strings.NewReplacer(written, time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly), theirDir, dir)
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
		to := filepath.Join(into, below)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return os.WriteFile(to, []byte(adapted.Replace(string(data))), 0o600)
	})
}
