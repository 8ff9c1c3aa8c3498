package main

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

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
			s := must(itemstore.Open(t.Context(), "sqlite:"+filepath.Join(dir, "m.db"), itemstore.Options{}))(t)
			batch := itemstore.Batch{WorkspaceID: "w"}
			for _, text := range []string{"We deploy on Fridays.", "The server is called rosalind."} {
				batch.Items = append(batch.Items, itemstore.Item{Scope: itemstore.ScopeWorkspace, Category: "fact", Text: text, Source: itemstore.SourceUser})
			}
			must(s.Remember(t.Context(), batch))(t)
			var errs bytes.Buffer
			a := &app{in: strings.NewReader(tt.answer), err: &errs, answers: true}
			err := a.execute(t.Context(), append([]string{"memory", "forget", "--all", "--memory", "sqlite:" + filepath.Join(dir, "m.db"), "--config", filepath.Join(dir, "grapnel.yaml")}, tt.flags...))
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

// TestForgetTidies: what an earlier forgetting had to leave in the files goes with the next one, even if nothing is left
// to be forgotten; and a database that is not there is no success.
func TestForgetTidies(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	plant(t, dir, map[string]string{"grapnel.yaml": "version: 1\n"})
	dsn := "sqlite:" + filepath.Join(dir, "m.db")
	s := must(itemstore.Open(t.Context(), dsn, itemstore.Options{}))(t)
	defer s.Close() //nolint:errcheck // a test
	db := must(sql.Open("sqlite", filepath.Join(dir, "m.db")))(t)
	defer db.Close() //nolint:errcheck // a test
	must(db.ExecContext(t.Context(), "INSERT INTO memory_meta (name, value) VALUES ('untidy', 'x')"))(t)
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
