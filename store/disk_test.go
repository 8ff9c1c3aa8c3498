package store_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// recording is what a program wrote to disk and printed, in order. From it come the disks that
// a power cut could have left.
type recording struct {
	ops []diskOp
}

type diskOp struct {
	kind string // write, truncate, sync, create, link, rename, unlink, mkdir, print
	path string
	to   string // link, rename
	data []byte // write, print
	at   int64  // write, truncate
}

// record runs one of the test binary's programs to its end on a new SQLite database, and records every change of its
// directory. The test is skipped if system calls cannot be traced; with GRAPNEL_REQUIRE_STRACE=1 it fails.
func record(tb testing.TB, name, arg string) *recording {
	tb.Helper()
	root := tb.TempDir()
	trace := filepath.Join(tb.TempDir(), "trace")
	program := storetest.Program(tb, name, "sqlite:"+filepath.Join(root, "data", "grapnel.db"), arg)
	calls := "trace=write,pwrite64,ftruncate,fsync,fdatasync,open,openat,link,linkat,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,exit_group"
	strace := exec.CommandContext(tb.Context(), "strace", append([]string{
		"-f", "-qq", "-y", "-xx", "-s", "16777216", "-e", calls, "-e", "signal=none", "-o", trace,
	}, program.Args...)...)
	strace.Env, strace.Stderr = program.Env, os.Stderr
	if err := exec.CommandContext(tb.Context(), "strace", "-qq", "-e", "trace=none", "-o", trace, "true").Run(); err != nil {
		if os.Getenv("GRAPNEL_REQUIRE_STRACE") == "1" {
			tb.Fatal("strace: ", err)
		}
		tb.Skip("system calls cannot be traced here (strace): ", err)
	}
	if out, err := strace.Output(); err != nil {
		tb.Fatalf("%s: %v\n%s", name, err, out)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		tb.Fatal(err)
	}
	r := &recording{}
	if r.ops, err = parseTrace(text, root); err != nil {
		tb.Fatal(err)
	}
	if last := r.cut(len(r.ops), nil); len(last.printed) == 0 {
		tb.Fatal("the program printed nothing")
	}
	return r
}

// cuts ends the power at many moments, with random losses, and has check look at the remaining
// database and the lines printed by then.
func (r *recording) cuts(t *testing.T, check func(t *testing.T, dsn string, printed []string)) {
	t.Helper()
	cuts := 40
	if storetest.Long() {
		cuts = 600
	}
	seed := rand.Uint64()
	for n := range cuts {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		at := random.IntN(len(r.ops) + 1)
		t.Run(fmt.Sprintf("cut %d before %d of %d with seed %d", n, at, len(r.ops), seed), func(t *testing.T) {
			disk := r.cut(at, random)
			check(t, disk.write(t), disk.printed)
		})
	}
}

type disk struct {
	printed []string
	dirs    map[string]bool
	files   map[string][]byte
}

// write makes the disk a temporary directory, in memory if possible, and returns the DSN of its database.
func (d *disk) write(tb testing.TB) (dsn string) {
	tb.Helper()
	base := "/dev/shm"
	if _, err := os.Stat(base); err != nil {
		base = tb.TempDir()
	}
	root, err := os.MkdirTemp(base, "powercut") //nolint:usetesting // in memory
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(root) })
	for dir := range d.dirs {
		err = errors.Join(err, os.MkdirAll(filepath.Join(root, dir), 0o700))
	}
	for name, data := range d.files {
		err = errors.Join(err, os.WriteFile(filepath.Join(root, name), data, 0o600))
	}
	if err != nil {
		tb.Fatal(err)
	}
	return "sqlite:" + filepath.Join(root, "data", "grapnel.db")
}

type inode struct {
	safe    []byte
	pending []diskOp
}

// move sets a name, deletes one, or both at once.
type move struct {
	set, unset string
	file       *inode // nil for a directory
}

func (v *move) apply(names map[string]*inode) {
	if v.set != "" {
		names[v.set] = v.file
	}
	delete(names, v.unset)
}

// machine replays operations: what is in memory, and what is on the disk.
type machine struct {
	// names are as the program sees them, safe as the disk certainly has them.
	names, safe map[string]*inode
	// moves are changes of names that the disk may not have, by directory.
	moves   map[string][]move
	printed []string
}

