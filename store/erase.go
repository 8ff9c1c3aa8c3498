package store

import (
	"cmp"
	"context"
	"database/sql"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
)

// Erasing says which texts are to be erased, and why.
type Erasing struct {
	Scope

	// Before narrows it to older records; the zero time does not.
	Before time.Time
	// By is who asked for it, and Reason is why.
	By, Reason string
	// DryRun counts, and erases nothing.
	DryRun bool
}

func (e *Erasing) check() error {
	for _, value := range []string{e.WorkspaceID, e.ThreadID, e.Actor, e.By, e.Reason} {
		if !isText(value) {
			return sqldb.Failf(CodeInvalid, "", "the erasure is not text: %.80q", value)
		}
	}
	switch {
	case e.Scope == (Scope{}) && e.Before.IsZero():
		return sqldb.Failf(CodeInvalid, "", "an erasure is of a workspace, a thread, an actor or an age")
	case !e.Before.IsZero() && !inRange(e.Before):
		return sqldb.Failf(CodeInvalid, "", "the erasure's time %s is out of range", e.Before)
	case !e.DryRun && (e.By == "" || e.Reason == ""):
		return sqldb.Failf(CodeInvalid, "", "an erasure needs who asked for it, and why")
	}
	return nil
}

// Erased counts what was erased.
type Erased struct {
	// Threads got a record of it each.
	Threads int `json:"threads"`
	// Records named one of the texts.
	Records int `json:"records"`
	// Texts are those that they named, counted in each thread, and Gone those of them that no other record names: they are
	// not in the database.
	Texts int `json:"texts"`
	Gone  int `json:"gone"`
	// Entries are those of kept conversations. The summaries that stood for one of them are gone, too.
	Entries int `json:"entries"`
}

// Erase removes the texts of records, and entries of conversations, from the database and its files; the records stay,
// with the hashes of the texts. A text that other records name too stays until those are erased. In each thread that it touches it first appends a record of
// kind erasure, which says who, when, why and what, and which accounts for the texts that are gone when the log is
// verified.
//
// It refuses, with the code CodeHeld, a scope in which something is held. It works in short transactions: after an error,
// erase again.
func (s *Store) Erase(ctx context.Context, e Erasing) (Erased, error) {
	var done Erased
	if err := e.check(); err != nil {
		return done, err
	}
	if e.Before = e.Before.UTC(); !e.DryRun {
		if err := s.Settle(ctx); err != nil { // what is indexed can be taken out of the index
			return done, err
		}
	}
	var parts []erasedPart
	err := s.db.Snapshot(ctx, "looking for what to erase", func(tx *sql.Tx) (err error) {
		if err := e.refuseHeld(ctx, tx); err != nil {
			return err
		}
		if parts, err = e.parts(ctx, tx); err != nil {
			return err
		}
		parts, err = e.addEntries(ctx, tx, parts)
		return err
	})
	if err != nil {
		return done, err
	}
	var p pace
	for i := range parts {
		part := &parts[i]
		done.Threads, done.Records, done.Texts = done.Threads+1, done.Records+part.records, done.Texts+part.texts
		done.Entries += part.entries
		if e.DryRun {
			continue
		}
		if err := s.erasePart(ctx, &e, part, &p); err != nil {
			return done, err
		}
		if err := s.eraseEntries(ctx, &e, part, &p); err != nil {
			return done, err
		}
	}
	if e.DryRun {
		return done, nil
	}
	if done.Gone, err = s.pruneTexts(ctx, &p); err != nil {
		return done, err
	}
	return done, s.wipe(ctx)
}

// refuseHeld refuses a scope that overlaps a hold.
func (e *Erasing) refuseHeld(ctx context.Context, tx *sql.Tx) error {
	const overlaps = ` WHERE (h.workspace_id = '' OR $1 = '' OR h.workspace_id = $1) AND (h.thread_id = '' OR $2 = '' OR h.thread_id = $2)
		AND (h.actor = '' OR $3 = '' OR h.actor = $3)`
	list, err := holds(ctx, tx, overlaps, e.WorkspaceID, e.ThreadID, e.Actor)
	if err != nil || len(list) == 0 {
		return err
	}
	h := &list[0]
	return sqldb.Failf(CodeHeld, "grapnel manifest release ends a hold", "%s holds the workspace %q, thread %q, actor %q (empty is any): %s",
		h.By, h.WorkspaceID, h.ThreadID, h.Actor, h.Reason)
}

