package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// FuzzPosition asserts that a place is always inside the text.
func FuzzPosition(f *testing.F) {
	f.Add([]byte("{\n\"a\": }"), 8)
	f.Add([]byte("\xff\n\n"), -3)
	f.Fuzz(func(t *testing.T, data []byte, offset int) {
		line, column := position(data, offset)
		lines := strings.Split(string(data), "\n")
		if line < 1 || line > len(lines) || column < 1 || column > len(lines[line-1])+1 {
			t.Errorf("position %d:%d of %q", line, column, data)
		}
	})
}

// TestReadInputIsBounded reads one byte too many, and exactly enough.
func TestReadInputIsBounded(t *testing.T) {
	t.Parallel()

	a := &app{in: strings.NewReader(strings.Repeat("x", maxInput+1))}
	if _, err := a.readInput("input", "-"); err == nil || !strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Errorf("got error %v", err)
	}
	a.in = strings.NewReader(strings.Repeat("x", maxInput))
	if data, err := a.readInput("input", "-"); err != nil || len(data) != maxInput {
		t.Errorf("got %d bytes and %v", len(data), err)
	}
}

// TestFill fixes what goes before what: flags, files, defaults.
func TestFill(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip(err)
	}
	defaults := phases.Context{
		WorkspaceID: "local", ThreadID: "local", TurnID: "local", Mode: "agent", Profile: "full", Actor: phases.Actor{Kind: "user"}, Dir: link,
	}
	all := phases.Context{
		WorkspaceID: "w", ThreadID: "t", TurnID: "u", SessionID: "s", Mode: "chat", Profile: "none",
		Actor: phases.Actor{Kind: "agent", ID: "x"}, Dir: dir, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	tests := []struct {
		name  string
		flags contextFlags
		given phases.Context
		want  phases.Context
	}{
		{"defaults; a link keeps its name", contextFlags{Dir: link}, phases.Context{}, defaults},
		{"a file goes before defaults", contextFlags{}, all, all},
		{
			"flags go before a file",
			contextFlags{Dir: dir, Mode: "chat", Workspace: "w", Thread: "t", Turn: "u", Session: "s", Now: "2026-01-02T03:04:05Z", Profile: "none"},
			phases.Context{WorkspaceID: "x", Profile: "full", Dir: link, Actor: phases.Actor{Kind: "agent", ID: "x"}},
			all,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, err := tt.flags.fill(tt.given)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("context (-got +want):\n%s", diff)
			}
		})
	}
}
