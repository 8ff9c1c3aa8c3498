//go:build linux

package chain

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkBare64 is the yardstick of BenchmarkResolve64: the system calls that
// answer its question, relative to descriptors, and nothing else.
func BenchmarkBare64(b *testing.B) {
	dir := deepTree(b, 64)
	names := strings.Split(strings.Trim(dir, "/"), "/")
	b.ReportAllocs()
	for b.Loop() {
		if n := bareWalk(b, names); n != 64 {
			b.Fatalf("%d files", n)
		}
	}
}

// bareWalk opens each folder from its parent, looks for markers, candidates and
// near misses, and reads the file that is there.
func bareWalk(b *testing.B, names []string) (found int) {
	b.Helper()
	fd, err := unix.Open("/", folderFlags, 0)
	if err != nil {
		b.Fatal(err)
	}
	var st unix.Stat_t
	buf := make([]byte, 4096)
	for _, name := range names {
		next, err := unix.Openat(fd, name, folderFlags|unix.O_NOFOLLOW, 0)
		if err != nil {
			b.Fatal(err)
		}
		_ = unix.Close(fd)
		fd = next
		for _, probe := range [...]string{".git", ".jj", ".hg", "AGENTS.override.md", "agents.md", "Agents.md", "AGENTS.MD", "AGENT.md", "Agent.md", "agent.md"} {
			_ = unix.Fstatat(fd, probe, &st, unix.AT_SYMLINK_NOFOLLOW)
		}
		file, err := unix.Openat(fd, "AGENTS.md", fileFlags, 0)
		if err != nil {
			continue
		}
		_ = unix.Fstat(file, &st)
		if n, err := unix.Read(file, buf); err == nil && n > 0 {
			found++
		}
		_ = unix.Close(file)
	}
	_ = unix.Close(fd)
	return found
}

func TestBareWalkSeesTheSame(t *testing.T) {
	t.Parallel()
	dir := deepTree(t, 3)
	if c := Resolve(OS{}, dir, Options{}); len(c.Sources) != 3 || c.Root != filepath.Dir(filepath.Dir(filepath.Dir(dir))) {
		t.Errorf("the benchmark's tree gives %s", outline(c, ""))
	}
}
