package treestore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/schema"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/storetest"
	"github.com/grapnelhq/grapnel/store/treestore"
	"github.com/grapnelhq/grapnel/tree"
)

// programs are what the test binary is for other tests.
func programs() storetest.Programs { return storetest.Programs{"plant": plantAndSave} }

// What the saving program works on: folders that all clients share.
const (
	savers      = 8
	saverPlaces = 5
)

// saveOn lets clients save, archive and restore in some folders until it is killed,
// or so many steps as the argument says. It prints each version that was kept.
func saveOn(ctx context.Context, dsn, arg string) error {
	steps, err := strconv.Atoi(arg)
	if err != nil {
		return err
	}
	db, err := sqldb.Open(ctx, dsn, sqldb.Options{Schema: schema.Current(), LockTimeout: time.Minute})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	s, err := treestore.New(ctx, db, treestore.Options{})
	if err != nil {
		return err
	}
	errs := make([]error, savers+1)
	var group sync.WaitGroup
	for n := range savers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(n)))
			for step := 0; step < steps && errs[n] == nil; step++ {
				errs[n] = saveStep(ctx, s, random)
			}
		})
	}
	group.Wait()
	errs[savers] = s.Close()
	return errors.Join(errs...)
}

// plantAndSave is saveOn for a database that has no folders yet.
func plantAndSave(ctx context.Context, dsn, arg string) error {
	db, err := sqldb.Open(ctx, dsn, sqldb.Options{Schema: schema.Current()})
	if err != nil {
		return err
	}
	s, err := treestore.New(ctx, db, treestore.Options{})
	if err != nil {
		return err
	}
	_, err = s.CreateWorkspace(ctx, tree.CreateWorkspace{ID: "w", Name: "W"})
	for n := range saverPlaces {
		if id := "f" + strconv.Itoa(n); err == nil {
			_, err = s.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: "w", ID: id, Name: id})
		}
	}
	if err = errors.Join(err, s.Close(), db.Close()); err != nil {
		return err
	}
	return saveOn(ctx, dsn, arg)
}

// saveStep does one thing, and prints what came of it.
func saveStep(ctx context.Context, s *treestore.Store, random *rand.Rand) error {
	place := scope(tree.FolderID("f" + strconv.Itoa(random.IntN(saverPlaces))))
	view, err := s.Doc(ctx, place)
	if err != nil {
		return err
	}
	expected := new(int64(0))
	if view.Explicit != nil {
		expected = &view.Explicit.Version
	}
	var doc tree.Doc
	if expected != nil && random.IntN(10) == 0 {
		var now tree.ArchivedNow
		if now, err = s.Archive(ctx, tree.ArchiveDoc{Scope: place, ExpectedVersion: expected}); now.Doc != nil {
			doc = *now.Doc
		}
	} else {
		var saved tree.Saved
		saved, err = s.Save(ctx, tree.Save{Scope: place, Content: fmt.Sprint("text ", random.Uint64()), ExpectedVersion: expected})
		doc = saved.Doc
	}
	if tree.HasCode(err, tree.CodeConflict) || err == nil && doc.ID == "" {
		return nil
	}
	if err == nil {
		fmt.Printf("%s %d %s\n", doc.ID, doc.Version, doc.ContentSHA256)
	}
	return err
}
