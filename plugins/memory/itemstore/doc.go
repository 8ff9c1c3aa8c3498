// Package itemstore keeps what the memory plugin remembers, in SQLite or PostgreSQL,
// and finds it again.
//
// It stores items with their versions, keeps the index and the statistics that package
// recall ranks by, and forgets. It is no policy: whether a turn may read or write is
// decided by package turnpolicy, what is a secret by package secret, and what of the
// ranked items goes into a prompt by package recall. It starts no goroutine.
//
// Where to start: [Open], [Store.Remember], [Store.Recall], [Store.Forget]; the example
// of the package runs them. Each read and each removal takes a [View], and never goes
// beyond it.
//
// # Versions
//
// A text is once in a scope; said again it is confirmed. An item whose slot another
// takes, or which another names, becomes history: it is found by its id, exported, and
// goes when its successor is forgotten, but is neither listed by default nor in the
// index. See [Store.Remember].
//
// # Finding
//
// Both databases keep the same statistics and answer the same question, "the newest
// items of this term in these scopes", exactly; all else is calculated by package
// recall. So they give one order, to the byte, which a test holds them to. Of a term
// that half of all items have, 200 are read, not half of all items:
//
//   - A term stands in the index with the number of the scope in front, and once more
//     with that of all of its workspace. No query meets items that are not in view.
//   - Statistics are kept by the same numbers, in how many items of each a term is, so
//     that those of a view are a sum of few rows by their key. What is not in view
//     changes no answer and no score.
//   - SQLite: FTS5 without content, whose tokens are these; its ids grow with each
//     change of an item, and it reads the ids of a token backwards. It is fed with terms
//     and asked for terms. What a user writes is never a part of a query.
//   - PostgreSQL: a table ordered by scope, term and number of the change. Its own text
//     search (GIN) was measured beside it on 100,000 items. It knows no order, so that
//     the newest 200 of a common term took 6 to 14 ms, and 40 ms when the planner took
//     the other way, where this takes 0.2 ms for any term; for that it needs some
//     1.7 KB an item, where GIN needs 0.1.
//   - PostgreSQL's statistics are added to by rows of their own, so that nobody waits
//     for the row of a common word; every 64 transactions somebody adds them up.
//
// # Forgetting
//
// Forgetting removes text, evidence, versions, and every word that no other item has.
// SQLite overwrites what it deletes; since dividing a page of an index leaves copies, the
// file is then written anew and the log is emptied. See [Store.Forget] for what stays in
// PostgreSQL. A keyed hash of each text stays, as a tombstone.
//
// # Safety
//
// Who was answered by a write has it on the disk. Writes that come together share the
// wait for it (SQLite), writes of different scopes run side by side (PostgreSQL), and
// locks are taken in one order, so that they never wait in a circle. Any number of
// processes may share a database, if they have one version of package recall: a store
// that another version has indexed is indexed anew when it is opened, and a program
// that still runs by the old rules is refused.
//
// Errors are *[sqldb.Error] with a code and a remedy, or what ended the context.
//
// Stability: experimental.
package itemstore