// erasedPart is what is erased of one thread: texts that records up to an id name, and no later ones.
type erasedPart struct {
	workspace, thread string
	chain, upTo       int64
	records, texts    int
	entries           int // of conversations
}

// parts finds the threads with something to erase.
func (e *Erasing) parts(ctx context.Context, tx *sql.Tx) ([]erasedPart, error) {
	where, args := whereEqual([]equal{{"workspace_id", e.WorkspaceID}, {"thread_id", e.ThreadID}})
	all, err := sqldb.List(ctx, tx, "SELECT id, workspace_id, thread_id FROM chains"+where+" ORDER BY id", args, func(rows *sql.Rows, p *erasedPart) error {
		return rows.Scan(&p.chain, &p.workspace, &p.thread)
	})
	if err != nil {
		return nil, err
	}
	var parts []erasedPart
	for i := range all {
		if err := e.measure(ctx, tx, &all[i]); err != nil {
			return nil, err
		}
		if all[i].texts > 0 {
			parts = append(parts, all[i])
		}
	}
	return parts, nil
}

func (e *Erasing) measure(ctx context.Context, tx *sql.Tx, p *erasedPart) error {
	const newest = `SELECT id FROM manifests WHERE workspace_id = $1 AND thread_id = $2 AND created_at < $3 ORDER BY seq DESC LIMIT 1`
	before := cmp.Or(nanos(e.Before), farAway)
	err := sqldb.Each(ctx, tx, newest, []any{p.workspace, p.thread, before}, func(rows *sql.Rows) error { return rows.Scan(&p.upTo) })
	if err != nil {
		return err
	}
	const uses = "SELECT count(DISTINCT text_id), coalesce(min(first_id), 0) FROM text_uses WHERE " + usesOfPart
	var first int64
	if err := tx.QueryRowContext(ctx, uses, p.chain, p.upTo, e.Actor).Scan(&p.texts, &first); err != nil || p.texts == 0 {
		return err
	}
	const records = "SELECT count(*) FROM manifests WHERE workspace_id = $1 AND thread_id = $2 AND +id BETWEEN $3 AND $4 AND ($5 = '' OR actor = $5)"
	return tx.QueryRowContext(ctx, records, p.workspace, p.thread, first, p.upTo, e.Actor).Scan(&p.records)
}

const (
	usesOfPart = "chain_id = $1 AND last_id <= $2 AND ($3 = '' OR actor = $3)"
	farAway    = 1<<63 - 1
)

// erasePart appends the record of the erasure, and removes the uses of the texts.
func (s *Store) erasePart(ctx context.Context, e *Erasing, p *erasedPart, rate *pace) error {
	m, err := s.erasureRecord(e, p)
	if err != nil {
		return err
	}
	query := "DELETE FROM text_uses WHERE (text_id, chain_id, actor) IN (SELECT text_id, chain_id, actor FROM text_uses WHERE " + usesOfPart + " LIMIT $4)"
	recorded := false
	_, err = s.steps(ctx, "erasing", rate, func(ctx context.Context, tx *sql.Tx, most int) (int, error) {
		if !recorded {
			if err := e.refuseHeld(ctx, tx); err != nil {
				return 0, err
			}
			if _, _, err := s.appendIn(ctx, tx, m); err != nil {
				return 0, err
			}
			recorded = true
		}
		return affected(tx.ExecContext(ctx, query, p.chain, p.upTo, e.Actor, most))
	})
	return err
}

func (s *Store) erasureRecord(e *Erasing, p *erasedPart) (*manifest.Manifest, error) {
	now := s.opts.Now()
	id, err := ulid.New(uint64(max(0, now.UnixMilli())), ulid.DefaultEntropy())
	if err != nil {
		return nil, err
	}
	m := manifest.New()
	m.Kind, m.ManifestID, m.WorkspaceID, m.ThreadID, m.CreatedAt = manifest.KindErasure, id.String(), p.workspace, p.thread, now
	m.Fingerprints = manifest.EmptyFingerprints(s.opts.FingerprintKey)
	m.Erasure = &manifest.Erasure{
		By: e.By, Reason: e.Reason, At: now.UTC(), WorkspaceID: e.WorkspaceID, ThreadID: e.ThreadID, Actor: e.Actor, Before: e.Before,
		Records: p.records, Texts: p.texts,
	}
	return &m, nil
}
