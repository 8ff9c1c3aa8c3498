// Package jobqueue keeps background work in the store's database, where it outlives the process that asked for it and
// several engines share it: a [jobs.Queue] in one table, on SQLite and PostgreSQL.
//
//	st, err := store.Open(ctx, dsn, store.Options{})
//	q, err := st.Queue(jobs.QueueOptions{})
//	eng, err := runtime.New(ctx, cfg, runtime.Options{Queue: q})
//	…
//	eng.Close(ctx); st.Close()
//
// # Leases
//
// A process takes due jobs by one statement (SKIP LOCKED on PostgreSQL), and renews the lease of each while it works;
// any process rescues jobs whose lease has expired. A result is stored at once, by one statement that checks whether
// the job still belongs to this process and attempt.
//
// # What is repeated
//
// A job that [Queue.Add] took is offered until the result of an attempt is stored that ends it. Work is repeated only
// if its result was not stored because the process or the database went down; such jobs are rescued after
// [jobs.QueueOptions.Lease] and a quarter of it at most, or as long after the first process has begun. A job that kills its
// process each time is discarded after five attempts more than it may have.
//
// Work that must not be repeated says so when it begins ([jobs.Attempt]): an attempt that has begun and has no result
// is the last, and the job is discarded with the cause "interrupted".
//
// # Bounds and storage
//
// The queue of one database holds [jobs.QueueOptions.Waiting] jobs, and [jobs.QueueOptions.PerPlugin] of one plugin; on PostgreSQL more
// if over 64 callers add jobs at the same moment.
//
// The table belongs to the store's schema, and on SQLite shares its one writer ([sqldb.DB.Join]).
//
// A finished job leaves nothing, or only the hash of its idempotency key, for [jobs.QueueOptions.KeepDone]. A dead one stays whole for
// [jobs.QueueOptions.KeepDead]; operators list, retry or remove it, by [Records] and [Look], which need no queue that is
// served.
//
// Failures of the database are a *[sqldb.Error]; a full queue is a *phases.Error with CauseOverloaded, that of a
// closed store CauseUnavailable.
//
// Stability: internal.
package jobqueue
