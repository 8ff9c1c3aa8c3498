// Package store keeps manifests in a SQL database: SQLite, embedded, for one
// machine, and PostgreSQL for many.
//
// # Where to start
//
//   - [Open] takes a DSN, "sqlite:PATH" or "postgres://…", brings the schema up to
//     date, and gives a [Store].
//   - [Store.Append], [Store.Last] and [Store.Report] are the runtime's sink. Append
//     gives a manifest its place in the chain of its thread and keeps it, with the
//     texts of its prompt where the operator wants that, in one transaction.
//   - [Store.List], [Store.Get] and [Store.Latest] read; [Store.Records] and
//     [Store.Export] stream.
//   - [Store.Verify] checks the whole log, [Store.Prune] takes old manifests away
//     so that what stays can still be checked.
//   - [Store.Usage] and [Store.Text] read what stands beside the manifests: what
//     providers reported, and texts of prompts.
//
// # What is kept, and how
//
// A manifest is one row: its canonical JSON as text, and columns with copies of
// some of its fields, which are indexes and nothing more. An auditor reads the
// log of the embedded store with the sqlite3 shell:
//
//	sqlite3 grapnel.db "SELECT record FROM manifests WHERE thread_id = 't' ORDER BY seq"
//
// What a provider reported comes later than the record that it is about, so it
// stands in a table of its own and no hash covers it.
//
// Beside the manifests of a thread stands the thread's sign-off
// ([manifest.Chain]), renewed in the same transaction. With a key, the hashes of
// manifests and the sign-offs are keyed.
//
// # Concurrency
//
// A Store is safe for concurrent use, and several processes may share a database.
// The database keeps order: SQLite takes one writer at a time, PostgreSQL locks
// the thread's sign-off. No goroutine and no lock of this package is involved.
//
// # Errors
//
// Failures of the database are an [*Error] with a code to branch on and a remedy
// for people. Errors of a context are returned as they are, wrapped.
//
// # What it is not
//
// It makes and judges no manifest: package manifest does. It does not keep
// conversations, memory or queues.
//
// Stability: experimental until 1.0.
package store
