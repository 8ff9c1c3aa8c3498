package docstest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// attack is what somebody does to a log who may write to its database and does
// not have the key.
type attack struct {
	// name is the first cell of its row in docs/AUDIT.md.
	name string
	do   func(t *testing.T, l *auditLog)
}

// attacks are the rows of docs/AUDIT.md about the database, in order.
func attacks() []attack {
	return []attack{
		{"changes a field of a record", func(t *testing.T, l *auditLog) {
			storetest.EditRecord(t, "sqlite:"+l.path, "seq = 2 AND thread_id = 't1'", `"turn_id":"turn-2"`, `"turn_id":"turn-9"`)
		}},
		{"changes a column beside a record, such as `turn_id`", func(t *testing.T, l *auditLog) {
			l.exec(t, "UPDATE manifests SET turn_id = 'turn-9' WHERE seq = 2 AND thread_id = 't1'")
		}},
		{"takes a record away from the middle", func(t *testing.T, l *auditLog) {
			l.exec(t, "DELETE FROM manifests WHERE seq = 2 AND thread_id = 't1'")
		}},
		{"takes the newest records away", func(t *testing.T, l *auditLog) {
			l.exec(t, "DELETE FROM manifests WHERE seq > 2 AND thread_id = 't1'")
		}},
		{"puts a record behind the newest", func(t *testing.T, l *auditLog) {
			l.put(t, auditRecord("t1", 100), &manifest.Link{Seq: auditRecords - 1, Hash: l.hash(t, auditRecords-1)})
		}},
		{"changes a kept text", func(t *testing.T, l *auditLog) {
			l.exec(t, "UPDATE texts SET text = 'another text', hash = 'sha256:of another text'")
		}},
		{"changes a record, and hashes it, all behind it and the sign-off anew", func(t *testing.T, l *auditLog) { l.rewrite(t, 2) }},
		{"makes a whole thread anew, as if there had never been a key", func(t *testing.T, l *auditLog) { l.rewrite(t, 0) }},
		{"takes the newest records away, and signs anew", func(t *testing.T, l *auditLog) {
			l.exec(t, "DELETE FROM manifests WHERE seq > 2 AND thread_id = 't1'")
			l.sign(t, manifest.Chain{Next: 3, Last: l.hash(t, 2)})
		}},
		{"takes the oldest records away, and signs anew", func(t *testing.T, l *auditLog) {
			l.sign(t, manifest.Chain{First: 2, Before: l.hash(t, 1), Next: auditRecords, Last: l.hash(t, auditRecords-1)})
			l.exec(t, "DELETE FROM manifests WHERE seq < 2 AND thread_id = 't1'")
		}},
		{"puts an older copy of the database in place", func(t *testing.T, l *auditLog) {
			l.exec(t, "DELETE FROM manifests WHERE seq > 2 AND thread_id = 't1'")
			l.exec(t, "UPDATE chains SET next_seq = $1, last_hash = $2, last_at = $3, signature = $4 WHERE thread_id = 't1'",
				l.older.Next, l.older.Last, l.older.LastAt.UnixNano(), l.older.Signature)
		}},
		{"takes a whole thread away, sign-off included", func(t *testing.T, l *auditLog) {
			l.exec(t, "DELETE FROM manifests WHERE thread_id = 't1'")
			l.exec(t, "DELETE FROM chains WHERE thread_id = 't1'")
		}},
		{"changes what a provider reported", func(t *testing.T, l *auditLog) {
			l.exec(t, "UPDATE usages SET cache_read_tokens = 0")
		}},
	}
}

// TestAuditThreats does to a log what docs/AUDIT.md says can be done to it, and
// wants the verifier to notice it where the document says so: in a log of plain
// hashes, in a keyed one, and in a plain one whose head was kept.
func TestAuditThreats(t *testing.T) {
	t.Parallel()

	const name = "docs/AUDIT.md"
	table := threats(t, name)
	var tried []string
	for _, a := range attacks() {
		tried = append(tried, a.name)
		cells, ok := table[a.name]
		if !ok || len(cells) != 3 {
			t.Errorf("%s has no row %q with three answers", name, a.name)
			continue
		}
		for i, way := range []string{"plain", "key", "head"} {
			t.Run(a.name+"/"+way, func(t *testing.T) {
				t.Parallel()

				l := newAuditLog(t, way)
				before := l.verdict(t)
				if !before.OK || before.Anchored != (way == "key") {
					t.Fatalf("before anything was done: %+v", before)
				}
				a.do(t, l)
				if got := noticed(before, l.verdict(t)); got != cells[i] {
					t.Errorf("it is %s, and %s says %s", got, name, cells[i])
				}
			})
		}
	}
	slices.Sort(tried)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(table)), tried); diff != "" {
		t.Errorf("attacks (-document +tried):\n%s", diff)
	}
}

