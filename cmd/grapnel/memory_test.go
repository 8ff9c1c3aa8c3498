package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/plugins/memory"
)

// TestForgetAsks: somebody at a terminal is shown what goes.
func TestForgetAsks(t *testing.T) {
	t.Parallel()

	asked{
		place: someMemories, left: countMemories,
		args:     func(dsn string) []string { return []string{"memory", "forget", "--all", "--memory", dsn} },
		question: "Forget 2 memories for good? [y/N]", shows: "We deploy on Fridays.", title: "to be forgotten (2)", refusal: "nothing was forgotten",
	}.run(t)
}

// emptyConfig is a configuration without plugins.
func emptyConfig(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "grapnel.yaml")
	if err := os.WriteFile(file, []byte("version: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// someMemories makes a store with two memories.
func someMemories(t *testing.T) (dsn string) {
	t.Helper()
	dsn = "sqlite:" + filepath.Join(t.TempDir(), "m.db")
	s, err := itemstore.Open(t.Context(), dsn, itemstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	batch := itemstore.Batch{WorkspaceID: "w"}
	for _, text := range []string{"We deploy on Fridays.", "The server is called rosalind."} {
		batch.Items = append(batch.Items, itemstore.Item{Scope: itemstore.ScopeWorkspace, Category: "fact", Text: text, Source: itemstore.SourceUser})
	}
	if _, err := s.Remember(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dsn
}

// countMemories counts those of someMemories that are left.
func countMemories(t *testing.T, dsn string) int {
	t.Helper()
	s, err := itemstore.Open(t.Context(), dsn, itemstore.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	stats, err := s.Stats(t.Context(), itemstore.View{WorkspaceID: "w", AllScopes: true})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return stats.Items
}

// TestMemoryEnvironment: the command looks where the plugin would, which sees what it
// is handed and nothing else.
func TestMemoryEnvironment(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", "/data")
	t.Setenv("HOME", "/repo/ana")
	const byDefault = "grapnel/plugins/memory/memory.db"
	declared := func(config string, env config.Env) *memories {
		p := &memories{declared: true}
		p.plugin.Config, p.plugin.Env = json.RawMessage(config), env
		return p
	}
	tests := []struct {
		name, want string
		place      *memories
	}{
		{"not declared", "sqlite:/data/" + byDefault, &memories{}},
		{"both handed on", "sqlite:/data/" + byDefault, declared(`{}`, config.Env{Pass: []string{"HOME", "XDG_DATA_HOME"}})},
		{"home alone", "sqlite:/repo/ana/.local/share/" + byDefault, declared(`{}`, config.Env{Pass: []string{"HOME"}})},
		{"set", "sqlite:/srv/" + byDefault, declared(`{}`, config.Env{Pass: []string{"XDG_DATA_HOME"}, Set: map[string]config.Secret{"XDG_DATA_HOME": {Value: "/srv"}}})},
		{"below home", "sqlite:/repo/ana/m.db", declared(`{"dsn":"sqlite:~/m.db"}`, config.Env{Pass: []string{"HOME"}})},
		{"a server", "postgres://db/m", declared(`{"dsn":"postgres://db/m"}`, config.Env{})},
		{"nothing handed on", "", declared(`{}`, config.Env{})},
	}
	for _, tt := range tests {
		got, err := memory.DSN(tt.place.plugin.Config, tt.place.getenv)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

// FuzzPlaceInList: a cursor is read as it was written, and what is none is refused.
func FuzzPlaceInList(f *testing.F) {
	f.Add("acme", "01KDYAK348EG3E863P8E1VKT6G", "YWNtZQAw")
	f.Add("", "", "")
	f.Add("ä b", "", "!!")
	f.Fuzz(func(t *testing.T, workspace, cursor, text string) {
		if strings.ContainsRune(workspace, 0) {
			return // no workspace's id has one
		}
		want := placeInList{workspace, cursor}
		got, err := parsePlaceInList(want.String())
		if err != nil || got != want {
			t.Errorf("%+v became %+v, %v", want, got, err)
		}
		if got, err := parsePlaceInList(text); err == nil {
			if again, err := parsePlaceInList(got.String()); err != nil || again != got {
				t.Errorf("%q is %+v, and then %+v, %v", text, got, again, err)
			}
		}
	})
}

// FuzzMemoryLine: whatever a line is, it is a memory that can be written and read
// again, or an error.
func FuzzMemoryLine(f *testing.F) {
	f.Add([]byte(`{"workspace_id":"acme","scope":"workspace","category":"fact","text":"One.","source":"user","created_at":"2026-01-02T03:04:05Z"}`))
	f.Add([]byte(`{"text":1}`))
	f.Add([]byte(``))
	f.Add([]byte(`{} {}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, line []byte) {
		item, err := memoryLine(line)
		if err != nil || item.CreatedAt.Year() > 9999 || item.UpdatedAt.Year() > 9999 {
			return
		}
		data, err := json.Marshal(&item)
		if err != nil {
			return // a time that is read and cannot be written, such as one before the year 0
		}
		again, err := memoryLine(data)
		if diff := cmp.Diff(again, item); err != nil || diff != "" {
			t.Errorf("%q: %v (-again +first):\n%s", line, err, diff)
		}
	})
}

// TestMemoryLines: the lines end with the first that is wrong.
func TestMemoryLines(t *testing.T) {
	t.Parallel()

	read := func(text string) (n int, last error) {
		for _, err := range memoryLines(strings.NewReader(text)) {
			n, last = n+1, err
		}
		return n, last
	}
	long := `{"text":"` + strings.Repeat("x", maxImportLine) + `"}`
	for _, tt := range []struct {
		name, text string
		n          int
		fails      string
	}{
		{"none", "", 0, ""},
		{"no newline at the end", "{}\n{}", 2, ""},
		{"Windows", "{}\r\n{}\r\n", 2, ""},
		{"wrong in the middle", "{}\nx\n{}\n", 2, "it is not a memory in JSON"},
		{"too long", "{}\n" + long + "\n{}\n", 2, "more than 65,536 bytes"},
	} {
		if n, err := read(tt.text); n != tt.n || (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("%s: %d lines, %v", tt.name, n, err)
		}
	}
}
