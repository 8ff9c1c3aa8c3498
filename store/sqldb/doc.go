// Package sqldb is what Grapnel's packages share that keep things in a SQL
// database: SQLite, embedded, and PostgreSQL. There is one database with one
// schema, which they use side by side.
//
//   - [Open] takes a DSN, "sqlite:PATH" or "postgres://…", brings the schema up to
//     date (folder migrations), and gives a [DB].
//   - [DB.Snapshot] reads one state of the database; [DB.Change] changes it in a
//     transaction, and waits for others no longer than it may. [DB.Join] is
//     Change for many callers at once.
//   - [DB.Watch] tells when somebody has changed something.
//   - [Error] has a code to branch on, and a remedy for people.
//
// It knows no table but the one of the migrations: what is kept, and how, is the
// business of package store and of those below it.
//
// Stability: experimental until 1.0.
package sqldb