// threats are the rows of the document's table of attacks: their other cells by
// the first one.
func threats(t *testing.T, name string) map[string][]string {
	t.Helper()
	_, below, found := strings.Cut(prose(document{name, text(t, name)}), "\n| somebody who may write to the database |")
	if !found {
		t.Fatalf("%s has no table of attacks", name)
	}
	below, _, _ = strings.Cut(below, "\n\n")
	out := map[string][]string{}
	for line := range strings.Lines(below) {
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | "); len(cells) == 4 && strings.HasPrefix(line, "| ") {
			out[cells[0]] = cells[1:]
		}
	}
	return out
}

// auditRecords is how many records the thread has that is attacked.
const auditRecords = 5

// auditLog is a log that is about to be attacked: five records of the thread t1 and
// two of another one.
type auditLog struct {
	path string
	// opts and verify are the auditor's.
	opts   store.Options
	verify manifest.VerifyOptions
	// older is the sign-off of t1 as it was after three records.
	older manifest.Chain
}

// newAuditLog makes a log with plain hashes, with a key, or with a head that the
// auditor has kept.
func newAuditLog(t *testing.T, way string) *auditLog {
	t.Helper()
	l := &auditLog{path: filepath.Join(t.TempDir(), "log.db")}
	if way == "key" {
		l.opts.Key = []byte("the operator's key")
	}
	s := l.open(t, l.opts)
	for i := range auditRecords {
		m := auditRecord("t1", i)
		texts := []manifest.Text{{Fingerprint: m.Sections[0].Fingerprint, Text: auditText}}
		if err := s.Append(t.Context(), m, texts); err != nil {
			t.Fatal(err)
		}
		if err := s.Report(t.Context(), manifest.Usage{ManifestID: m.ManifestID, Rounds: 1, ReportedAt: m.CreatedAt}); err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			l.older = l.chain(t)
		}
		if way == "head" {
			l.verify.Head = m.Hash
		}
	}
	for i := range 2 {
		if err := s.Append(t.Context(), auditRecord("t2", auditRecords+i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return l
}

// auditText is the text of the section that the records have.
const auditText = "## Rules\n\nBe brief."

// auditRecord is record n of a log, of the given thread.
func auditRecord(thread string, n int) *manifest.Manifest {
	m := manifest.New()
	none := manifest.Fingerprint("", nil)
	m.ManifestID = fmt.Sprintf("01JZ%022d", n)
	m.CompilerVersion, m.WorkspaceID, m.ThreadID, m.TurnID = "1", "w", thread, fmt.Sprintf("turn-%d", n)
	m.CreatedAt = time.Date(2026, 2, 3, 4, 5, n, 0, time.UTC)
	m.FingerprintStable, m.FingerprintDynamic, m.FingerprintDynamicWithoutExtraSystem = none, none, none
	m.FingerprintFull, m.FingerprintTools = none, none
	m.Sections = []manifest.Section{{
		SectionID: "rules", Title: "Rules", Stability: "stable", Placement: "system", Owner: "house", Chars: 9, OriginalChars: 9,
		Fingerprint: manifest.Fingerprint(auditText, nil),
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
	verdict, err := l.open(t, o).Verify(t.Context(), store.Filter{}, l.verify)
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
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return fmt.Errorf("%s: changed %d rows: %w", statement, n, err)
		}
		return nil
	})
}

// chain is the sign-off of t1.
func (l *auditLog) chain(t *testing.T) manifest.Chain {
	t.Helper()
	c := manifest.Chain{WorkspaceID: "w", ThreadID: "t1"}
	l.on(t, func(ctx context.Context, db *sql.DB) error {
		const query = "SELECT first_seq, first_prev, next_seq, last_hash, last_at, signature FROM chains WHERE thread_id = 't1'"
		return db.QueryRowContext(ctx, query).Scan(&c.First, &c.Before, &c.Next, &c.Last, sqldb.Nanos{To: &c.LastAt}, &c.Signature)
	})
	return c
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
	x := &record.Index
	l.exec(t, `INSERT INTO manifests (manifest_id, workspace_id, thread_id, seq, turn_id, created_at, actor, profile, fingerprint_full, hash, bytes, outline, record)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		x.ManifestID, x.WorkspaceID, x.ThreadID, int64(x.Seq), x.TurnID, x.CreatedAt.UnixNano(), string(x.Profile), x.FingerprintFull, x.Hash,
		len(record.Data), packed)
	l.exec(t, "INSERT INTO pending (id) SELECT id FROM manifests WHERE manifest_id = $1", x.ManifestID)
}
