package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/store"
)

// contextWithCause ends after a while, with a cause of its own.
func contextWithCause(t *testing.T, after time.Duration, cause error) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeoutCause(t.Context(), after, cause)
}

func TestPostgresLocked(t *testing.T) {
	t.Parallel()

	dsn := shared.NewDSN(t)
	fillThread(t, open(t, dsn, store.Options{}), "w", "t", 0, 1)
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "SELECT next_seq FROM chains FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	s := open(t, dsn, store.Options{LockTimeout: 2 * time.Second})
	wantError(t, s.Append(t.Context(), sample("w", "t", 1), nil), store.CodeLocked, "again")
	if err := open(t, dsn, store.Options{}).Append(t.Context(), sample("w", "other", 2), nil); err != nil {
		t.Errorf("another thread waits too: %v", err)
	}
	cause := errors.New("no more time")
	ctx, cancel := contextWithCause(t, 100*time.Millisecond, cause)
	defer cancel()
	if err := open(t, dsn, store.Options{}).Append(ctx, sample("w", "t", 1), nil); !errors.Is(err, cause) {
		t.Errorf("Append behind a lock: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	free := open(t, dsn, store.Options{}) // with time enough on a busy machine
	fillThread(t, free, "w", "t", 1, 2)
	wantGood(t, free, 3)
}

func TestPostgresRefuses(t *testing.T) {
	t.Parallel()

	pg := shared.Postgres(t)
	_, err := store.Open(t.Context(), pg.DSN("none"), store.Options{})
	wantError(t, err, store.CodeUnreachable, "name of the database")

	dsn := shared.NewDSN(t)
	s := open(t, dsn, store.Options{})
	fillThread(t, s, "w", "t", 0, 1)
	// Roles belong to the server, which several runs of this test may share.
	storetest.Exec(t, dsn, "DO $$ BEGIN CREATE ROLE auditor"+t.Name()+" LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
	other := strings.Replace(dsn, "user=grapnel", "user=auditor"+strings.ToLower(t.Name()), 1)
	_, err = store.Open(t.Context(), other, store.Options{})
	wantError(t, err, store.CodePermission, "rights")
	storetest.Exec(t, dsn, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC")
	reader := open(t, other, store.Options{ReadOnly: true})
	wantGood(t, reader, 1)
	writer := open(t, other, store.Options{})
	wantError(t, writer.Append(t.Context(), sample("w", "t", 1), nil), store.CodePermission, "rights")
}

// TestPostgresWordsGo: a text that is indexed while it is removed leaves no words.
func TestPostgresWordsGo(t *testing.T) {
	t.Parallel()

	dsn := shared.NewDSN(t)
	s := open(t, dsn, store.Options{LockTimeout: time.Hour})
	storetest.Exec(t, dsn, "INSERT INTO texts (hash, sha256, text) VALUES ('f', 'h', 'some words')")
	db := storetest.Raw(t, dsn)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, settle := range []string{
		"UPDATE tree_state SET leaves = leaves WHERE id = 1",
		"INSERT INTO text_words (text_id, words) SELECT id, array_to_tsvector(ARRAY['some', 'words']) FROM texts",
	} {
		if _, err := tx.ExecContext(t.Context(), settle); err != nil {
			t.Fatal(err)
		}
	}
	pruned := make(chan error, 1)
	go func() {
		n, err := s.PruneTexts(t.Context())
		if n != 1 && err == nil {
			err = fmt.Errorf("%d texts are removed", n)
		}
		pruned <- err
	}()
	for waits := 0; waits == 0 && len(pruned) == 0; { // until it waits for the text's index
		err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity, pg_sleep(0.005)
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waits)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tx.Commit(), <-pruned); err != nil {
		t.Error(err)
	}
	var left int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM text_words").Scan(&left); err != nil || left != 0 {
		t.Errorf("the words of %d texts are left, %v", left, err)
	}
}
