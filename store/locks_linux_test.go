package store_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/store"
)

// TestStoresOfOneProcess has two stores of one process on one file. SQLite's locks
// are those of a process and a file, and closing any descriptor of the file takes
// them away: opening the second store must not do that to the first.
func TestStoresOfOneProcess(t *testing.T) {
	t.Parallel()

	dsn := storetest.SQLite(t)
	first := open(t, dsn, store.Options{})
	fillThread(t, first, "w", "t", 0, 1)
	if !isLocked(t, pathOf(dsn)) {
		t.Fatal("SQLite's lock is not seen")
	}
	second := open(t, dsn, store.Options{})
	if !isLocked(t, pathOf(dsn)) {
		t.Error("opening a second store took the lock of the first away")
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if !isLocked(t, pathOf(dsn)) {
		t.Error("closing a second store took the lock of the first away")
	}
	fillThread(t, first, "w", "t", 1, 2)
}

// isLocked reports whether this process holds a lock on a file.
func isLocked(t *testing.T, path string) bool {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatalf("no inode in %T", info.Sys())
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Skipf("the system does not show its locks: %v", err)
	}
	for line := range strings.Lines(string(locks)) {
		fields := strings.Fields(line) // 1: POSIX ADVISORY READ PID DEVICE:INODE FROM TO
		if len(fields) > 5 && fields[4] == strconv.Itoa(os.Getpid()) && strings.HasSuffix(fields[5], fmt.Sprintf(":%d", stat.Ino)) {
			return true
		}
	}
	return false
}
