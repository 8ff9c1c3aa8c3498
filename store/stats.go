package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
)

// Stats adds up the selected records that were made from since on and before until; zero times do not bound it. Whole
// days are kept as sums. It reads the records of days that are cut by since or until, those that are not settled yet,
// and all of a thread, and calls seen for each. It ignores the limit.
func (s *Store) Stats(ctx context.Context, f Filter, since, until time.Time, seen func()) (stats manifest.Stats, err error) {
	err = s.db.Scan(ctx, "adding up", func(tx *sql.Tx) error {
		a := adding{ctx: ctx, tx: tx, filter: f, seen: seen, counter: manifest.NewCounter()}
		if err := a.run(since, until); err != nil {
			return err
		}
		stats = a.counter.Stats()
		return a.span(&stats, since, until)
	})
	return stats, err
}

type adding struct {
	ctx     context.Context //nolint:containedctx // of one call
	tx      *sql.Tx
	filter  Filter
	seen    func()
	counter *manifest.Counter
}

func (a *adding) run(since, until time.Time) error {
	from, to := since.UTC().Truncate(day), until.UTC().Truncate(day)
	if from.Before(since) {
		from = from.Add(day)
	}
	if a.filter.Thread != "" || !until.IsZero() && !from.Before(to) {
		condition := inTime
		if a.filter.Thread != "" {
			condition = notByTime
		}
		return a.records(condition, since, until)
	}
	if from.After(since) {
		if err := a.records(inTime, since, from); err != nil {
			return err
		}
	}
	if to.Before(until) {
		if err := a.records(inTime, to, until); err != nil {
			return err
		}
	}
	if err := a.records("id IN (SELECT id FROM pending) AND "+notByTime, from, to); err != nil {
		return err
	}
	first, behind := from.Format(time.DateOnly), to.Format(time.DateOnly)
	if to.IsZero() {
		behind = "9999-99-99"
	}
	return mergeKept(a.ctx, a.tx, a.counter, "day >= $1 AND day < $2 AND ($3 = '' OR workspace_id = $3)", first, behind, a.filter.Workspace)
}

const day = 24 * time.Hour

// mergeKept adds sums that are kept.
func mergeKept(ctx context.Context, tx *sql.Tx, c *manifest.Counter, which string, args ...any) error {
	return sqldb.Each(ctx, tx, "SELECT workspace_id, day, sums FROM day_sums WHERE "+which, args, func(rows *sql.Rows) error {
		var of manifest.SumsOf
		var kept sql.RawBytes
		if err := rows.Scan(&of.Workspace, &of.Day, &kept); err != nil {
			return err
		}
		var sums manifest.Sums
		if json.Unmarshal(kept, &sums) != nil {
			return errIndexDamaged
		}
		c.Merge(map[manifest.SumsOf]*manifest.Sums{of: &sums}, 1)
		return nil
	})
}

// records adds the selected records of a time for which a condition is true.
func (a *adding) records(condition string, since, until time.Time) error {
	where, args := a.where(since, until, condition)
	return addUp(a.ctx, a.tx, a.counter, where, args, a.seen)
}

// inTime selects by the index of times, notByTime by another: an index is not used for an expression.
const (
	inTime    = "created_at >= $1 AND created_at < $2"
	notByTime = "created_at + 0 >= $1 AND created_at + 0 < $2"
)

func (a *adding) where(since, until time.Time, condition string) (string, []any) {
	q := search{query: &Query{Since: since, Until: until}}
	from, to := q.bounds()
	wanted, args := []string{condition}, []any{from, to}
	for _, t := range []equal{{"workspace_id || ''", a.filter.Workspace}, {"thread_id", a.filter.Thread}} {
		if t.value != "" {
			args = append(args, t.value)
			wanted = append(wanted, fmt.Sprintf("%s = $%d", t.column, len(args)))
		}
	}
	return " WHERE " + strings.Join(wanted, " AND "), args
}

// span finds when the first and the last record were made, by their times in the days of either.
func (a *adding) span(s *manifest.Stats, since, until time.Time) error {
	if s.Records == 0 {
		return nil
	}
	first, err := time.Parse(time.DateOnly, s.Days[0].Day)
	if err != nil {
		return errIndexDamaged
	}
	last, err := time.Parse(time.DateOnly, s.Days[len(s.Days)-1].Day)
	if err != nil {
		return errIndexDamaged
	}
	if first.Before(since) {
		first = since
	}
	if last = last.Add(day); last.Before(until) || until.IsZero() {
		until = last
	}
	where, args := a.where(first, until, inTime)
	for order, to := range map[string]*time.Time{"ASC": &s.First, "DESC": &s.Last} {
		query := "SELECT created_at FROM manifests" + where + " ORDER BY created_at " + order + " LIMIT 1"
		err := sqldb.Each(a.ctx, a.tx, query, args, func(rows *sql.Rows) error { return rows.Scan(sqldb.Nanos{To: to}) })
		if err != nil {
			return err
		}
	}
	return nil
}

