// Package treestore keeps the thread tree of package tree in a SQL database: SQLite
// or PostgreSQL, beside the manifests of package store.
//
//	st, err := store.Open(ctx, "sqlite:grapnel.db", store.Options{})
//	tr, err := treestore.New(ctx, st.DB(), treestore.Options{})
//
// [Store] implements [tree.Store]. Several programs may use one database at once.
//
// # What holds the rules
//
// The database does, and no lock of this package. Two partial unique indexes allow
// one live document a scope. Each call that changes something is one transaction,
// which also writes its changes into the log.
//
// SQLite takes one writer at a time. Calls that come together share a transaction
// and its wait for the disk ([sqldb.DB.Join]), each of them undone alone if it fails.
//
// PostgreSQL locks rows, always in this order: the workspace, folders, documents,
// threads. Calls that change folders lock the workspace's row against each other;
// those that only need a folder to be there share its row. Where no
// live document is, one is inserted, and if somebody else was faster, judged again.
//
// # The log of changes
//
// Of SQLite the number of a transaction is the id of its first change: with one
// writer, that is the order of commits. Of PostgreSQL it is the transaction's own
// number. Transactions commit in another order than they got theirs, so
// [Store.Changes] stops before the oldest that still runs, and waits a moment for it
// if that is all there is to wait for. A transaction has its number from the first row
// that it locks on, and one that waited for another row would have a lower number than
// who came first: therefore they queue up before, by advisory locks on names, which
// give no number. Those who change folders have the workspace for themselves; others
// share it, and have their document's scope or their thread for themselves.
//
// A restored database may have a log whose numbers mean nothing on its new server.
// It is begun anew then, with numbers that no reader knows, and readers are told
// about the gap.
//
// Stability: experimental until 1.0.
package treestore
