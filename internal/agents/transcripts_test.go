package agents_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite" // opencode's database

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
)

// TestTranscripts reads what the agents have in testdata/home, which make transcripts wrote.
func TestTranscripts(t *testing.T) {
	t.Parallel()

	for _, a := range agents.All() {
		if a.Transcripts == nil {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()

			home := filepath.Join("testdata", "home")
			if a.Name == "opencode" {
				home = withDatabase(t, home)
			}
			var got strings.Builder
			for _, path := range transcripts(t, a, home) {
				rel, _ := filepath.Rel(home, path)
				fmt.Fprintf(&got, "== %s\n", filepath.ToSlash(rel))
				for s, err := range a.Transcripts.Read(path) {
					if err != nil {
						t.Errorf("%s: %v", path, err)
						continue
					}
					got.WriteString(line(s) + "\n")
				}
			}
			golden := filepath.Join("testdata", "transcripts", a.Name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

// withDatabase returns a home with opencode's database, made from its rows in another.
func withDatabase(t *testing.T, from string) string {
	t.Helper()

	const file = ".local/share/opencode/opencode.db"
	home := t.TempDir()
	rows, err := os.Open(filepath.Join(from, file+".json"))
	if err := errors.Join(err, os.MkdirAll(filepath.Join(home, filepath.Dir(file)), 0o700)); err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	db, err := sql.Open("sqlite", filepath.Join(home, file))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	decoder := json.NewDecoder(rows)
	for _, table := range []string{"", "session", "message", "part"} {
		var list []map[string]any
		if err := decoder.Decode(&list); err != nil {
			t.Fatal(err)
		}
		for _, row := range list {
			query, values := row["sql"], []any(nil)
			if table != "" {
				names := slices.Sorted(maps.Keys(row))
				query = fmt.Sprintf("INSERT INTO %s (%s) VALUES (?%s)", table, strings.Join(names, ", "), strings.Repeat(", ?", len(names)-1))
				for _, name := range names {
					values = append(values, row[name])
				}
			}
			if _, err := db.ExecContext(t.Context(), query.(string), values...); err != nil {
				t.Fatal(err)
			}
		}
	}
	return home
}

// transcripts finds an agent's transcripts in a home, in the order of their names.
func transcripts(t *testing.T, a *agent.Agent, home string) (paths []string) {
	t.Helper()

	for _, dir := range a.Transcripts.Dirs(home, func(string) string { return "" }) {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if rel, _ := filepath.Rel(dir, path); err == nil && !d.IsDir() && a.Transcripts.Is(filepath.ToSlash(rel)) {
				paths = append(paths, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

// line is what a test shows of what a transcript says.
func line(s *agent.Said) string {
	e := &s.Event
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", s.Time.Format("15:04:05.000"), e.Name, e.Step)
	for _, field := range [][2]string{
		{"session", e.SessionID}, {"turn", e.TurnID}, {"agent", e.AgentID}, {"parent", e.ParentID}, {"dir", e.Dir}, {"model", e.Model}, {"source", e.Source}, {"version", s.Version},
		{"text", e.Text}, {"call", e.Call.ID}, {"tool", e.Call.Tool}, {"arguments", string(e.Call.Arguments)}, {"paths", strings.Join(e.Call.Paths, ",")},
		{"result", e.Result}, {"became", string(s.Became)}, {"by", s.By},
	} {
		if field[1] != "" {
			fmt.Fprintf(&b, " %s=%q", field[0], field[1])
		}
	}
	if e.IsError {
		b.WriteString(" error")
	}
	if s.Unknown > 0 {
		fmt.Fprintf(&b, " unknown=%d", s.Unknown)
	}
	return b.String()
}