// addUp adds the selected records, which must be consecutive in each thread.
func addUp(ctx context.Context, tx *sql.Tx, to *manifest.Counter, where string, args []any, seen func()) error {
	c := manifest.NewCounter() // each thread starts over
	if err := follow(ctx, tx, c, where, args); err != nil {
		return err
	}
	scan := scanManifest()
	err := sqldb.Each(ctx, tx, "SELECT "+manifestColumns+" FROM manifests"+where+" ORDER BY id", args, func(rows *sql.Rows) error {
		var m *manifest.Manifest
		err := scan(rows, &m)
		if err == nil {
			c.AddRecord(m)
			seen()
		}
		return err
	})
	if err != nil {
		return err
	}
	err = addEntries(ctx, tx, c, where, args)
	to.Merge(c.Sums, 1)
	return err
}

func addEntries(ctx context.Context, tx *sql.Tx, c *manifest.Counter, where string, args []any) error {
	return eachEntry(ctx, tx, where+" ORDER BY id", args, func(e *manifest.Entry) error {
		c.AddEntry(e)
		return nil
	})
}

// follow gives a counter the last prompt before the records that it is about to add, for each thread.
func follow(ctx context.Context, tx *sql.Tx, c *manifest.Counter, where string, args []any) error {
	type place struct {
		workspace, thread string
		seq               int64
	}
	firsts, err := sqldb.List(ctx, tx, "SELECT workspace_id, thread_id, min(seq) FROM manifests"+where+" GROUP BY workspace_id, thread_id", args,
		func(rows *sql.Rows, p *place) error { return rows.Scan(&p.workspace, &p.thread, &p.seq) })
	if err != nil {
		return err
	}
	for _, p := range firsts {
		before, err := sent(ctx, tx, p.workspace, p.thread, p.seq, 1, true)
		if err != nil {
			return err
		}
		if len(before) > 0 {
			c.Follow(&before[0])
		}
	}
	return nil
}

// keepSums adds to the kept sums. Others that do so wait: the caller has locked the tree.
func keepSums(ctx context.Context, tx *sql.Tx, c *manifest.Counter) error {
	const (
		remove = "DELETE FROM day_sums WHERE workspace_id = $1 AND day = $2"
		put    = `INSERT INTO day_sums (workspace_id, day, sums) VALUES ($1, $2, $3) ON CONFLICT (workspace_id, day) DO UPDATE SET sums = excluded.sums`
	)
	for of, sums := range c.Sums {
		err := mergeKept(ctx, tx, c, "workspace_id = $1 AND day = $2", of.Workspace, of.Day)
		if err != nil {
			return err
		}
		if sums.Records == 0 {
			_, err = tx.ExecContext(ctx, remove, of.Workspace, of.Day)
		} else if body, encoded := json.Marshal(sums); encoded == nil {
			_, err = tx.ExecContext(ctx, put, of.Workspace, of.Day, string(body))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stretch is a part of a thread: settled records from a place up to the next whole prompt, since what such prompts add
// depends on what is in front of them.
type stretch struct {
	workspace, thread string
	from, to          int64
}

func stretchOf(ctx context.Context, tx *sql.Tx, workspace, thread string, from, behind int64) (stretch, error) {
	st := stretch{workspace, thread, from, behind - 1}
	const tail = " WHERE workspace_id = $1 AND thread_id = $2 AND seq >= $3 ORDER BY seq LIMIT $4"
	for at, few, breaks, found := from, 8, false, false; ; few = 256 {
		seen := 0
		err := eachEntry(ctx, tx, tail, []any{workspace, thread, at, few}, func(e *manifest.Entry) error {
			seen, at = seen+1, signed(e.Outline.Seq)+1
			switch o := &e.Outline; {
			case found:
			case at <= behind:
				breaks = breaks || o.Whole()
			case o.Kind == manifest.KindPrompt:
				found, st.to = o.Sent && (o.Whole() || !breaks), at-1
			}
			return nil
		})
		if err != nil || found || seen < few {
			return st, err
		}
	}
}

func (st *stretch) where() (string, []any) {
	return " WHERE workspace_id = $1 AND thread_id = $2 AND seq BETWEEN $3 AND $4 AND NOT EXISTS (SELECT 1 FROM pending p WHERE p.id = manifests.id)",
		[]any{st.workspace, st.thread, st.from, st.to}
}

// correct changes something of a thread, and the sums with it: add adds what the stretch is before and after.
func (st *stretch) correct(ctx context.Context, tx *sql.Tx, add func(c *manifest.Counter) error, change func() error) error {
	before, after := manifest.NewCounter(), manifest.NewCounter()
	if err := add(before); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	if err := add(after); err != nil {
		return err
	}
	after.Merge(before.Sums, -1)
	return keepSums(ctx, tx, after)
}
