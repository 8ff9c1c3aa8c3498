// Package schema is the schema of Grapnel's own database: manifests, what belongs to them, plugins' state, and the
// thread tree. Package store and those below it use it side by side; [sqldb] brings a database up to date with it.
//
// A released migration is never changed: what is to be different is a new one.
//
// Stability: experimental until 1.0.
package schema

import (
	"embed"
	"io/fs"

	"github.com/grapnelhq/grapnel/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Current returns the schema that this program knows.
func Current() sqldb.Schema {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		files = migrations // never: the name is valid; opening says what is missing
	}
	return sqldb.Schema{Migrations: files, Table: "grapnel_migrations", Holds: "manifests"}
}
