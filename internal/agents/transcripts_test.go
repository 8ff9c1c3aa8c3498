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

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/transcript"
	_ "github.com/grapnelhq/grapnel/internal/sqldb" // the driver of opencode's database
)

// TestTranscripts reads what the agents have in testdata/home, which tools/hosts wrote.
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
	defer func() { _ = rows.Close() }()
	db, err := sql.Open("sqlite", filepath.Join(home, file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	decoder := json.NewDecoder(rows)
	for _, table := range []string{"", "session", "message", "part"} {
		var list []map[string]any
		if err := decoder.Decode(&list); err != nil {
			t.Fatal(err)
		}
		for _, row := range list {
			query, values := fmt.Sprint(row["sql"]), []any(nil)
			if table != "" {
				names := slices.Sorted(maps.Keys(row))
				query = fmt.Sprintf("INSERT INTO %s (%s) VALUES (?%s)", table, strings.Join(names, ", "), strings.Repeat(", ?", len(names)-1))
				for _, name := range names {
					values = append(values, row[name])
				}
			}
			if _, err := db.ExecContext(t.Context(), query, values...); err != nil {
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
		{"session", e.SessionID},
		{"turn", e.TurnID},
		{"agent", e.AgentID},
		{"parent", e.ParentID},
		{"dir", e.Dir},
		{"model", e.Model},
		{"source", e.Source},
		{"version", s.Version},
		{"text", e.Text},
		{"call", e.Call.ID},
		{"tool", e.Call.Tool},
		{"arguments", string(e.Call.Arguments)},
		{"paths", strings.Join(e.Call.Paths, ",")},
		{"result", e.Result},
		{"became", string(s.Became)},
		{"by", s.By},
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

// TestDamagedTranscripts cuts the transcripts of agents, and puts between their lines what is not of them.
func TestDamagedTranscripts(t *testing.T) {
	t.Parallel()

	const garbage = "\x00\xff{\"type\":\"user\"\n" + `{"type":"of_tomorrow","payload":{"type":"of_tomorrow"},"data":{}}` + "\n" + `[{"type":` + "\n"
	long := `{"type":"` + strings.Repeat("x", transcript.MostLine) + "\"}\n"
	deep := strings.Repeat(`{"message":[`, 100_000) + "\n"
	for _, a := range agents.All() {
		if a.Transcripts == nil || a.Name == "opencode" {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()

			path := transcripts(t, a, filepath.Join("testdata", "home"))[0]
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want, unknown := tell(t, a, string(data))
			if unknown != 0 {
				t.Fatalf("%d lines are unknown", unknown)
			}
			got, unknown := tell(t, a, long+garbage+strings.ReplaceAll(string(data), "\n", "\n"+garbage)+deep)
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("between other lines (-got +want):\n%s", diff)
			}
			if n := 3*(1+strings.Count(string(data), "\n")) + 2; unknown != n {
				t.Errorf("%d lines are unknown, want %d", unknown, n)
			}
			got, _ = tell(t, a, string(data[:len(data)*2/3]))
			if diff := cmp.Diff(got[:len(got)-1], want[:len(got)-1]); diff != "" || len(got) < 3 {
				t.Errorf("cut (-got +want):\n%s", diff)
			}
		})
	}
}

// tell reads a transcript and returns what it says, and how many lines are unknown.
func tell(t *testing.T, a *agent.Agent, text string) (lines []string, unknown int) {
	t.Helper()

	path := filepath.Join(t.TempDir(), "chats", "rollout-1.jsonl")
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	for s, err := range a.Transcripts.Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		unknown += s.Unknown
		if s.Unknown = 0; s.Event.Name != "" {
			lines = append(lines, line(s))
		}
	}
	return lines, unknown
}

// TestTranscriptOfDatabaseInUse reads what a database has in its log, and leaves nothing beside it.
func TestTranscriptOfDatabaseInUse(t *testing.T) {
	t.Parallel()

	a, home := agents.Lookup("opencode"), withDatabase(t, filepath.Join("testdata", "home"))
	path := transcripts(t, a, home)[0]
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	for _, query := range []string{
		"PRAGMA journal_mode = wal", "UPDATE session SET version = '9.9.9'", `UPDATE part SET data = '{"type":"of_tomorrow"}' WHERE id = (SELECT min(id) FROM part)`,
	} {
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	before, _ := filepath.Glob(path + "*")
	versions, unknown := map[string]bool{}, 0
	for s, err := range a.Transcripts.Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		versions[s.Version], unknown = true, unknown+s.Unknown
	}
	after, _ := filepath.Glob(path + "*")
	if diff := cmp.Diff(before, after); diff != "" || len(before) != 3 {
		t.Errorf("files (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(versions, map[string]bool{"9.9.9": true}); diff != "" || unknown != 1 {
		t.Errorf("%d unknown, versions (-got +want):\n%s", unknown, diff)
	}
}
