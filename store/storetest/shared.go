package storetest

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"
)

// startTime bounds the start of a server for tests.
const startTime = 2 * time.Minute

// Shared is one PostgreSQL server for all tests of a package, started by the first
// that asks. The zero value is ready; Stop ends it.
type Shared struct {
	once sync.Once
	pg   *Postgres
	err  error
}

// Postgres returns the server. A test in the short mode, or where no server is
// installed, is skipped; in CI that asks for one (GRAPNEL_REQUIRE_POSTGRES=1) that
// is a failure.
func (s *Shared) Postgres(tb testing.TB) *Postgres {
	tb.Helper()
	if testing.Short() {
		tb.Skip("starting PostgreSQL takes seconds")
	}
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTime)
		defer cancel()
		s.pg, s.err = StartPostgres(ctx)
	})
	if errors.Is(s.err, ErrNoPostgres) && (os.Getenv("CI") != "true" || os.Getenv("GRAPNEL_REQUIRE_POSTGRES") != "1") {
		tb.Skip("not tested on PostgreSQL: ", s.err)
	}
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return s.pg
}

// Stop ends the server, if there is one.
func (s *Shared) Stop() error {
	if s.pg == nil {
		return nil
	}
	return s.pg.Stop(context.Background())
}

// NewPostgres returns the DSN of an empty database, on a server of the test's own,
// which ends with it. It skips and fails as [Shared.Postgres] does.
func NewPostgres(t *testing.T) string {
	t.Helper()
	var own Shared
	server := own.Postgres(t)
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	dsn, err := server.NewDSN(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}
