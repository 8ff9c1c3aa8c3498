// Package sqldb is what programs share that keep things in a SQL database: SQLite,
// embedded, or PostgreSQL. Grapnel's store is one of them (package schema has its
// tables), and so is any plugin that owns a database.
//
//   - [Open] takes a DSN, "sqlite:PATH" or "postgres://…", and a [Schema], brings the
//     database up to date, and gives a [DB].
//   - [DB.Snapshot] reads one state of the database, and [DB.Scan] a large part of
//     it; [DB.Change] changes it in a transaction, and waits for others no longer
//     than it may. [DB.Join] is Change for many callers at once.
//   - [DB.Watch] tells when somebody has changed something.
//   - [Error] has a code to branch on, and a remedy for people.
//
// It knows no table but the one of the migrations: what is kept, and how, is its
// users' business.
//
// Stability: experimental until 1.0.
package sqldb
