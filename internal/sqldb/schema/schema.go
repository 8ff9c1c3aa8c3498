// Package schema is the schema of Grapnel's own database: manifests, what belongs to them, plugins' state, and the
// thread tree. Package store and those below it use it side by side; [sqldb] brings a database up to date with it.
//
// A released migration is never changed: what is to be different is a new one.
//
// Stability: experimental until 1.0.
package schema

import (
	"cmp"
	"embed"
	"io/fs"
	"strings"

	"github.com/grapnelhq/grapnel/internal/sqldb"
)

//go:embed migrations objects
var files embed.FS

// Current returns the schema that this program knows.
func Current() sqldb.Schema {
	migrations, err := fs.Sub(files, "migrations")
	if err != nil {
		migrations = files // never: the name is valid; opening says what is missing
	}
	return sqldb.Schema{Migrations: migrations, Table: "grapnel_migrations", Holds: "manifests"}
}

// Objects returns the query that lists what the schema of a database consists of, and the rows that it has after the
// migrations: a table and a description, with a tab between them.
func Objects(k sqldb.Kind) (query string, rows []string, err error) {
	sql, errSQL := files.ReadFile("objects/" + string(k) + ".sql")
	text, err := files.ReadFile("objects/" + string(k) + ".txt")
	return string(sql), strings.Split(strings.TrimSpace("\n"+string(text)), "\n"), cmp.Or(errSQL, err)
}
