//go:build linux

package chain

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// deepTree makes a chain of directories with a file each, and returns the deepest.
func deepTree(tb testing.TB, n int) string {
	tb.Helper()
	dir := build(tb, files{".git/": ""})
	for i := range n {
		dir = filepath.Join(dir, fmt.Sprintf("directory-%02d", i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte(fmt.Sprintf("file %d\n", i)+numbered(500)), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// BenchmarkOverBare64 resolves a chain of 64 directories in turns with a yardstick, the same system calls and nothing else,
// and reports how many times longer the best of Resolve is: what the policy costs. It should be below 1.3.
func BenchmarkOverBare64(b *testing.B) {
	dir := deepTree(b, 64)
	names := strings.Split(strings.Trim(dir, "/"), "/")
	bare, full := time.Hour, time.Hour
	for b.Loop() {
		start := time.Now()
		bareWalk(b, names)
		middle := time.Now()
		Resolve(OS{}, dir, Options{})
		bare, full = min(bare, middle.Sub(start)), min(full, time.Since(middle))
	}
	b.ReportMetric(float64(full)/float64(bare), "x-bare")
	b.ReportMetric(float64(full.Microseconds()), "best-µs")
}

// bareWalk opens each directory from its parent and looks for markers; then it
// looks for candidates and near misses in each and reads the file that is there.
func bareWalk(b *testing.B, names []string) (found int) {
	b.Helper()
	const directoryFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
	fd, err := unix.Open("/", directoryFlags, 0)
	if err != nil {
		b.Fatal(err)
	}
	fds := []int{fd}
	for _, name := range names {
		if fd, err = unix.Openat(fd, name, directoryFlags|unix.O_NOFOLLOW, 0); err != nil {
			b.Fatal(err)
		}
		bareProbe(fd, ".git", ".jj", ".hg")
		fds = append(fds, fd)
	}
	buf := make([]byte, 4096)
	for _, fd := range fds {
		found += bareRead(fd, buf)
		_ = unix.Close(fd)
	}
	return found
}

// bareProbe looks for names.
func bareProbe(fd int, names ...string) {
	var st unix.Stat_t
	for _, name := range names {
		_ = unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
}

// bareRead looks for the names of one directory and reads the file, if any.
func bareRead(fd int, buf []byte) (found int) {
	const fileFlags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	bareProbe(fd, "AGENTS.override.md", "AGENTS.md", "AGENTS.local.md")
	bareProbe(fd, "agents.md", "Agents.md", "AGENTS.MD", "AGENT.md", "Agent.md", "agent.md")
	file, err := unix.Openat(fd, "AGENTS.md", fileFlags, 0)
	if err != nil {
		return 0
	}
	var st unix.Stat_t
	_ = unix.Fstat(file, &st)
	n, err := unix.Read(file, buf)
	if err == nil && n > 0 {
		found = 1
	}
	_ = unix.Close(file)
	return found
}
