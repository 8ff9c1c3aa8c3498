package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
)

// TestForgetAsks: somebody at a terminal is shown what goes, and decides. Nothing of the question is a result.
func TestForgetAsks(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name, answer string
		flags        []string
		code, left   int
		says         string
	}{
		{"yes", "y\n", nil, exitOK, 0, "Forget 2 memories for good? [y/N]"},
		{"in full, without an end", "YES", nil, exitOK, 0, "We deploy on Fridays."},
		{"no", "n\n", nil, exitNo, 2, "nothing was forgotten"},
		{"something else", "yes, please\n", nil, exitNo, 2, "nothing was forgotten"},
		{"nobody", "", nil, exitUsage, 2, "there is nobody to ask"},
		{"not asked", "n\n", []string{"--yes"}, exitOK, 0, ""},
		{"asked with JSON too", "y\n", []string{"--json"}, exitOK, 0, "to be forgotten (2)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			dir := t.TempDir()
			plant(t, dir, map[string]string{"grapnel.yaml": "version: 1\n"})
			s, err := itemstore.Open(t.Context(), "sqlite:"+filepath.Join(dir, "m.db"), itemstore.Options{})
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
			var errs bytes.Buffer
			a := &app{in: strings.NewReader(tt.answer), err: &errs, answers: true}
			err = a.execute(t.Context(), append([]string{"memory", "forget", "--all", "--memory", "sqlite:" + filepath.Join(dir, "m.db"), "--config", filepath.Join(dir, "grapnel.yaml")}, tt.flags...))
			if codeOf(err) != tt.code || !strings.Contains(errs.String()+fmt.Sprint(err), tt.says) || strings.Contains(a.out.String(), "[y/N]") {
				t.Errorf("%v: it said %q, and printed %q", err, errs.String(), a.out.String())
			}
			stats, err := s.Stats(t.Context(), itemstore.View{WorkspaceID: "w", AllScopes: true})
			if err := errors.Join(err, s.Close()); err != nil || stats.Items != tt.left {
				t.Errorf("%d are left, want %d, %v", stats.Items, tt.left, err)
			}
		})
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

// TestForgetTidies: what an earlier forgetting had to leave in the files goes with the next one, even if nothing is left
// to be forgotten; and a database that is not there is no success.
func TestForgetTidies(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	plant(t, dir, map[string]string{"grapnel.yaml": "version: 1\n"})
	dsn := "sqlite:" + filepath.Join(dir, "m.db")
	s, err := itemstore.Open(t.Context(), dsn, itemstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // a test
	db, err := sql.Open("sqlite", filepath.Join(dir, "m.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // a test
	if _, err := db.ExecContext(t.Context(), "INSERT INTO memory_meta (name, value) VALUES ('untidy', 'x')"); err != nil {
		t.Fatal(err)
	}
	forget := func(dsn string) error {
		a := &app{in: strings.NewReader(""), err: io.Discard}
		return a.execute(t.Context(), []string{"memory", "forget", "--person", "ada", "--yes", "--memory", dsn, "--config", filepath.Join(dir, "grapnel.yaml")})
	}
	if before, err := s.Untidy(t.Context()); err != nil || !before {
		t.Fatalf("untidy: %v, %v", before, err)
	}
	if err := forget(dsn); err != nil {
		t.Error(err)
	}
	if after, err := s.Untidy(t.Context()); err != nil || after {
		t.Errorf("untidy afterwards: %v, %v", after, err)
	}
	if err := forget(dsn + ".typo"); codeOf(err) != exitUnable {
		t.Errorf("a database that is not there: %v", err)
	}
}
