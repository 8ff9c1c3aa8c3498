package sqldb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
)

// Schema is what a program keeps in a database.
type Schema struct {
	// Migrations has the directories common, sqlite and postgres, each optional, with goose files NUMBER_NAME.sql,
	// numbered through all of them. Those in common run on every database.
	Migrations fs.FS
	// Table records the applied migrations. Several schemas can share a PostgreSQL database if
	// all their names differ; a SQLite file has one.
	Table string
	// Holds names what is kept, in the plural, for messages: "manifests".
	Holds string
}

// layered merges file systems that have no name in common.
type layered []fs.FS

func (l layered) Open(name string) (fs.File, error) {
	for _, f := range l {
		file, err := f.Open(name)
		if !errors.Is(err, fs.ErrNotExist) {
			return file, err
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func (l layered) ReadDir(name string) ([]fs.DirEntry, error) {
	var all []fs.DirEntry
	for _, f := range l {
		entries, err := fs.ReadDir(f, name)
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
	}
	return all, nil
}

func (s *Schema) of(directory string) (fs.FS, int64, error) {
	var all layered
	for _, name := range []string{"common", directory} {
		if _, err := fs.Stat(s.Migrations, name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		sub, err := fs.Sub(s.Migrations, name)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, sub)
	}
	entries, err := all.ReadDir(".")
	if err != nil {
		return nil, 0, err
	}
	var last int64
	for _, e := range entries {
		n, err := goose.NumericComponent(e.Name())
		if err != nil {
			return nil, 0, err
		}
		last = max(last, n)
	}
	return all, last, nil
}

// checkSchema refuses foreign databases and newer schemas. It returns the migrations to run, if any.
func (d *DB) checkSchema(ctx context.Context) (fs.FS, error) {
	files, last, err := d.opts.Schema.of(d.dialect.directory)
	if err != nil {
		return nil, err
	}
	if !d.opts.ReadOnly { // before anything is written
		if err := d.dialect.foreign(ctx, d.write, d.opts.Schema.Table); err != nil {
			return nil, err
		}
		if err := d.write.PingContext(ctx); err != nil {
			return nil, err
		}
	}
	var version int64
	const query = "SELECT coalesce(max(version_id), 0) FROM %s WHERE is_applied" // an error if there was none
	err = d.read.QueryRowContext(ctx, fmt.Sprintf(query, d.opts.Schema.Table)).Scan(&version)
	readable := err == nil || d.dialect.classify(err).Code == CodeInternal
	switch {
	case err != nil && (!readable || d.opts.ReadOnly && ctx.Err() != nil):
		return nil, err
	case err != nil && d.opts.ReadOnly:
		return nil, &Error{Code: CodeSchema, Message: d.name + " holds no " + d.opts.Schema.Holds, Err: err, Hint: "check the path or the name of the database"}
	case version > last:
		return nil, Failf(CodeSchema, "use the version that wrote it, or a newer one",
			"%s has the schema %d, this program knows %d", d.name, version, last)
	case version == last:
		return nil, nil
	case d.opts.ReadOnly:
		return nil, Failf(CodeSchema, "open it for writing once", "%s has the schema %d, this program needs %d", d.name, version, last)
	}
	return files, nil
}

// upgrade runs the missing migrations. If two programs do so at once, one fails and finds the work done.
func (d *DB) upgrade(ctx context.Context, files fs.FS) error {
	const attempts = 20 // in some 4 s
	for n := 1; ; n++ {
		// A provider tries to make its table of versions once only.
		p, err := goose.NewProvider(d.dialect.goose, d.write, files, goose.WithTableName(d.opts.Schema.Table),
			goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
		if err != nil {
			return err
		}
		if _, err = p.Up(ctx); err == nil {
			return nil
		}
		if code := d.dialect.classify(err).Code; n == attempts || code != CodeInternal && code != CodeLocked {
			return fmt.Errorf("upgrading the schema: %w", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Duration(n) * 20 * time.Millisecond):
		}
	}
}
