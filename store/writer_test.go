package store_test

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/store/storetest"
)

// The environment of a re-executed test binary that only writes.
const (
	writerDSN = "GRAPNEL_TEST_WRITER_DSN"
	writerRun = "GRAPNEL_TEST_WRITER_RUN"
)

// writeForever appends manifests until it is killed, and says of each that it is
// kept. Runs have ids of their own.
func writeForever(dsn, run string) int {
	ctx := context.Background()
	number, err := strconv.Atoi(run)
	if err != nil {
		return fail(err)
	}
	s, err := store.Open(ctx, dsn, store.Options{})
	if err != nil {
		return fail(err)
	}
	for n := number * 1_000_000; ; n++ {
		m := storetest.Sample("w", "t"+strconv.Itoa(n%2), n)
		if err := s.Append(ctx, m); err != nil {
			return fail(err)
		}
		fmt.Println(m.ManifestID, m.Hash)
	}
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "writer:", err)
	return 3
}
