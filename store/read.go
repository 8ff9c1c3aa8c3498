package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
)

// Filter selects manifests. The zero value selects all.
type Filter struct {
	// Workspace and Thread are ids; empty is any.
	Workspace, Thread string
	// Limit takes the newest; 0 is all.
	Limit int
}

func (f Filter) where() (string, []any) {
	return whereEqual([]equal{{"workspace_id", f.Workspace}, {"thread_id", f.Thread}})
}

type equal struct{ column, value string }

// whereEqual is a WHERE clause for the terms with a value, and its arguments.
func whereEqual(all []equal) (string, []any) {
	var terms []string
	var args []any
	for _, t := range all {
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

// newest builds a query for the selected manifests, newest first. Each kind of filter has an
// index in that order, so that a limit bounds the work.
func (f Filter) newest(columns string) (string, []any) {
	if f.Thread != "" && f.Workspace == "" {
		return f.newestOfThread(columns)
	}
	where, args := f.where()
	order := " ORDER BY id DESC"
	if f.Thread != "" {
		order = " ORDER BY seq DESC" // the same order within a thread
	}
	if f.Limit > 0 {
		args = append(args, f.Limit)
		order += fmt.Sprintf(" LIMIT $%d", len(args))
	}
	return "SELECT " + columns + " FROM manifests" + where + order, args
}

// newestOfThread is newest for a thread of any workspace: its index needs the workspace, so
// each workspace is read up to the limit.
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

// oldest orders manifests oldest first; for a named thread by workspace, since no index has their common order.
func (f Filter) oldest() (string, []any) {
	where, args := f.where()
	if f.Thread != "" {
		return where + " ORDER BY workspace_id, seq", args
	}
	return where + " ORDER BY id", args
}

const indexColumns = "manifest_id, seq, workspace_id, thread_id, turn_id, created_at, actor, profile, fingerprint_full, hash"

func scanIndex(rows *sql.Rows, x *manifest.Index, more ...any) error {
	var seq int64
	to := []any{&x.ManifestID, &seq, &x.WorkspaceID, &x.ThreadID, &x.TurnID, sqldb.Nanos{To: &x.CreatedAt}, &x.Actor, &x.Profile, &x.FingerprintFull, &x.Hash}
	err := rows.Scan(append(to, more...)...)
	x.Seq = unsigned(seq)
	return err
}

const listColumns = indexColumns + ", outline"

// scanListed scans the row of a list: with the record's kind, which is empty if the outline was damaged, and without the
// fingerprint of an empty prompt.
func scanListed(rows *sql.Rows, x *manifest.Index) error {
	var outline sql.RawBytes
	if err := scanIndex(rows, x, &outline); err != nil {
		return err
	}
	o, err := manifest.ParseOutline(outline)
	if x.Kind = o.Kind; err == nil && len(o.Sections) == 0 {
		x.FingerprintFull = ""
	}
	return nil
}

// List returns the index of the newest manifests, newest last; never nil.
func (s *Store) List(ctx context.Context, f Filter) ([]manifest.Index, error) {
	query, args := f.newest(listColumns)
	list, err := sqldb.ReadList(ctx, s.db, "listing manifests", query, args, scanListed)
	slices.Reverse(list)
	return list, err
}

// Manifests returns the newest manifests, newest last, as blame wants them.
func (s *Store) Manifests(ctx context.Context, f Filter) ([]*manifest.Manifest, error) {
	query, args := f.newest(manifestColumns)
	list, err := sqldb.ReadList(ctx, s.db, "reading manifests", query, args, scanManifest())
	slices.Reverse(list)
	return list, err
}

const manifestColumns = "manifest_id, bytes, record"

// scanManifest scans the rows of one query.
func scanManifest() func(rows *sql.Rows, to **manifest.Manifest) error {
	var u unpacker
	return func(rows *sql.Rows, to **manifest.Manifest) error {
		var id string
		var size int
		var packed sql.RawBytes
		if err := rows.Scan(&id, &size, &packed); err != nil {
			return err
		}
		return parseManifest(id, u.unpack(packed, size), to)
	}
}

func parseManifest(id string, data []byte, to **manifest.Manifest) error {
	m, err := manifest.Parse(data)
	if err != nil {
		var head struct {
			SchemaVersion int `json:"schema_version"`
		}
		if json.Unmarshal(data, &head) == nil && head.SchemaVersion > manifest.SchemaVersion {
			return sqldb.Failf(CodeSchema, "use the Grapnel that wrote it, or a newer one",
				"manifest %s has the schema %d, this program knows %d", id, head.SchemaVersion, manifest.SchemaVersion)
		}
		return &Error{Code: CodeInvalid, Message: "manifest " + id + " is not readable", Err: err, Hint: "verify the log: it names what was altered"}
	}
	*to = &m
	return nil
}

const idLength = 26

// Found is the manifest that an id means and the length of its record in bytes.
type Found struct {
	ManifestID, WorkspaceID, ThreadID string
	Bytes                             int
}

const foundColumns = "manifest_id, workspace_id, thread_id, bytes"

func scanFound(rows *sql.Rows, x *Found) error {
	return rows.Scan(&x.ManifestID, &x.WorkspaceID, &x.ThreadID, &x.Bytes)
}

// Find finds the manifest with an id, or the only one whose id begins with it, in any case; without an id, the newest
// selected one as Latest does. Its errors have the codes CodeNotFound and CodeAmbiguous, which lists some of the ids.
func (s *Store) Find(ctx context.Context, id string, f Filter) (Found, error) {
	var x Found
	err := s.db.Snapshot(ctx, "looking for a manifest", func(tx *sql.Tx) (err error) {
		if id == "" {
			x, err = newestPrompt(ctx, tx, f)
		} else {
			x, err = find(ctx, tx, id)
		}
		return err
	})
	return x, err
}

type foundRecord struct {
	Found

	prompt bool
}

// newestPrompt finds what Latest returns.
func newestPrompt(ctx context.Context, tx *sql.Tx, f Filter) (Found, error) {
	var newest Found
	for _, f.Limit = range []int{1, 32} {
		query, args := f.newest(foundColumns + ", outline")
		list, err := sqldb.List(ctx, tx, query, args, scanFoundRecord)
		if err == nil && len(list) == 0 {
			err = sqldb.Failf(CodeNotFound, "", "there are no manifests")
		}
		if err != nil {
			return Found{}, err
		}
		newest = list[0].Found
		if i := slices.IndexFunc(list, func(x foundRecord) bool { return x.prompt }); i >= 0 {
			return list[i].Found, nil
		}
	}
	return newest, nil
}

func scanFoundRecord(rows *sql.Rows, x *foundRecord) error {
	var outline sql.RawBytes
	if err := rows.Scan(&x.ManifestID, &x.WorkspaceID, &x.ThreadID, &x.Bytes, &outline); err != nil {
		return err
	}
	o, err := manifest.ParseOutline(outline)
	x.prompt = o.Kind == manifest.KindPrompt
	if err != nil {
		return fmt.Errorf("the outline of the manifest %s: %w", x.ManifestID, err)
	}
	return nil
}

func find(ctx context.Context, tx *sql.Tx, id string) (Found, error) {
	prefix := strings.ToUpper(id)
	if prefix == "" || len(prefix) > idLength || strings.Trim(prefix, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") != "" {
		return Found{}, sqldb.Failf(CodeNotFound, "ids are up to 26 digits and letters", "%.80q is not a manifest's id or the beginning of one", id)
	}
	rest := idLength - len(prefix)
	const query = "SELECT " + foundColumns + " FROM manifests WHERE manifest_id BETWEEN $1 AND $2 ORDER BY manifest_id LIMIT 4"
	args := []any{prefix + strings.Repeat("0", rest), prefix + strings.Repeat("Z", rest)}
	found, err := sqldb.List(ctx, tx, query, args, scanFound)
	switch {
	case err != nil:
		return Found{}, err
	case len(found) == 0:
		return Found{}, sqldb.Failf(CodeNotFound, "list shows the ids there are", "there is no manifest %s", id)
	case len(found) > 1:
		var ids []string
		for _, x := range found {
			ids = append(ids, x.ManifestID)
		}
		return Found{}, sqldb.Failf(CodeAmbiguous, "give more of it", "several manifests begin with %s: %s", id, strings.Join(ids, ", "))
	}
	return found[0], nil
}

// Get returns the manifest with an id or a unique prefix of one, with the errors of Find.
func (s *Store) Get(ctx context.Context, id string) (*manifest.Manifest, error) {
	return s.read(ctx, func(tx *sql.Tx) (Found, error) { return find(ctx, tx, id) })
}

// Latest returns the newest selected manifest of a prompt, or an error with CodeNotFound. Where none of the newest 32
// records is one, it is the newest record.
func (s *Store) Latest(ctx context.Context, f Filter) (*manifest.Manifest, error) {
	return s.read(ctx, func(tx *sql.Tx) (Found, error) { return newestPrompt(ctx, tx, f) })
}

func (s *Store) read(ctx context.Context, which func(tx *sql.Tx) (Found, error)) (*manifest.Manifest, error) {
	var m *manifest.Manifest
	err := s.db.Snapshot(ctx, "reading a manifest", func(tx *sql.Tx) error {
		x, err := which(tx)
		if err != nil {
			return err
		}
		return sqldb.Each(ctx, tx, "SELECT "+manifestColumns+" FROM manifests WHERE manifest_id = $1", []any{x.ManifestID}, func(rows *sql.Rows) error {
			return scanManifest()(rows, &m)
		})
	})
	return m, err
}

// Records streams stored manifests as they are, oldest first, from one state of the database;
// for a thread in several workspaces, one workspace after the other. It ignores the limit. A
// record's data is valid until the next one. An error ends it.
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
		if err != nil && !errors.Is(err, errStopped) {
			yield(manifest.Record{}, err)
		}
	}
}

