package store_test

import (
	"database/sql"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/sqldb/schema"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

var update = flag.Bool("update", false, "write what the schema consists of")

// testObjects: verify knows the schema that the migrations make.
func (x suite) testObjects(t *testing.T) {
	dsn := x.newDSN(t)
	kind := sqldb.SQLite
	if strings.HasPrefix(dsn, "postgres") {
		kind = sqldb.Postgres
	}
	query, want, err := schema.Objects(kind)
	if err != nil {
		t.Fatal(err)
	}
	got, err := sqldb.ReadList(t.Context(), open(t, dsn, store.Options{}).DB(), "listing objects", query, nil, func(rows *sql.Rows, o *string) error { return rows.Scan(o) })
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("../internal/sqldb/schema/objects/"+string(kind)+".txt", []byte(strings.Join(got, "\n")+"\n"), 0o600); err != nil {
			t.Error(err)
		}
	} else if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("after a new migration: go test ./store -run 'Test.*/what_the_schema' -update (-got +want):\n%s", diff)
	}
}

// testAsideTampered: what stands beside the records is compared with them.
func (x suite) testAsideTampered(t *testing.T) {
	hide := "CREATE TRIGGER hide AFTER INSERT ON manifests BEGIN DELETE FROM pending; END"
	tests := []struct {
		name, sqlite, postgres string // the latter if it differs
		want                   manifest.BadReason
	}{
		{"second text", "INSERT INTO texts (hash, sha256, text) SELECT hash, 'sha256:0', 'another' FROM texts", "", manifest.BadFingerprint},
		{"text of nothing", "INSERT INTO texts (hash, sha256, text) VALUES ('sha256:0', 'sha256:0', 'another')", "", manifest.BadFingerprint},
		{"bytes behind the record", "UPDATE manifests SET record = CAST(record || 'more' AS BLOB) WHERE seq = 1", "UPDATE manifests SET record = record || 'more'::bytea WHERE seq = 1", manifest.BadSchema},
		{"bytes behind the hashes", "UPDATE tree_blocks SET hashes = CAST(hashes || 'more' AS BLOB)", "UPDATE tree_blocks SET hashes = hashes || 'more'::bytea", manifest.BadTree},
		{"block of hashes", "INSERT INTO tree_blocks (block, hashes) VALUES (9, '')", "", manifest.BadTree},
		{"place for nothing", "INSERT INTO pending (id) VALUES (-1)", "", manifest.BadTree},
		{"checkpoint changed", "UPDATE checkpoints SET leaves = leaves - 1", "", manifest.BadTree},
		{"checkpoint of another log", "UPDATE checkpoints SET note = replace(note, substr(note, 23, 5), 'AAAAA')", "", manifest.BadTree},
		{"words emptied", "INSERT INTO text_words (text_words) VALUES ('delete-all')", "DELETE FROM text_words", manifest.BadDatabase},
		{
			"word replaced", "DELETE FROM text_words WHERE rowid = 1; INSERT INTO text_words (rowid, words) VALUES (1, 'long')",
			"UPDATE text_words SET words = ts_delete(words, 'brief')", manifest.BadDatabase,
		},
		{"words of a text", "DELETE FROM text_words_docsize", "UPDATE text_words SET text_id = text_id + 9", manifest.BadDatabase},
		{"trigger", hide, "CREATE RULE hide AS ON INSERT TO pending DO INSTEAD NOTHING", manifest.BadDatabase},
		{"view", "ALTER TABLE holds RENAME TO other; CREATE VIEW holds AS SELECT * FROM other", "", manifest.BadDatabase},
		{"no index", "DROP INDEX chains_workspace", "", manifest.BadDatabase},
		{"another index", "DROP INDEX chains_workspace; CREATE INDEX chains_workspace ON chains (id)", "", manifest.BadDatabase},
		{"an index more", "CREATE INDEX own ON manifests (turn_id) WHERE seq < 1", "", manifest.BadDatabase},
		{"no table", "DROP TABLE leaves", "", manifest.BadDatabase},
		{"a column more", "ALTER TABLE texts ADD COLUMN more TEXT", "ALTER TABLE manifests ENABLE ROW LEVEL SECURITY", manifest.BadDatabase},
		{"rows of another", hide, "CREATE TABLE more () INHERITS (manifests)", manifest.BadDatabase},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			dsn, l := x.newDSN(t), newLog(t)
			s := open(t, dsn, store.Options{})
			text := "## Rules\n\nBe brief, σοφός ſie. ŉ İ ǅ Straße 割引はしません"
			m := sample("w", "t", 0)
			m.Sections = m.Sections[:1]
			m.Sections[0].Hash = manifest.Hash(text, nil)
			asked := `{"command":"echo heron"}`
			m.Calls = []manifest.Call{{Tool: "shell", Came: manifest.Hash(asked, nil), Went: manifest.Hash(asked, nil)}}
			if err := s.Append(t.Context(), m, []manifest.Text{{Hash: m.Sections[0].Hash, Text: text}, {Hash: m.Calls[0].Came, Text: asked}}); err != nil {
				t.Fatal(err)
			}
			fillThread(t, s, "w", "t", 1, 3)
			checkpoint(t, s, l)
			fillThread(t, s, "w", "t", 3, 4)
			storetest.Exec(t, dsn, "CREATE TABLE of_another_program (id INTEGER)")
			if got := verify(t, s, manifest.VerifyOptions{}); !got.OK {
				t.Fatalf("before: %+v", got)
			}
			statement := tt.sqlite
			if tt.postgres != "" && strings.HasPrefix(dsn, "postgres") {
				statement = tt.postgres
			}
			storetest.Exec(t, dsn, statement)
			if got := verify(t, s, manifest.VerifyOptions{}); got.OK || got.FirstBad.Reason != tt.want {
				t.Errorf("%+v, want the reason %s", got, tt.want)
			}
		})
	}
}
