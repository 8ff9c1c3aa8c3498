package jobqueue

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/riverqueue/river"

	"github.com/grapnelhq/grapnel/internal/schema"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/jobs"
	"github.com/grapnelhq/grapnel/phases"
)

// TestQuiet: a message of River's comes a level lower, and once in a while.
func TestQuiet(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer
	under := slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	q := &quietHandler{under, &sync.Mutex{}, map[string]time.Time{}}
	at := time.Unix(1000, 0)
	say := func(h slog.Handler, after time.Duration, level slog.Level, message string) {
		if h.Enabled(t.Context(), level) {
			if err := h.Handle(t.Context(), slog.NewRecord(at.Add(after), level, message, 0)); err != nil {
				t.Error(err)
			}
		}
	}
	say(q, 0, slog.LevelError, "down")
	say(q, time.Second, slog.LevelError, "down")
	say(q.WithAttrs([]slog.Attr{slog.Int("n", 1)}).WithGroup("g"), 2*time.Second, slog.LevelError, "down")
	say(q, time.Second, slog.LevelWarn, "odd")
	say(q, time.Second, slog.LevelInfo, "usual")
	say(q, repeatAfter, slog.LevelError, "down")
	if diff := cmp.Diff(out.String(), "level=WARN msg=down\nlevel=INFO msg=odd\nlevel=WARN msg=down\n"); diff != "" {
		t.Errorf("log (-got +want):\n%s", diff)
	}
	for n := range 3 * maxSeen {
		say(q, 0, slog.LevelError, strconv.Itoa(n))
	}
	if len(q.last) > maxSeen {
		t.Errorf("%d messages are remembered", len(q.last))
	}
}

// TestLeases: what was not renewed is given up in time, and what ended is left alone.
func TestLeases(t *testing.T) {
	t.Parallel()

	l := leases{held: map[attempt]*lease{}}
	ends := map[string]error{}
	hold := func(name string, id int64) *lease {
		return l.hold(attempt{id: id, number: 1}, func(cause error) { ends[name] = cause })
	}
	kept, lost, ended := hold("kept", 1), hold("lost", 2), hold("ended", 3)
	asked := l.all()
	l.release(ended)
	before := kept.renewed
	l.keep(asked, map[attempt]bool{kept.attempt: true, {id: lost.id, number: 2}: true}, before.Add(time.Minute))
	if diff := cmp.Diff(ends, map[string]error{"lost": errLeaseLost}, cmp.Comparer(errors.Is)); diff != "" {
		t.Errorf("ends (-got +want):\n%s", diff)
	}
	l.release(lost)
	if l.expire(time.Second); len(ends) != 1 {
		t.Errorf("a lease that is certain for a minute was given up: %v", ends)
	}
	if l.expire(-2 * time.Minute); !errors.Is(ends["kept"], errLeaseLost) {
		t.Errorf("a lease that is too old: %v", ends["kept"])
	}
}

// TestLeaseOfTheSameNumber: a job that was put off comes back under its number, and an
// attempt that ends late does not release the lease of the next one.
func TestLeaseOfTheSameNumber(t *testing.T) {
	t.Parallel()

	l := leases{held: map[attempt]*lease{}}
	a := attempt{id: 1, number: 1}
	before, after := l.hold(a, func(error) {}), l.hold(a, func(error) {})
	if l.release(before); len(l.all()) != 1 {
		t.Fatal("the lease of the next attempt was released")
	}
	if l.release(after); len(l.all()) != 0 {
		t.Error("a lease was not released")
	}
}

