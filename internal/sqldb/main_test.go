package sqldb

import (
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// notesSchema has one table, notes.
func notesSchema() Schema {
	return Schema{
		Migrations: fstest.MapFS{"common/00001_notes.sql": {Data: []byte("-- +goose Up\nCREATE TABLE notes (text TEXT);\n")}},
		Table:      "notes_migrations", Holds: "notes",
	}
}