func eachRecord(ctx context.Context, tx *sql.Tx, tail string, args []any, do func(r manifest.Record) error) error {
	var u unpacker
	return eachPacked(ctx, tx, tail, args, func(r *packedRecord) error { return do(r.unpack(&u)) })
}

// packedRecord is a record as it is stored.
type packedRecord struct {
	index           manifest.Index
	size            int
	outline, packed sql.RawBytes
}

func (r *packedRecord) unpack(u *unpacker) manifest.Record {
	return manifest.Record{Index: r.index, Outline: r.outline, Data: u.unpack(r.packed, r.size)}
}

// copy copies from, with the bytes that it refers to.
func (r *packedRecord) copy(from *packedRecord) {
	r.index, r.size = from.index, from.size
	r.outline, r.packed = append(r.outline[:0], from.outline...), append(r.packed[:0], from.packed...)
}

// eachPacked calls do with each record, which is valid until the next one.
func eachPacked(ctx context.Context, tx *sql.Tx, tail string, args []any, do func(r *packedRecord) error) error {
	return sqldb.Each(ctx, tx, "SELECT "+indexColumns+", bytes, outline, record FROM manifests"+tail, args, func(rows *sql.Rows) error {
		var r packedRecord
		if err := scanIndex(rows, &r.index, &r.size, &r.outline, &r.packed); err != nil {
			return err
		}
		return do(&r)
	})
}

var errStopped = &Error{Code: CodeInternal, Message: "stopped"}

// Export writes manifests as JSON lines, oldest first: each line is the canonical JSON that was
// hashed. It returns how many it wrote, and ignores the limit.
func (s *Store) Export(ctx context.Context, w io.Writer, f Filter) (int, error) {
	n := 0
	for r, err := range s.Records(ctx, f) {
		if err != nil {
			return n, err
		}
		for _, part := range [][]byte{r.Data, []byte("\n")} {
			if _, err := w.Write(part); err != nil {
				return n, fmt.Errorf("store: exporting: %w", err)
			}
		}
		n++
	}
	return n, nil
}

// Count returns how many manifests the filter selects, without its limit.
func (s *Store) Count(ctx context.Context, f Filter) (int, error) {
	where, args := f.where()
	n := 0
	err := s.db.Snapshot(ctx, "counting manifests", func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT count(*) FROM manifests"+where, args...).Scan(&n)
	})
	return n, err
}
