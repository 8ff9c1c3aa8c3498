package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestDemo: everything that the demo promises is seen, and each command that it names shows it.
func TestDemo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a demo")
	demo := func(args ...string) (code int, out, errs string) {
		var stdout, stderr bytes.Buffer
		code = run(t.Context(), args, streams{in: strings.NewReader(""), out: &stdout, err: &stderr})
		return code, stdout.String(), stderr.String()
	}
	code, out, errs := demo("demo", "--dir", dir, "--json")
	var r demoResult
	if err := json.Unmarshal([]byte(out), &r); code != exitOK || err != nil || r.Dir != dir || lateStart.ReplaceAllString(errs, "") != "" {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	if info, err := os.Stat(filepath.Join(dir, demoForged)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the copy of the log: %v, %v", info, err)
	}
	shows := []struct{ title, text string }{
		{"Instructions with owners", "agents_md     agentsdoc"},
		{"A call that was rewritten", "house.shallow"},
		{"A call that was denied", "house.guard (deny no_shell)"},
		{"A section that was cut", "subscription 80/161"},
		{"A plugin that hangs", "timed_out"},
		{"A memory", "Lisbon"},
		{"What broke the cache", "agents_md      section_text      agentsdoc"},
		{"A record that was tampered with", "BROKEN: altered"},
	}
	if len(r.Steps) != len(shows) {
		t.Fatalf("%d steps, want %d", len(r.Steps), len(shows))
	}
	t.Setenv("GRAPNEL_CONFIG", r.Config)
	if seen := r.Steps[3].Seen; !strings.Contains(seen, " 80 of 161 characters") {
		t.Errorf("the cut is shown as %q", seen)
	}
	for i, want := range shows {
		s := r.Steps[i]
		args := strings.Fields(strings.ReplaceAll(s.Command, "'", ""))
		if strings.Contains(s.Command, "'") { // the path with a blank
			_, store, _ := strings.Cut(s.Command, "'")
			store, rest, _ := strings.Cut(store, "'")
			args = append([]string{"grapnel", "--store", store}, strings.Fields(rest)...)
		}
		_, out, errs := demo(args[1:]...)
		if s.Title != want.title || !s.OK || strings.Contains(s.Seen, "\n") || !strings.Contains(out, want.text) {
			t.Errorf("%s: %s\n%s shows no %q:\n%s%s", s.Title, s.Seen, s.Command, want.text, out, errs)
		}
	}
	if code, _, errs := demo("demo", "--dir", dir); code != exitUsage || !strings.Contains(errs, "it is not empty") {
		t.Errorf("a directory with files: exit code %d, %s", code, errs)
	}
}
