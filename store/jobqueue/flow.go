package jobqueue

import (
	"context"
	"errors"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/grapnelhq/grapnel/store/sqldb"
)

// flow is River on one of the databases.
type flow interface {
	// insert keeps a job, unless too many wait. It has the job's id, or says that
	// there was one of its key before.
	insert(ctx context.Context, args *jobArgs, opts *river.InsertOpts, plugin string) (id int64, duplicate bool, err error)
	// start begins to bring jobs, stop ends that and waits for those that were
	// brought, or for ctx. It can be called again.
	start(ctx context.Context) error
	stop(ctx context.Context) error
	// wake makes it look for jobs, after something was added by this process.
	wake()
	// close ends what open began.
	close()
}

// isCurrent reports whether River's tables have had all migrations.
func isCurrent[TTx any](m *rivermigrate.Migrator[TTx], there []rivermigrate.Migration) bool {
	return len(there) == len(m.AllVersions())
}

// tooNew gives a failure to read River's version, which is none of the database, its
// meaning.
func tooNew(ctx context.Context, db *sqldb.DB, err error) error {
	if e, ok := errors.AsType[*sqldb.Error](db.Fail(ctx, "opening the queue", err)); !ok || e.Code != sqldb.CodeInternal {
		return err
	}
	return &sqldb.Error{
		Code: sqldb.CodeSchema, Message: "the queue's tables are not those that this program knows", Err: err,
		Remedy: "use the version that wrote them, or a newer one",
	}
}

// start starts a client, and notes that.
func start[TTx any](ctx context.Context, c *river.Client[TTx], p *pilot) error {
	err := c.Start(ctx)
	if err != nil {
		// River starts nothing that did not stop, even after a failure.
		return errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	p.running.Store(true)
	return nil
}

// stop stops a client.
func stop[TTx any](ctx context.Context, c *river.Client[TTx], p *pilot) error {
	p.running.Store(false)
	return c.Stop(ctx)
}
