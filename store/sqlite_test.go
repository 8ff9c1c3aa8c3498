package store_test

import (
	"bytes"
	"compress/zlib"
	"database/sql"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// open opens a store that is closed with the test.
func open(t *testing.T, dsn string, o store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// wantError wants a code, and a text that says what to do.
func wantError(t *testing.T, err error, code store.Code, text string) {
	t.Helper()
	if !store.HasCode(err, code) || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want the code %s and %q in it", err, code, text)
	}
}

func wantGood(t *testing.T, s *store.Store, records int) {
	t.Helper()
	got, err := s.Verify(t.Context(), store.Filter{}, manifest.VerifyOptions{})
	if err != nil || !got.OK || got.Checked != records {
		t.Errorf("verdict %+v, %v, want %d good records", got, err, records)
	}
}

func pathOf(dsn string) string { return strings.TrimPrefix(dsn, "sqlite:") }

func TestSQLiteFiles(t *testing.T) {
	t.Parallel()

	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	path := filepath.Join(t.TempDir(), "data", "of 100% #?ü", "grapnel.db")
	fillThread(t, open(t, "sqlite:"+path, store.Options{}), "w", "t", 0, 1)
	for name, want := range map[string]os.FileMode{path: 0o600, path + "-wal": 0o600, filepath.Dir(path): 0o700, filepath.Dir(filepath.Dir(path)): 0o700} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, want mode %o; %v", name, info.Mode(), want, err)
		}
	}
}

// TestSQLiteIsReadableWithoutGrapnel keeps the promise to auditors: an ordinary
// table with one row a manifest, its JSON as text.
func TestSQLiteIsReadableWithoutGrapnel(t *testing.T) {
	t.Parallel()

	dsn := storetest.SQLite(t)
	s := open(t, dsn, store.Options{})
	fillThread(t, s, "w", "t", 0, 3)
	db, err := sql.Open("sqlite", pathOf(dsn))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	const query = `SELECT rowid, typeof(record), record, bytes, length(hash) FROM manifests WHERE seq = 2`
	var rowid, size, length int
	var kind string
	var packed []byte
	if err := db.QueryRowContext(t.Context(), query).Scan(&rowid, &kind, &packed, &size, &length); err != nil {
		t.Fatal(err)
	}
	r, err := zlib.NewReader(bytes.NewReader(packed)) // as sqlar_uncompress of the sqlite3 shell
	if err != nil {
		t.Fatal(err)
	}
	record, err := io.ReadAll(r)
	if rowid != 3 || kind != "blob" || size != len(record) || length != 71 || err != nil || !json.Valid(record) {
		t.Errorf("rowid %d, %s, %d bytes of %d, hash of %d characters, %v", rowid, kind, len(record), size, length, err)
	}
	var mode string
	if err := db.QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Errorf("journal mode %s, %v", mode, err)
	}
	for option, want := range map[store.Synchronous]int{store.SynchronousFull: 2, store.SynchronousNormal: 1} {
		var level int
		s := open(t, dsn, store.Options{Synchronous: option})
		if err := s.Writer().QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&level); err != nil || level != want {
			t.Errorf("synchronous %d, %v, want %d", level, err, want)
		}
	}
}

func TestSQLiteForeign(t *testing.T) {
	t.Parallel()

	dsn := storetest.SQLite(t)
	storetest.Exec(t, dsn, "CREATE TABLE notes (text TEXT)")
	_, err := store.Open(t.Context(), dsn, store.Options{})
	wantError(t, err, store.CodeSchema, "another path")
	_, err = store.Open(t.Context(), dsn, store.Options{ReadOnly: true})
	wantError(t, err, store.CodeSchema, "holds no manifests")
}

// TestSQLiteFull fills a database that may not grow.
func TestSQLiteFull(t *testing.T) {
	t.Parallel()

	s := open(t, storetest.SQLite(t), store.Options{})
	fillThread(t, s, "w", "t", 0, 2)
	if _, err := s.Writer().ExecContext(t.Context(), "PRAGMA max_page_count = 60"); err != nil {
		t.Fatal(err)
	}
	n := appendUntilFull(t, s, 2)
	wantGood(t, s, n)
	if _, err := s.Writer().ExecContext(t.Context(), "PRAGMA max_page_count = 1000000"); err != nil {
		t.Fatal(err)
	}
	fillThread(t, s, "w", "t", n, n+2)
	wantGood(t, s, n+2)
}

// appendUntilFull returns how many manifests there are then.
func appendUntilFull(t *testing.T, s *store.Store, n int) int {
	t.Helper()
	for ; n < 10_000; n++ {
		err := s.Append(t.Context(), sample("w", "t", n), nil)
		if err != nil {
			wantError(t, err, store.CodeFull, "free space")
			return n
		}
	}
	t.Fatal("it is never full")
	return 0
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, dsn string
		opts      store.Options
		code      store.Code
	}{
		{"nothing", "", store.Options{}, store.CodeDSN},
		{"other scheme", "mysql://x", store.Options{}, store.CodeDSN},
		{"no path", "sqlite:", store.Options{}, store.CodeDSN},
		{"memory", "sqlite::memory:", store.Options{}, store.CodeDSN},
		{"NUL", "sqlite:a\x00b", store.Options{}, store.CodeDSN},
		{"no URL", "postgres://host:port/x", store.Options{}, store.CodeDSN},
		{"not there", "sqlite:" + filepath.Join(dir, "none"), store.Options{ReadOnly: true}, store.CodeNotFound},
		{"a folder", "sqlite:" + dir, store.Options{}, store.CodeDSN},
		{"below a file", "sqlite:" + filepath.Join(file, "x"), store.Options{}, store.CodeInternal},
		{"nobody there", "postgres://u:geheim@127.0.0.1:1/db?sslmode=disable", store.Options{}, store.CodeUnreachable},
		{"negative timeout", "sqlite:" + file, store.Options{LockTimeout: -1}, store.CodeInternal},
		{"odd synchronous", "sqlite:" + file, store.Options{Synchronous: 9}, store.CodeInternal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			_, err := store.Open(t.Context(), tt.dsn, tt.opts)
			wantError(t, err, tt.code, "store: ")
			if err != nil && strings.Contains(err.Error(), "geheim") {
				t.Errorf("%v shows the password", err)
			}
		})
	}
}
