package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// programs are what the test binary is for other tests.
func programs() storetest.Programs {
	return storetest.Programs{
		"write full":   func(ctx context.Context, dsn, arg string) error { return write(ctx, dsn, arg, store.Options{}) },
		"write normal": func(ctx context.Context, dsn, arg string) error { return write(ctx, dsn, arg, normal()) },
		"keep full":    keepAll(store.Options{}),
		"keep normal":  keepAll(normal()),
		"hold":         holdLock,
		"list":         read(readList),
		"show":         read(readShow),
		"diff":         read(readDiff),
	}
}

// programPatience is how long a writer waits for others, on a machine that does
// much else.
const programPatience = time.Minute

func normal() store.Options { return store.Options{Synchronous: store.SynchronousNormal} }

// write appends manifests until it is killed, or so many as the argument says
// behind a colon, and prints each that is kept. The argument begins with the
// number of the run: runs have ids of their own.
func write(ctx context.Context, dsn, arg string, o store.Options) error {
	var run, count int
	if _, err := fmt.Sscanf(arg, "%d:%d", &run, &count); err != nil {
		return err
	}
	o.LockTimeout = programPatience
	s, err := store.Open(ctx, dsn, o)
	if err != nil {
		return err
	}
	for n := range count {
		m := sample("w", "t"+strconv.Itoa(n%2), run*1_000_000+n)
		if err := s.Append(ctx, m, sampleTexts()); err != nil {
			return errors.Join(err, s.Close())
		}
		fmt.Println(m.ManifestID, m.Hash)
	}
	return s.Close()
}

// holdLock begins a transaction that changes something, says so, and holds it
// until its input ends.
func holdLock(ctx context.Context, dsn, _ string) error {
	s, err := store.Open(ctx, dsn, store.Options{})
	if err != nil {
		return err
	}
	tx, err := s.Writer().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	fmt.Println("held")
	_, _ = os.Stdin.Read(make([]byte, 1)) // its end is what is waited for
	return errors.Join(tx.Rollback(), s.Close())
}

// read makes a program of something that reads, as the commands do.
func read(do func(ctx context.Context, s *store.Store, arg string) error) func(context.Context, string, string) error {
	return func(ctx context.Context, dsn, arg string) error {
		s, err := store.Open(ctx, dsn, store.Options{ReadOnly: true})
		if err != nil {
			return err
		}
		return errors.Join(do(ctx, s, arg), s.Close())
	}
}

func readList(ctx context.Context, s *store.Store, _ string) error {
	list, err := s.List(ctx, store.Filter{Limit: 50})
	if err == nil && len(list) != 50 {
		return fmt.Errorf("%d manifests", len(list))
	}
	return err
}

func readShow(ctx context.Context, s *store.Store, id string) error {
	m, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	_, err = s.Usage(ctx, m.ManifestID)
	return err
}

func readDiff(ctx context.Context, s *store.Store, id string) error {
	x, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	y, err := s.Latest(ctx, store.Filter{})
	if err == nil && !manifest.Diff(x, y, nil, nil).Same {
		return errors.New("samples differ")
	}
	return err
}

// noteAcknowledged notes a manifest that a writer prints.
func noteAcknowledged(acknowledged map[string]string, line string) {
	id, hash, _ := strings.Cut(line, " ")
	acknowledged[id] = hash
}

// checkAcknowledged wants everything that writers acknowledged to be kept, and
// the log to be whole.
func checkAcknowledged(t *testing.T, s *store.Store, acknowledged map[string]string) {
	t.Helper()
	list, err := s.List(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]string{}
	for _, x := range list {
		kept[x.ManifestID] = x.Hash
	}
	for id, hash := range acknowledged {
		if kept[id] != hash {
			t.Errorf("manifest %s was acknowledged with %s and is kept as %q", id, hash, kept[id])
		}
	}
	got, err := s.Verify(t.Context(), store.Filter{}, manifest.VerifyOptions{})
	if err != nil || !got.OK || got.Checked < len(acknowledged) {
		t.Errorf("verdict %+v, %v", got, err)
	}
}
