package sandbox

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
)

// Policy says what a confined program may do. The zero value allows what
// [Needs] lists, no network, and the default limits.
type Policy struct {
	// Read lists absolute paths of files, and of folders with all below them,
	// that it may read and execute. "/" is everything.
	Read []string
	// Write lists absolute paths that it may also change. What can be written
	// can be read: a database that cannot be read back is of no use.
	Write  []string
	Net    Net
	Limits Limits

	_ struct{}
}

// writesAll reports whether everything may be changed.
func (p Policy) writesAll() bool { return slices.Contains(p.Write, "/") }

// Net says whom a program may speak to. The zero value is nobody: no socket
// but those of the unix family can be made.
type Net struct {
	// All lifts all bounds.
	All bool
	// Connect lists TCP ports that it may connect to, on any machine, and
	// Listen those that it may listen on. With any of them, datagrams are not
	// bounded: names could not be resolved otherwise.
	Connect, Listen []uint16
}

// none reports whether no network is granted at all.
func (n Net) none() bool { return !n.All && len(n.Connect) == 0 && len(n.Listen) == 0 }

// NoLimit lifts a limit that has a default.
const NoLimit = math.MaxUint64

// Limits bound what a program uses up. A zero stands for the default.
type Limits struct {
	// Memory is how many bytes the process and its descendants may hold
	// together; the default is no bound. Tier T2 enforces it exactly; in T1 it
	// bounds what one process may reserve (see Data), and the caller watches
	// the rest.
	Memory uint64
	// Files is how many descriptors a process may have open; default 4,096.
	Files uint64
	// Tasks is how many processes and threads may be added; default 512. T2
	// counts the program's own, if its group can; see [FindGroupBase]. T1 can
	// only bound how many the system's user has in all, so it adds them to what
	// the whole system has at the start, and does not bound root.
	Tasks uint64
	// FileSize is the length of the longest file in bytes; default 4 GiB.
	FileSize uint64
	// Data is how many bytes of private memory one process may reserve; the
	// default is Memory plus 1 GiB, or no bound without Memory. It is far more
	// than a program uses, because allocators reserve in advance. T2 has no use
	// for it.
	Data uint64
}

// Defaults of Limits.
const (
	DefaultFiles    = 4096
	DefaultTasks    = 512
	DefaultFileSize = 4 << 30
	dataSlack       = 1 << 30
)

// withDefaults fills in the zeros.
func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		field *uint64
		value uint64
	}{
		{&l.Memory, NoLimit}, {&l.Files, DefaultFiles}, {&l.Tasks, DefaultTasks}, {&l.FileSize, DefaultFileSize},
	} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	if l.Data == 0 {
		l.Data = l.Memory
		if l.Memory <= NoLimit-dataSlack {
			l.Data += dataSlack
		}
	}
	return l
}

// Validate checks what a caller may have got wrong: paths that are not
// absolute and clean, and ports that are 0.
func (p Policy) Validate() error {
	for _, path := range slices.Concat(p.Read, p.Write) {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || strings.ContainsRune(path, 0) {
			return fmt.Errorf("granted path %q is not absolute and clean", path)
		}
	}
	if slices.Contains(slices.Concat(p.Net.Connect, p.Net.Listen), 0) {
		return errors.New("port 0 cannot be granted: it stands for any free port")
	}
	return nil
}
