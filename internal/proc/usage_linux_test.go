package proc

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParsePSS(t *testing.T) {
	t.Parallel()

	const rollup = "559820ccf000-7ffed3722000 ---p 00000000 00:00 0    [rollup]\nRss:    1704 kB\nPss:     340 kB\nPss_Dirty:   112 kB\n"
	tests := []struct {
		name, text string
		want       int64
		ok         bool
	}{
		{"as it is", rollup, 340 << 10, true},
		{"another line first", "Pss_Anon: 1 kB\nPss: 2 kB\n", 2 << 10, true},
		{"no line", "Rss: 3 kB\n", 0, false},
		{"no number", "Pss: x kB\n", 0, false},
		{"no unit", "Pss: 3\n", 0, false},
		{"nothing", "", 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if got, ok := parsePSS([]byte(tt.text)); got != tt.want || ok != tt.ok {
				t.Errorf("parsePSS = %d, %v; want %d, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
	own, rss := proportionalSize(os.Getpid()), int64(0)
	if p, ok := readProcess(os.Getpid()); ok {
		rss = p.pages * int64(os.Getpagesize())
	}
	if own < 1<<20 || own > 2*rss {
		t.Errorf("this process holds %d of %d", own, rss)
	}
	if got := proportionalSize(-1); got != 0 {
		t.Errorf("a process that there is not holds %d", got)
	}
}

// TestUsageForgetsTheDead: a known descendant that a table lacks, because it is older
// or could not be read, is remembered while it lives.
func TestUsageForgetsTheDead(t *testing.T) {
	t.Parallel()

	self, ok := readProcess(os.Getpid())
	if !ok {
		t.Skip("no /proc")
	}
	alive := self.id
	reused := procID{pid: self.id.pid, start: self.id.start + 1}
	dead := procID{pid: 1 << 30, start: 1}
	f := &family{known: map[procID]bool{alive: true, reused: true, dead: true}}
	if u, _ := f.usage(&table{}); u != (Usage{}) {
		t.Errorf("usage of an empty table = %+v", u)
	}
	if len(f.known) != 1 || !f.known[alive] {
		t.Errorf("known are %v, want only %v", f.known, alive)
	}
	zombie := process{id: alive, zombie: true}
	zombie.id = procID{pid: os.Getppid(), start: 1} // a family does not count this process
	f.known = map[procID]bool{zombie.id: true}
	f.usage(&table{processes: []process{zombie}})
	if len(f.known) != 0 {
		t.Errorf("known are %v, want nobody", f.known)
	}
}

// TestClearKills: descendants that could not be killed at the end of their process are
// tried again, and not forgotten when the directory can be removed.
func TestClearKills(t *testing.T) {
	t.Parallel()

	cmd := exec.CommandContext(t.Context(), "/bin/sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	left, ok := readProcess(cmd.Process.Pid)
	if !ok {
		t.Skip("no /proc")
	}
	private, err := newPrivateDir(runtimeDir(t))
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{
		gone: make(chan struct{}), cage: &cage{}, dir: private,
		child: &child{family: &family{mark: "no mark", known: map[procID]bool{left.id: true}}},
	}
	if err := p.Clear(); err == nil || hasEnded(left.id) {
		t.Errorf("Clear before the end = %v", err)
	}
	close(p.gone)
	if err := p.Clear(); err != nil {
		t.Error(err)
	}
	if !hasEnded(left.id) {
		t.Error("it lives on")
	}
	if _, err := os.Stat(private.path); !os.IsNotExist(err) {
		t.Errorf("the directory is left: %v", err)
	}
}

// TestKillWithoutDescriptors: that nobody could be looked for is not that nobody is
// there. It is not parallel: it leaves this process without a descriptor.
func TestKillWithoutDescriptors(t *testing.T) {
	var rich unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &rich); err != nil {
		t.Fatal(err)
	}
	poor := rich
	poor.Cur = 3
	f := &family{mark: "no mark", known: map[procID]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &poor); err != nil {
		t.Fatal(err)
	}
	left := f.kill(ctx)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &rich); err != nil {
		t.Fatal(err)
	}
	if left != unseen {
		t.Errorf("%d are left, want that nobody could look", left)
	}
	if left := f.kill(ctx); left != 0 {
		t.Errorf("%d are left with descriptors", left)
	}
}

func TestParseMaps(t *testing.T) {
	t.Parallel()

	const maps = `7f00-7f01 rw-s 00000000 00:01 1234  /memfd:a b (deleted)
Rss:   4 kB
Pss:   100 kB
Pss_Dirty:  1 kB
VmFlags: rd wr
7f02-7f03 rw-s 00000000 00:1d 1234  /dev/shm/same number elsewhere
Pss:   20 kB
7f04-7f05 rw-p 00000000 00:00 0
Pss:   3 kB
`
	for _, tt := range []struct {
		held segments
		want int64
	}{{nil, 123}, {segments{inode{unix.Mkdev(0, 1), 1234}: 1}, 23}, {segments{inode{unix.Mkdev(0, 0x1d), 1234}: 1}, 103}} {
		if got, err := parseMaps(strings.NewReader(maps), tt.held); got != tt.want<<10 || err != nil {
			t.Errorf("parseMaps without %v = %d, %v, want %d KiB", tt.held, got, err, tt.want)
		}
	}
}

func TestParseSegment(t *testing.T) {
	t.Parallel()

	const line = "0 7 600 4096 4242 4243 0 0 0 0 0 1 1 1 8192 4096\n"
	if id, creator, size, ok := parseSegment([]byte(line)); id != 7 || creator != 4242 || size != 12288 || !ok {
		t.Errorf("parseSegment = %d, %d, %d, %v", id, creator, size, ok)
	}
	for _, line := range []string{"", "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap\n", "0 7 600\n"} {
		if _, _, _, ok := parseSegment([]byte(line)); ok {
			t.Errorf("parseSegment(%q) is one", line)
		}
	}
}

// TestSettleTakesTurns: once the time of a look is over, families keep what they held
// at their last one, those that were not reached come first, and nobody is ended whom
// nobody has looked at.
func TestSettleTakesTurns(t *testing.T) {
	t.Parallel()

	if testing.Short() {
		t.Skip("it looks at memory for as long as a look may take")
	}
	self, ok := readProcess(os.Getpid())
	if !ok {
		t.Skip("no /proc")
	}
	members := map[procID]process{self.id: self}
	for i := range 1 << 16 { // each takes a moment
		members[procID{pid: self.id.pid, start: uint64(i)}] = self
	}
	const plenty = 1 << 60
	var list []doubt
	for range 20 {
		list = append(list, doubt{&family{}, members, &Usage{RSS: plenty + 1}, plenty})
	}
	settle(slices.Clone(list))
	reached := map[*family]bool{}
	for _, d := range list {
		reached[d.family] = !d.family.near.at.IsZero()
		if !reached[d.family] && d.usage.RSS != plenty {
			t.Errorf("a family that was not looked at holds %d", d.usage.RSS)
		}
	}
	first := len(slices.Collect(maps.Keys(reached)))
	for _, looked := range reached {
		if !looked {
			first--
		}
	}
	if first == 0 || first == len(list) {
		t.Fatalf("%d of %d were looked at", first, len(list))
	}
	settle(slices.Clone(list))
	again := 0
	for _, d := range list {
		if !reached[d.family] && !d.family.near.at.IsZero() {
			again++
		}
	}
	if again == 0 {
		t.Error("who was not reached does not come first")
	}
}

// TestBudgetOfDescriptors: when the budget of a look is used up, no list of descriptors
// is read any more.
func TestBudgetOfDescriptors(t *testing.T) {
	t.Parallel()

	held := segments{}
	if got := held.addOpen(os.Getpid(), 1, mounts{}, time.Now().Add(nearTime)); got > 1 {
		t.Errorf("%d descriptors looked at, want one at most", got)
	}
	if got := segmentsOf(map[procID]process{{pid: os.Getpid()}: {}}, time.Now().Add(-time.Hour)); len(got) > 0 {
		t.Errorf("after its time the look has found %v", got)
	}
}

func TestMapName(t *testing.T) {
	t.Parallel()

	for addresses, want := range map[string]string{"00400000-00401000": "400000-401000", "7f00-7f01": "7f00-7f01"} {
		if got := mapName(addresses); got != want {
			t.Errorf("mapName(%q) = %q, want %q", addresses, got, want)
		}
	}
}
