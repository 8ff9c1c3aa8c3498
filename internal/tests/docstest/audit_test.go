package docstest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/translog"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// TestAuditThreats does to a log what docs/AUDIT.md says can be done to it, asks the verifier, and compares the outcome
// with the document: for a log of plain hashes, a keyed one, and plain ones of which the auditor has kept a head, or a
// checkpoint. The table has what is not seen in all of these. With -update it writes it.
func TestAuditThreats(t *testing.T) {
	t.Parallel()

	const name = "docs/AUDIT.md"
	ways := []string{"plain", "key", "head", "checkpoint"}
	list := attacks()
	cells := make([][]string, len(list))
	t.Run("attacks", func(t *testing.T) {
		t.Parallel()

		for n, a := range list {
			cells[n] = make([]string, len(ways))
			for i, way := range ways {
				t.Run(a.name+"/"+way, func(t *testing.T) {
					t.Parallel()

					l := newAuditLog(t, way)
					before := l.verdict(t)
					if !before.OK || before.Anchored != (way == "key" || way == "checkpoint") {
						t.Fatalf("before anything was done: %+v", before)
					}
					a.do(t, l)
					cells[n][i] = noticed(before, l.verdict(t))
				})
			}
		}
	})
	t.Cleanup(func() {
		var table strings.Builder
		for n, a := range list {
			if row := strings.Join(cells[n], " | "); row != "seen | seen | seen | seen" {
				table.WriteString("| " + a.name + " | " + row + " |\n")
			}
		}
		whole := text(t, name)
		at := strings.Index(whole, "\n| somebody who may write to the database |")
		from := at + strings.Index(whole[at:], "|---|") + 1
		from += strings.Index(whole[from:], "\n") + 1
		to := from + strings.Index(whole[from:], "\n\n") + 1
		if *update {
			whole = whole[:from] + table.String() + whole[to:]
			writeFile(t, filepath.Join(root(t), filepath.FromSlash(name)), whole)
			return
		}
		if diff := cmp.Diff(strings.Split(whole[from:to], "\n"), strings.Split(table.String(), "\n")); diff != "" {
			t.Errorf("attacks (-document +tried); -update writes them:\n%s", diff)
		}
	})
}

// auditRecords is how many records the thread has that is attacked.
const auditRecords = 5

// auditLog is a log that is about to be attacked: five records of the thread t1 and two of t2, in turns.
type auditLog struct {
	path string
	// opts, verify and since are the auditor's.
	opts   store.Options
	verify manifest.VerifyOptions
	since  store.Since
}