// TestSQLiteReadsNoJobs: the statements that run all the time read indexes alone:
// jobs may be long, and finished ones many.
func TestSQLiteReadsNoJobs(t *testing.T) {
	t.Parallel()

	db, err := sqldb.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "x.db"), sqldb.Options{Schema: schema.Current()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	q, err := Open(t.Context(), db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, statement := range map[string]string{
		"count": q.statements.count, "states": q.statements.states, "due": q.statements.due,
	} {
		var args []any
		if strings.Contains(statement, "$1") {
			args = []any{"p"}
		}
		var plan []string
		err := db.Snapshot(t.Context(), "explaining", func(tx *sql.Tx) error {
			return sqldb.Each(t.Context(), tx, "EXPLAIN QUERY PLAN "+statement, args, func(rows *sql.Rows) error {
				var id, parent, unused int
				var detail string
				err := rows.Scan(&id, &parent, &unused, &detail)
				plan = append(plan, detail)
				return err
			})
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, step := range plan {
			if strings.Contains(step, "river_job") && !strings.Contains(step, "SEARCH river_job USING COVERING INDEX") {
				t.Errorf("%s: %s", name, step)
			}
		}
	}
}

// FuzzReason: the text of any failure can be stored.
func FuzzReason(f *testing.F) {
	f.Add("")
	f.Add("plain")
	f.Add("nul \x00 and \xff\xfe")
	f.Add(strings.Repeat("ä", maxReason))
	f.Fuzz(func(t *testing.T, text string) {
		got := reason(errors.New(text))
		if len(got) > maxReason || !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
			t.Errorf("%q", got)
		}
		if len(text) <= maxReason && utf8.ValidString(text) && !strings.ContainsRune(text, 0) && got != text {
			t.Errorf("%q of %q", got, text)
		}
	})
}

// FuzzRow: whatever stands in the database, a job can be listed, and one of ours
// whole.
func FuzzRow(f *testing.F) {
	f.Add(`{"job":"{\"plugin\":\"p\"}"}`, `{"plugin":"p","begun":1}`, `{"error":"e","code":"interrupted"}`)
	f.Add(`{"job":"{"}`, "", "")
	f.Add(`{}`, "[", "[")
	f.Add(`[`, `{"requeued":"x"}`, `7`)
	f.Fuzz(func(t *testing.T, args, meta, failure string) {
		row := Row{ID: 7}
		if row.decode(args, meta, failure); row.ID != 7 {
			t.Errorf("%+v", row)
		}
		want := jobs.Job{Plugin: strings.ToValidUTF8(meta, ""), Kind: strings.ToValidUTF8(args, "")}
		row = Row{ID: 8, State: StateDead}
		late := ending{attempt: attempt{number: 2}, result: jobs.Result{Err: phases.Errorf(phases.CauseTimeout, "late")}}
		row.decode(encode(jobArgs{Job: encode(want)}), encode(jobMeta{Requeued: 3, Why: "busy"}), late.failure())
		if diff := cmp.Diff(row, Row{
			ID: 8, State: StateDead, Job: want, Requeued: 3, Why: "busy", Code: phases.CauseTimeout, Error: "late (timeout)",
		}); diff != "" {
			t.Errorf("round trip (-got +want):\n%s", diff)
		}
	})
}

// TestStoreWithoutDatabase: a result that cannot be stored delays nobody whose time is
// over.
func TestStoreWithoutDatabase(t *testing.T) {
	t.Parallel()

	db, err := sqldb.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "x.db"), sqldb.Options{Schema: schema.Current()})
	if err != nil {
		t.Fatal(err)
	}
	q, err := Open(t.Context(), db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	held := q.leases.hold(attempt{id: 1, number: 1}, func(error) { cancel() })
	stored := make(chan struct{})
	go func() {
		defer close(stored)
		q.store(ctx, &ending{attempt: held.attempt, result: jobs.Result{Action: jobs.Done}})
	}()
	q.leases.expire(0)
	<-stored
}

// failing is a flow whose transaction failed after it had found a duplicate.
type failing struct{ flow }

func (failing) insert(context.Context, *jobArgs, *river.InsertOpts, string) (bool, error) {
	return true, errors.New("the commit failed")
}

// TestFailedCommitIsNoDuplicate: whoever is told that a job is there already would lose it.
func TestFailedCommitIsNoDuplicate(t *testing.T) {
	t.Parallel()

	db, err := sqldb.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "jobs.db"), sqldb.Options{Schema: schema.Current()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	q := &Queue{Records: &Records{db: db}, flow: failing{}}
	if err := q.Add(t.Context(), jobs.Job{Plugin: "p"}); err == nil || errors.Is(err, jobs.ErrDuplicate) {
		t.Errorf("got %v, want the failure", err)
	}
	if n := q.open.Load(); n != 0 {
		t.Errorf("%d jobs are open", n)
	}
}
