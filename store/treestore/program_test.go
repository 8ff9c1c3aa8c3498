package treestore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/store/schema"
	"github.com/grapnelhq/grapnel/store/sqldb"
	"github.com/grapnelhq/grapnel/store/treestore"
	"github.com/grapnelhq/grapnel/tree"
)

// The environment of a re-executed test binary that is another program.
const (
	programName = "GRAPNEL_TREESTORE_TEST_PROGRAM"
	programDSN  = "GRAPNEL_TREESTORE_TEST_DSN"
	programArg  = "GRAPNEL_TREESTORE_TEST_ARG"
)

// program returns the command that runs one of the programs below.
func program(tb testing.TB, name, dsn, arg string) *exec.Cmd {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), programName+"="+name, programDSN+"="+dsn, programArg+"="+arg)
	cmd.Stderr = os.Stderr
	return cmd
}

// runProgram is the other program. It returns its exit code.
func runProgram(ctx context.Context, name, dsn, arg string) int {
	if name != "save" {
		fmt.Fprintf(os.Stderr, "there is no program %q\n", name)
		return 4
	}
	if err := saveOn(ctx, dsn, arg); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 3
	}
	return 0
}

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
