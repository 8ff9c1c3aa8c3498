package docstest

import (
	"errors"
	"os"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
)

// attack is what somebody does to a log who may write to its database and has no key.
type attack struct {
	// name is the first cell of its row in docs/AUDIT.md, if it has one.
	name string
	do   func(t *testing.T, l *auditLog)
}

// attacks are the rows of docs/AUDIT.md about the database, in order.
func attacks() []attack {
	// do is an attack with nothing but SQL.
	do := func(statements ...string) func(*testing.T, *auditLog) {
		return func(t *testing.T, l *auditLog) {
			for _, s := range statements {
				l.exec(t, s)
			}
		}
	}
	// anew is an attack whose author makes the tree anew afterwards.
	anew := func(do func(*testing.T, *auditLog)) func(*testing.T, *auditLog) {
		return func(t *testing.T, l *auditLog) {
			do(t, l)
			l.retree(t)
		}
	}
	const (
		forget  = "DELETE FROM manifests WHERE seq > 2 AND thread_id = 't1'"
		reorder = "UPDATE manifests SET id = CASE id WHEN 1 THEN -2 ELSE -1 END WHERE id IN (1, 2)"
		turn    = "UPDATE manifests SET id = -id WHERE id < 0"
	)
	return []attack{
		{"changes a field of a record", func(t *testing.T, l *auditLog) {
			storetest.EditRecord(t, "sqlite:"+l.path, "seq = 2 AND thread_id = 't1'", `"turn_id":"turn-2"`, `"turn_id":"turn-9"`)
		}},
		{"takes a record away from the middle", do("DELETE FROM manifests WHERE seq = 2 AND thread_id = 't1'")},
		{"takes the newest records away", do(forget)},
		{"exchanges two records of a thread", do(
			"UPDATE manifests SET seq = -seq WHERE seq IN (1, 2) AND thread_id = 't1'", "UPDATE manifests SET seq = seq + 3 WHERE seq < 0")},
		{"puts a record behind the newest, and signs anew", func(t *testing.T, l *auditLog) { l.forge(t, auditRecord("t1", 100)) }},
		{"puts the records of two threads into another order, and makes the tree anew", anew(do(reorder, turn))},
		{"changes a kept text", do("UPDATE texts SET text = 'another text', hash = 'sha256:of another text'")},
		{"deletes a kept text, writes that it was erased, and signs anew", func(t *testing.T, l *auditLog) {
			do("INSERT INTO text_words (text_words) SELECT 'delete-all' FROM texts", "DELETE FROM text_uses", "DELETE FROM texts")(t, l)
			m := auditRecord("t1", 100)
			m.Kind, m.Sections = manifest.KindErasure, nil
			m.Erasure = &manifest.Erasure{By: "nobody", Reason: "none", At: m.CreatedAt, WorkspaceID: "w", ThreadID: "t1", Records: auditRecords, Texts: 1}
			l.forge(t, m)
		}},
		{"changes a sign-off", do("UPDATE chains SET first_seq = 1 WHERE thread_id = 't1'")},
		{"changes a hash of the tree", do("UPDATE tree_blocks SET hashes = zeroblob(32) || substr(hashes, 33)")},
		{"changes a record, and hashes it, all behind it, the sign-off and the tree anew", anew(func(t *testing.T, l *auditLog) { l.rewrite(t, 2) })},
		{"makes a whole thread and the tree anew, as if there had never been a key", anew(func(t *testing.T, l *auditLog) { l.rewrite(t, 0) })},
		{"takes the newest records away, signs anew, and makes the tree anew", anew(func(t *testing.T, l *auditLog) {
			l.exec(t, forget)
			l.sign(t, manifest.Chain{Next: 3, Last: l.hash(t, 2)})
		})},
		{"takes the oldest records away, as retention would, and signs anew", func(t *testing.T, l *auditLog) {
			l.sign(t, manifest.Chain{First: 2, Before: l.hash(t, 1), Next: auditRecords, Last: l.hash(t, auditRecords-1)})
			l.exec(t, "DELETE FROM manifests WHERE seq < 2 AND thread_id = 't1'")
		}},
		{"puts an older copy of the database in place", func(t *testing.T, l *auditLog) {
			for _, end := range []string{"-wal", "-shm"} {
				if err := os.Remove(l.path + end); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
			if err := copyFile(l.path+".older", l.path); err != nil {
				t.Fatal(err)
			}
		}},
		{"takes a whole thread away, sign-off included, and makes the tree anew", anew(do(
			"DELETE FROM manifests WHERE thread_id = 't1'", "DELETE FROM chains WHERE thread_id = 't1'"))},
		{"takes everything away", anew(do("DELETE FROM manifests", "DELETE FROM chains"))},
		{"keeps a text that no record names", func(t *testing.T, l *auditLog) {
			l.exec(t, "INSERT INTO texts (hash, sha256, text) VALUES ($1, $1, 'another text')", manifest.Hash("another text", nil))
		}},
		{"takes a kept checkpoint away", do("DELETE FROM checkpoints")},
		{"makes a trigger that hides later records", do("CREATE TRIGGER hide AFTER INSERT ON manifests BEGIN DELETE FROM pending; END")},
		{"changes the index of terms that `find` reads", do("DELETE FROM indexed_records")},
		{"changes what a provider reported", do("UPDATE usages SET cache_read_tokens = 0")},
	}
}
