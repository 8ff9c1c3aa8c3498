package sqldb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
)

// gooseDialect is the migrator's name of a database.
type gooseDialect = goose.Dialect

// Schema is what a program keeps in a database, and how the tables get there.
type Schema struct {
	// Migrations has the folders common, sqlite and postgres, of which any may be
	// missing: files NUMBER_NAME.sql in the form of goose, numbered through. Those in
	// common run on every database, those in a folder of its name on that one only.
	Migrations fs.FS
	// Table is where the database says which migrations it has had. Schemas of
	// different tables, with different names for all else, can be in one PostgreSQL
	// database; a SQLite file has one.
	Table string
	// Holds says to people what is kept, in the plural, such as "manifests".
	Holds string
}

func (s *Schema) check() error {
	if s.Migrations == nil || s.Table == "" || s.Holds == "" {
		return Failf(CodeInternal, "", "options: the Schema is incomplete")
	}
	return nil
}

// layered is a file system that shows the files of several, which have no name
// in common.
type layered []fs.FS

// Open implements fs.FS.
func (l layered) Open(name string) (fs.File, error) {
	for _, f := range l {
		file, err := f.Open(name)
		if !errors.Is(err, fs.ErrNotExist) {
			return file, err
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// ReadDir implements fs.ReadDirFS.
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

// of returns a database's migrations, and the number of the last.
func (s *Schema) of(folder string) (fs.FS, int64, error) {
	var all layered
	for _, name := range []string{"common", folder} {
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

// checkSchema refuses a schema that is newer than this program, and what is not
// ours. It returns the migrations where some are missing, else nil.
func (d *DB) checkSchema(ctx context.Context) (fs.FS, error) {
	files, last, err := d.opts.Schema.of(d.dialect.folder)
	if err != nil {
		return nil, err
	}
	if !d.opts.ReadOnly {
		// The first statement of all: what cannot be opened, or is not ours, is
		// refused before anything is written.
		if err := d.dialect.foreign(ctx, d.write, d.opts.Schema.Table); err != nil {
			return nil, err
		}
		if err := d.write.PingContext(ctx); err != nil {
			return nil, err
		}
	}
	version, err := d.version(ctx)
	switch {
	case err != nil && (d.opts.ReadOnly || d.dialect.classify(err).Code != CodeInternal):
		return nil, d.notOurs(ctx, err)
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

// notOurs tells a database without our tables from one that fails.
func (d *DB) notOurs(ctx context.Context, err error) error {
	if d.dialect.classify(err).Code != CodeInternal || ctx.Err() != nil {
		return err
	}
	return &Error{Code: CodeSchema, Message: d.name + " holds no " + d.opts.Schema.Holds, Err: err, Remedy: "check the path or the name of the database"}
}

// version returns the number of the last migration; an error where there was
// none yet.
func (d *DB) version(ctx context.Context) (int64, error) {
	var version int64
	err := d.read.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM "+d.opts.Schema.Table+" WHERE is_applied").Scan(&version)
	return version, err
}

// upgrade runs the migrations that are missing. Each is one transaction, so two
// programs that do this together get into each other's way at most: the second
// one fails, and finds the work done.
func (d *DB) upgrade(ctx context.Context, files fs.FS) error {
	const attempts = 8
	for n := 1; ; n++ {
		err := d.tryUpgrade(ctx, files)
		if err == nil || n == attempts {
			return err
		}
		if code := d.dialect.classify(err).Code; code != CodeInternal && code != CodeLocked {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Duration(n) * 20 * time.Millisecond):
		}
	}
}

func (d *DB) tryUpgrade(ctx context.Context, files fs.FS) error {
	p, err := goose.NewProvider(d.dialect.goose, d.write, files, goose.WithTableName(d.opts.Schema.Table),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("upgrading the schema: %w", err)
	}
	return nil
}
