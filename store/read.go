package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

// Filter says which manifests are meant. The zero value is all of them.
type Filter struct {
	// Workspace and Thread are ids; empty is any.
	Workspace, Thread string
	// Limit takes the newest so many; 0 is all.
	Limit int
}

// where returns the filter as SQL behind a FROM, with its arguments.
func (f Filter) where() (string, []any) {
	var terms []string
	var args []any
	for _, t := range []struct{ column, value string }{{"workspace_id", f.Workspace}, {"thread_id", f.Thread}} {
		if t.value != "" {
			args = append(args, t.value)
			terms = append(terms, fmt.Sprintf("%s = $%d", t.column, len(args)))
		}
	}
	if len(terms) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(terms, " AND "), args
}

// newest returns a query for columns of the manifests that the filter takes, the
// newest first, with its arguments. Each kind of filter has an index that gives
// its rows in that order, so that a limit bounds the work.
func (f Filter) newest(columns string) (string, []any) {
	if f.Thread != "" && f.Workspace == "" {
		return f.newestOfThread(columns)
	}
	where, args := f.where()
	order := " ORDER BY id DESC"
	if f.Thread != "" {
		order = " ORDER BY seq DESC" // within a thread that is the same
	}
	if f.Limit > 0 {
		args = append(args, f.Limit)
		order += fmt.Sprintf(" LIMIT $%d", len(args))
	}
	return "SELECT " + columns + " FROM manifests" + where + order, args
}

// newestOfThread is newest for a thread of any workspace. The index of threads
// has the workspace before seq, so the thread's workspaces are looked up one after
// the other, and of each no more than the limit is read.
func (f Filter) newestOfThread(columns string) (string, []any) {
	const workspaces = `WITH RECURSIVE w(id) AS (
		SELECT min(workspace_id) FROM manifests WHERE thread_id = $1
		UNION ALL
		SELECT (SELECT min(m.workspace_id) FROM manifests m WHERE m.thread_id = $1 AND m.workspace_id > w.id) FROM w WHERE w.id IS NOT NULL)
		SELECT `
	const from = " FROM w CROSS JOIN manifests WHERE thread_id = $1 AND workspace_id = w.id"
	if f.Limit == 0 {
		return workspaces + columns + from + " ORDER BY manifests.id DESC", []any{f.Thread}
	}
	const limit = ` AND seq > (SELECT max(m.seq) FROM manifests m WHERE m.thread_id = $1 AND m.workspace_id = w.id) - $2
		ORDER BY manifests.id DESC LIMIT $2`
	return workspaces + columns + from + limit, []any{f.Thread, f.Limit}
}

// oldest returns the end of a query that gives the manifests oldest first. Threads
// come one after the other where the filter names one: then no index has the order
// in which manifests of several workspaces were appended.
func (f Filter) oldest() (string, []any) {
	where, args := f.where()
	if f.Thread != "" {
		return where + " ORDER BY workspace_id, seq", args
	}
	return where + " ORDER BY id", args
}

// indexColumns are what scanIndex reads.
const indexColumns = "manifest_id, seq, workspace_id, thread_id, turn_id, created_at, profile, fingerprint_full, hash"

// scanIndex reads a row with indexColumns, and further ones into more.
func scanIndex(rows *sql.Rows, more ...any) (manifest.Index, error) {
	var x manifest.Index
	var seq, created int64
	var profile string
	to := []any{&x.ManifestID, &seq, &x.WorkspaceID, &x.ThreadID, &x.TurnID, &created, &profile, &x.FingerprintFull, &x.Hash}
	err := rows.Scan(append(to, more...)...)
	x.Seq, x.CreatedAt, x.Profile = unsigned(seq), time.Unix(0, created).UTC(), phases.Profile(profile)
	return x, err
}

// List returns the index of the newest manifests, newest last; never nil.
func (s *Store) List(ctx context.Context, f Filter) ([]manifest.Index, error) {
	list := []manifest.Index{}
	query, args := f.newest(indexColumns)
	err := s.db.Snapshot(ctx, "listing manifests", func(tx *sql.Tx) error {
		return sqldb.Each(ctx, tx, query, args, func(rows *sql.Rows) error {
			x, err := scanIndex(rows)
			list = append(list, x)
			return err
		})
	})
	slices.Reverse(list)
	return list, err
}

// Manifests returns the newest manifests, newest last, as blame wants them.
func (s *Store) Manifests(ctx context.Context, f Filter) ([]*manifest.Manifest, error) {
	list := []*manifest.Manifest{}
	query, args := f.newest("manifest_id, record")
	err := s.db.Snapshot(ctx, "reading manifests", func(tx *sql.Tx) error {
		return sqldb.Each(ctx, tx, query, args, func(rows *sql.Rows) error {
			m, err := scanManifest(rows)
			list = append(list, m)
			return err
		})
	})
	slices.Reverse(list)
	return list, err
}

// scanManifest decodes a row of manifest_id and record.
func scanManifest(rows *sql.Rows) (*manifest.Manifest, error) {
	var id string
	var data sql.RawBytes
	if err := rows.Scan(&id, &data); err != nil {
		return nil, err
	}
	m, err := manifest.Parse(data)
	if err != nil && schemaOf(data) > manifest.SchemaVersion {
		return nil, sqldb.Failf(CodeSchema, "use the Grapnel that wrote it, or a newer one",
			"manifest %s has the schema %d, this program knows %d", id, schemaOf(data), manifest.SchemaVersion)
	}
	if err != nil {
		return nil, &Error{Code: CodeInvalid, Message: "manifest " + id + " is not readable", Err: err, Remedy: "verify the log: it names what was altered"}
	}
	return &m, nil
}

