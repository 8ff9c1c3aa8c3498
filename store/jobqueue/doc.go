// Package jobqueue keeps background work in the store's database, where it
// outlives the process that asked for it, and where several engines share it. It
// is a [runtime.Queue] on [River], on SQLite and on PostgreSQL.
//
//	st, err := store.Open(ctx, dsn, store.Options{})
//	q, err := jobqueue.Open(ctx, st.DB(), jobqueue.Options{})
//	eng, err := runtime.New(ctx, cfg, runtime.Options{Queue: q})
//	…
//	eng.Close(ctx); q.Close(); st.Close()
//
// # What is River's, and what is not
//
// River has the tables and their migrations, inserts with unique keys, hands out
// due jobs (several engines never get the same one), wakes engines up, elects who
// tidies up, and removes finished jobs when their time is over.
//
// Leases and verdicts are this package's. River takes a job away from a process
// that works on it for long, dead or alive, and takes the verdict of whoever
// comes, up to a quarter of a second later. Here a process renews the leases of
// its jobs, whoever finds one that has run out offers the job again, and a verdict
// is stored at once, by one statement that asks whether the job is still this
// process's, in this attempt. One that comes too late changes nothing.
//
// # What is repeated
//
// What [Queue.Add] took is offered until a verdict is stored that it is done or
// dead. Work is repeated only if its verdict was not stored: because the process
// or the database went away meanwhile. A process that is killed leaves its jobs
// behind for [Options.Lease] and a quarter of it at most. Such an attempt counts; a
// job that ends its process with each of them is dead after five more than it may
// have.
//
// Work that must not be repeated says so when it begins ([runtime.Attempt]). That
// is stored first, and an attempt that has begun and has no verdict is the last:
// the job is dead, with the cause "interrupted".
//
// A job that waits for less than ten seconds comes at its time. Those that wait
// longer are brought back by the process that River has elected for that; when it
// crashes, they may be a quarter of a minute late.
//
// # Bounds
//
// The queue of one database holds [Options.Waiting] jobs that wait, now or for
// their time, and [Options.PerPlugin] of one plugin. On SQLite that is exact; on
// PostgreSQL too, unless more than 64 callers add jobs at the same moment.
//
// # Where it is kept
//
// In a SQLite file River's tables stand beside the store's, and everything goes
// through the file's one writer: jobs that are added or ended together with
// manifests share their waits for the disk ([sqldb.DB.Join]). In PostgreSQL they
// have a schema of their own ([Options.Schema]), and River a small pool of
// connections. River's own tools can look at both.
//
// A finished job leaves only the hash of its idempotency key, for
// [Options.KeepDone]. A dead one stays whole for [Options.KeepDead], and an
// operator lists, retries or removes it ([Records]), also by "grapnel jobs" and
// [Look], which need no queue that works.
//
// # Errors
//
// Failures of the database are a *[sqldb.Error]; a full queue is a *phases.Error
// with CauseOverloaded, a closed one CauseUnavailable.
//
// Stability: experimental until 1.0.
//
// [River]: https://riverqueue.com
package jobqueue