// cut cuts the power before operation n. Unsynced data is kept, lost or torn at random; without
// random numbers all of it is kept.
func (r *recording) cut(n int, random *rand.Rand) *disk {
	m := &machine{names: map[string]*inode{".": nil}, safe: map[string]*inode{".": nil}, moves: map[string][]move{}}
	for i := range r.ops[:n] {
		m.do(&r.ops[i])
	}
	d := &disk{printed: m.printed, dirs: map[string]bool{}, files: map[string][]byte{}}
	for _, dir := range slices.Sorted(maps.Keys(m.moves)) { // deterministic for the random numbers
		moves := m.moves[dir]
		kept := len(moves)
		if random != nil {
			kept = random.IntN(kept + 1) // file systems keep the order of such changes
		}
		for i := range moves[:kept] {
			moves[i].apply(m.safe)
		}
	}
	contents := map[*inode][]byte{nil: nil}
	for _, name := range slices.Sorted(maps.Keys(m.safe)) {
		file := m.safe[name]
		if _, done := contents[file]; !done {
			contents[file] = file.cut(random)
		}
		switch _, there := m.safe[filepath.Dir(name)]; {
		case !there: // its directory was lost
		case file == nil:
			d.dirs[name] = true
		default:
			d.files[name] = contents[file]
		}
	}
	return d
}

func (m *machine) do(op *diskOp) {
	switch op.kind {
	case "print":
		m.printed = append(m.printed, strings.Split(strings.TrimSuffix(string(op.data), "\n"), "\n")...)
	case "write", "truncate":
		if file := m.names[op.path]; file != nil {
			file.pending = append(file.pending, *op)
		}
	case "sync":
		if file := m.names[op.path]; file != nil {
			file.safe, file.pending = file.cut(nil), nil
			return
		}
		for i := range m.moves[op.path] {
			m.moves[op.path][i].apply(m.safe)
		}
		delete(m.moves, op.path)
	default:
		m.rename(op)
	}
}

func (m *machine) rename(op *diskOp) {
	file, there := m.names[op.path]
	v := move{set: op.path}
	switch op.kind {
	case "create":
		if there {
			return
		}
		v.file = &inode{}
	case "link":
		v = move{set: op.to, file: file}
	case "rename":
		v = move{set: op.to, unset: op.path, file: file}
	case "unlink":
		v = move{unset: op.path}
	}
	v.apply(m.names)
	dir := filepath.Dir(cmp.Or(v.set, v.unset))
	m.moves[dir] = append(m.moves[dir], v)
}

// sectorSizes are what disks write whole.
var sectorSizes = []int64{512, 4096}

func (f *inode) cut(random *rand.Rand) []byte {
	data := bytes.Clone(f.safe)
	mode, prefix := 0, len(f.pending)
	if random != nil {
		mode, prefix = random.IntN(4), random.IntN(len(f.pending)+1)
	}
	for i := range f.pending {
		op := &f.pending[i]
		switch {
		case mode == 0, mode == 1 && i < prefix: // all, or a prefix
			data = op.apply(data, nil, 0)
		case mode >= 2 && (op.kind == "truncate" || random.IntN(3) > 0): // any, torn ones among them
			var tear *rand.Rand
			if mode == 3 {
				tear = random
			}
			data = op.apply(data, tear, sectorSizes[random.IntN(len(sectorSizes))])
		}
	}
	return data
}

// apply changes a file. A torn write has lost some of its sectors; where the file grew, they are zeros.
func (op *diskOp) apply(data []byte, tear *rand.Rand, sector int64) []byte {
	end := op.at + int64(len(op.data))
	if op.kind == "truncate" && end < int64(len(data)) {
		return data[:end]
	}
	if grow := end - int64(len(data)); grow > 0 {
		data = append(data, make([]byte, grow)...)
	}
	if tear == nil {
		copy(data[op.at:], op.data)
		return data
	}
	for at := op.at; at < end; {
		next := min(end, (at/sector+1)*sector)
		if tear.IntN(2) == 0 {
			copy(data[at:next], op.data[at-op.at:next-op.at])
		}
		at = next
	}
	return data
}