// schemaOf returns the schema version that a record says it has; 0 if it says
// none.
func schemaOf(data []byte) int {
	var head struct {
		SchemaVersion int `json:"schema_version"`
	}
	if json.Unmarshal(data, &head) != nil {
		return 0
	}
	return head.SchemaVersion
}

// idLength is the length of a ULID.
const idLength = 26

// Found is which manifest an id means, and how long its record is in bytes.
type Found struct {
	ManifestID, WorkspaceID, ThreadID string
	Bytes                             int
}

// foundColumns are what scanFound reads. The length is known without reading the record.
const foundColumns = "manifest_id, workspace_id, thread_id, octet_length(record)"

func scanFound(rows *sql.Rows) (x Found, err error) {
	err = rows.Scan(&x.ManifestID, &x.WorkspaceID, &x.ThreadID, &x.Bytes)
	return x, err
}

// Find says which manifest has an id, or is the only one whose id begins so, in upper or
// lower case; without an id, the newest that the filter takes. The codes of its errors
// are CodeNotFound and CodeAmbiguous, which lists some of the ids.
func (s *Store) Find(ctx context.Context, id string, f Filter) (Found, error) {
	var x Found
	err := s.db.Snapshot(ctx, "looking for a manifest", func(tx *sql.Tx) (err error) {
		if id == "" {
			x, err = findLatest(ctx, tx, f)
		} else {
			x, err = find(ctx, tx, id)
		}
		return err
	})
	return x, err
}

func findLatest(ctx context.Context, tx *sql.Tx, f Filter) (x Found, err error) {
	f.Limit = 1
	query, args := f.newest(foundColumns)
	err = sqldb.Each(ctx, tx, query, args, func(rows *sql.Rows) (err error) {
		x, err = scanFound(rows)
		return err
	})
	if err == nil && x.ManifestID == "" {
		err = sqldb.Failf(CodeNotFound, "", "there are no manifests yet")
	}
	return x, err
}

// find is Find for an id.
func find(ctx context.Context, tx *sql.Tx, id string) (Found, error) {
	prefix := strings.ToUpper(id)
	if prefix == "" || len(prefix) > idLength || strings.Trim(prefix, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") != "" {
		return Found{}, sqldb.Failf(CodeNotFound, "ids are up to 26 digits and letters", "%.80q is no manifest's id, nor the beginning of one", id)
	}
	rest := idLength - len(prefix)
	var found []Found
	var ids []string
	const query = "SELECT " + foundColumns + " FROM manifests WHERE manifest_id BETWEEN $1 AND $2 ORDER BY manifest_id LIMIT 4"
	args := []any{prefix + strings.Repeat("0", rest), prefix + strings.Repeat("Z", rest)}
	err := sqldb.Each(ctx, tx, query, args, func(rows *sql.Rows) error {
		x, err := scanFound(rows)
		found, ids = append(found, x), append(ids, x.ManifestID)
		return err
	})
	switch {
	case err != nil:
		return Found{}, err
	case len(found) == 0:
		return Found{}, sqldb.Failf(CodeNotFound, "list shows the ids there are", "there is no manifest %s", id)
	case len(found) > 1:
		return Found{}, sqldb.Failf(CodeAmbiguous, "give more of it", "several manifests begin with %s: %s", id, strings.Join(ids, ", "))
	}
	return found[0], nil
}

// Get returns the manifest with an id, or with the only id that begins so. The codes of
// its errors are those of Find.
func (s *Store) Get(ctx context.Context, id string) (*manifest.Manifest, error) {
	var m *manifest.Manifest
	err := s.db.Snapshot(ctx, "reading a manifest", func(tx *sql.Tx) error {
		x, err := find(ctx, tx, id)
		if err != nil {
			return err
		}
		return sqldb.Each(ctx, tx, "SELECT manifest_id, record FROM manifests WHERE manifest_id = $1", []any{x.ManifestID}, func(rows *sql.Rows) (err error) {
			m, err = scanManifest(rows)
			return err
		})
	})
	return m, err
}

// Latest returns the newest manifest that the filter takes. The code of the
// error is CodeNotFound where there is none.
func (s *Store) Latest(ctx context.Context, f Filter) (*manifest.Manifest, error) {
	f.Limit = 1
	list, err := s.Manifests(ctx, f)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, sqldb.Failf(CodeNotFound, "", "there are no manifests yet")
	}
	return list[0], nil
}

// Records streams stored manifests as they are, oldest first, out of one state
// of the database; those of a thread that several workspaces have, workspace by
// workspace. The limit does not count here. A record's data is valid until
// the next one. After an error there is nothing more.
func (s *Store) Records(ctx context.Context, f Filter) iter.Seq2[manifest.Record, error] {
	tail, args := f.oldest()
	return func(yield func(manifest.Record, error) bool) {
		err := s.db.Scan(ctx, "reading manifests", func(tx *sql.Tx) error {
			return eachRecord(ctx, tx, tail, args, func(r manifest.Record) error {
				if !yield(r, nil) {
					return errStopped
				}
				return nil
			})
		})
		if err != nil && !isStopped(err) {
			yield(manifest.Record{}, err)
		}
	}
}

func eachRecord(ctx context.Context, tx *sql.Tx, tail string, args []any, do func(r manifest.Record) error) error {
	return sqldb.Each(ctx, tx, "SELECT "+indexColumns+", record FROM manifests"+tail, args, func(rows *sql.Rows) error {
		var data sql.RawBytes
		x, err := scanIndex(rows, &data)
		if err != nil {
			return err
		}
		return do(manifest.Record{Index: x, Data: data})
	})
}