// newAuditLog makes a log with plain hashes, with a key, with a head that the auditor has kept, or with a checkpoint.
func newAuditLog(t *testing.T, way string) *auditLog {
	t.Helper()
	l := &auditLog{path: filepath.Join(t.TempDir(), "log.db")}
	if way == "key" {
		l.opts.Key = []byte("the operator's key")
	}
	s := l.open(t, l.opts)
	for i := range auditRecords {
		m := auditRecord("t1", i)
		texts := []manifest.Text{{Hash: m.Sections[0].Hash, Text: auditText}}
		other := auditRecord("t2", auditRecords+i)
		err := errors.Join(s.Append(t.Context(), m, texts),
			s.Report(t.Context(), manifest.Usage{ManifestID: m.ManifestID, Rounds: 1, ReportedAt: m.CreatedAt, Usage: phases.Usage{CacheReadTokens: 7}}))
		if i < 2 {
			err = errors.Join(err, s.Append(t.Context(), other, nil))
		}
		if i == 2 {
			err = errors.Join(err, s.Settle(t.Context()), s.Close(), copyFile(l.path, l.path+".older"))
			s = l.open(t, l.opts)
		}
		if err != nil {
			t.Fatal(err)
		}
		if way == "head" {
			l.verify.Head = m.Hash
		}
	}
	c := l.checkpoint(t, s)
	if way == "checkpoint" {
		l.since.Checkpoint = c
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return l
}

// checkpoint signs the log, with a key that is nowhere else.
func (l *auditLog) checkpoint(t *testing.T, s *store.Store) *translog.Checkpoint {
	t.Helper()
	private, _, err := translog.NewKey("example.com/log")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := translog.NewLog(private)
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.Checkpoint(t.Context(), signer)
	if err != nil {
		t.Fatal(err)
	}
	return &made
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

// auditText is the text of the section that the records have.
const auditText = "## Rules\n\nBe brief."

// auditRecord is record n of a log, of the given thread.
func auditRecord(thread string, n int) *manifest.Manifest {
	m := manifest.New()
	m.ManifestID = fmt.Sprintf("01JZ%022d", n)
	m.CompilerVersion, m.WorkspaceID, m.ThreadID, m.TurnID = "1", "w", thread, fmt.Sprintf("turn-%d", n)
	m.CreatedAt = time.Date(2026, 2, 3, 4, 5, n, 0, time.UTC)
	m.Fingerprints = manifest.EmptyFingerprints(nil)
	m.Sections = []manifest.Section{{
		SectionID: "rules", Title: "Rules", Stability: "stable", Placement: "system", Owner: "house", Chars: 9, OriginalChars: 9,
		Fingerprint: manifest.Fingerprint(auditText, nil), Hash: manifest.Hash(auditText, nil),
	}}
	m.Complete()
	return &m
}

func (l *auditLog) open(t *testing.T, o store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "sqlite:"+l.path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// verdict asks the verifier.
func (l *auditLog) verdict(t *testing.T) manifest.Verdict {
	t.Helper()
	o := l.opts
	o.ReadOnly = true
	verdict, err := l.open(t, o).VerifySince(t.Context(), store.Filter{}, l.verify, l.since)
	if err != nil {
		t.Fatal(err)
	}
	return verdict
}

// noticed says in the document's words what an auditor notices.
func noticed(before, after manifest.Verdict) string {
	switch {
	case !after.OK:
		return "seen"
	case before.Anchored && !after.Anchored:
		return "**not anchored**"
	default:
		return "**not seen**"
	}
}

// on opens the database as any program can.
func (l *auditLog) on(t *testing.T, do func(ctx context.Context, db *sql.DB) error) {
	t.Helper()
	db, err := sql.Open("sqlite", l.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(do(t.Context(), db), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// exec changes at least one row.
func (l *auditLog) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	l.on(t, func(ctx context.Context, db *sql.DB) error {
		result, err := db.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 && !strings.Contains(statement, "CREATE ") {
			return fmt.Errorf("%s: changed %d rows: %w", statement, n, err)
		}
		return nil
	})
}

// sign puts a sign-off in place that was made without a key.
func (l *auditLog) sign(t *testing.T, c manifest.Chain) {
	t.Helper()
	c.WorkspaceID, c.ThreadID = "w", "t1"
	if err := c.Sign(nil); err != nil {
		t.Fatal(err)
	}
	l.exec(t, "UPDATE chains SET first_seq = $1, first_prev = $2, next_seq = $3, last_hash = $4, last_at = 0, signature = $5 WHERE thread_id = 't1'",
		c.First, c.Before, c.Next, c.Last, c.Signature)
}

// hash is that of a record of t1.
func (l *auditLog) hash(t *testing.T, seq int) string {
	t.Helper()
	var hash string
	l.on(t, func(ctx context.Context, db *sql.DB) error {
		return db.QueryRowContext(ctx, "SELECT hash FROM manifests WHERE thread_id = 't1' AND seq = $1", seq).Scan(&hash)
	})
	return hash
}

// rewrite changes a record of t1, and hashes it, all behind it and the sign-off
// anew. It has no key.
func (l *auditLog) rewrite(t *testing.T, from int) {
	t.Helper()
	var last *manifest.Link
	if from > 0 {
		last = &manifest.Link{Seq: uint64(from - 1), Hash: l.hash(t, from-1)}
	}
	for seq := from; seq < auditRecords; seq++ {
		m := auditRecord("t1", seq)
		if seq == from {
			m.TurnID = "turn-9"
		}
		l.exec(t, "DELETE FROM manifests WHERE thread_id = 't1' AND seq = $1", seq)
		l.put(t, m, last)
		link := m.Link()
		last = &link
	}
	l.sign(t, manifest.Chain{Next: last.Seq + 1, Last: last.Hash})
}

// put writes a record behind another one, without a key and without a sign-off.
func (l *auditLog) put(t *testing.T, m *manifest.Manifest, last *manifest.Link) {
	t.Helper()
	record, err := manifest.SealRecord(nil, m, last, nil)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := storetest.Pack(record.Data)
	if err != nil {
		t.Fatal(err)
	}
	x, outline := &record.Index, m.Outline()
	l.exec(t, `INSERT INTO manifests (manifest_id, workspace_id, thread_id, seq, turn_id, created_at, actor, profile, fingerprint_full, hash, bytes, outline, record)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
		x.ManifestID, x.WorkspaceID, x.ThreadID, int64(x.Seq), x.TurnID, x.CreatedAt.UnixNano(), m.Actor, string(x.Profile), x.FingerprintFull, x.Hash,
		len(record.Data), outline.Append(nil), packed)
	l.exec(t, "INSERT INTO pending (id) SELECT id FROM manifests WHERE manifest_id = $1", x.ManifestID)
}

// retree makes the tree anew from the records that there are, in their order.
func (l *auditLog) retree(t *testing.T) {
	t.Helper()
	l.on(t, func(ctx context.Context, db *sql.DB) error {
		var errs []error
		for _, statement := range []string{
			"DELETE FROM leaves", "DELETE FROM tree_blocks", "DELETE FROM checkpoints", "DELETE FROM pending", "DELETE FROM indexed_records", "DELETE FROM indexed_batches", "DELETE FROM record_terms", "UPDATE tree_state SET leaves = 0",
			"INSERT INTO pending (id) SELECT id FROM manifests",
		} {
			_, err := db.ExecContext(ctx, statement)
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	if err := l.open(t, store.Options{}).Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// forge appends a record to t1 and signs anew, without a key.
func (l *auditLog) forge(t *testing.T, m *manifest.Manifest) {
	t.Helper()
	l.put(t, m, &manifest.Link{Seq: auditRecords - 1, Hash: l.hash(t, auditRecords-1)})
	l.sign(t, manifest.Chain{Next: auditRecords + 1, Last: m.Hash})
	if err := l.open(t, store.Options{}).Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
}
