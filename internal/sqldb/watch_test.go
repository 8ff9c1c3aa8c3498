package sqldb

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

// TestWatchSQLite: what others commit is noticed, and what this program does at once
// when it says so.
func TestWatchSQLite(t *testing.T) {
	t.Parallel()

	path := "sqlite:" + filepath.Join(t.TempDir(), "test.db")
	var both [2]*DB
	for n := range both {
		d, err := Open(t.Context(), path, Options{Schema: notesSchema()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		both[n] = d
	}
	ctx, cancel := context.WithCancel(t.Context())
	wake, changed, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- both[0].Watch(ctx, "unused", wake, func() {
			select {
			case changed <- struct{}{}:
			case <-ctx.Done():
			}
		})
	}()
	<-changed // as it begins
	if err := both[1].Change(t.Context(), "noting", note("by another", nil)); err != nil {
		t.Fatal(err)
	}
	<-changed
	if err := both[0].Change(t.Context(), "noting", note("here", nil)); err != nil {
		t.Fatal(err)
	}
	select {
	case wake <- struct{}{}:
		<-changed
	case <-changed: // it has looked by itself
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}
