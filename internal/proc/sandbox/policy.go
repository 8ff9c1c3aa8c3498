package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Policy says what a confined program may do. The zero value allows what [Needs] lists, no network, and the
// default limits.
type Policy struct {
	// Read lists absolute paths that it may read and execute, directories with all below them. "/" is everything.
	Read  []string
	Write []string // Write lists absolute paths that it may read and change
	Net   Net
	// NoSockets takes from a program without Net also the unix sockets that it may otherwise make: it has what it inherits,
	// and pairs.
	NoSockets bool
	Limits    Limits

	_ struct{}
}

func (p Policy) writesAll() bool { return slices.Contains(p.Write, "/") }

// Net says what a program may connect to. The zero value allows unix sockets only.
type Net struct {
	All bool
	// Connect and Listen list TCP ports on any machine. With any of them UDP is free: names could not be
	// resolved otherwise.
	Connect, Listen []uint16
}

func (n Net) none() bool { return !n.All && len(n.Connect) == 0 && len(n.Listen) == 0 }

// NoLimit lifts a limit that has a default.
const NoLimit = math.MaxUint64

// Limits bound what a program uses up. Zero is the default.
type Limits struct {
	// Memory is how many bytes the process and its descendants may hold together; default unlimited. T2 enforces it
	// exactly; in T1 it bounds what one process may reserve (see Data), and the caller watches the rest.
	Memory uint64
	Files  uint64 // how many descriptors a process may have open; default 4,096
	// Tasks is how many processes and threads may be added; default 512. T2 counts the program's own if its
	// group can (see [FindGroupBase]). T1 can only bound the user's total, to this beyond the system's present
	// number, and not for root.
	Tasks    uint64
	FileSize uint64 // the length of the longest file in bytes; default 4 GiB
	// Data is how many bytes of private memory one process may reserve; default Memory plus 1 GiB, because
	// allocators reserve in advance. T2 ignores it.
	Data uint64
}

const (
	defaultFiles    = 4096
	defaultTasks    = 512
	defaultFileSize = 4 << 30
	dataSlack       = 1 << 30
)

func (l Limits) withDefaults() Limits {
	l.Memory = cmp.Or(l.Memory, NoLimit)
	l.Files = cmp.Or(l.Files, defaultFiles)
	l.Tasks = cmp.Or(l.Tasks, defaultTasks)
	l.FileSize = cmp.Or(l.FileSize, defaultFileSize)
	l.Data = cmp.Or(l.Data, l.Memory+min(dataSlack, NoLimit-l.Memory))
	return l
}

// Validate refuses paths that are not absolute and clean, and port 0.
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

// FromGrants makes a policy from a configuration; the limits stay zero. read and write hold absolute paths
// ("/a/*" is "/a", "*" is everything), net "*" (everything), "*:443" (TCP to a port of any machine) and
// "listen:8080". An entry that cannot be enforced as written, such as the name of a machine, is an error.
func FromGrants(read, write, net []string) (Policy, error) {
	reads, errRead := paths(read)
	writes, errWrite := paths(write)
	ports, errNet := ports(net)
	if err := cmp.Or(errRead, errWrite, errNet); err != nil {
		return Policy{}, err
	}
	p := Policy{Read: reads, Write: writes, Net: ports}
	return p, p.Validate()
}

func paths(entries []string) ([]string, error) {
	var list []string
	for _, entry := range entries {
		path, wild := strings.CutSuffix(entry, "*")
		switch {
		case wild && path == "":
			path = "/"
		case wild && !strings.HasSuffix(path, "/"):
			return nil, fmt.Errorf("grant %q: the sandbox knows files and whole directories; write the directory, or %q", entry, filepath.Dir(path)+"/*")
		case !filepath.IsAbs(path):
			return nil, fmt.Errorf("grant %q is not an absolute path", entry)
		}
		list = append(list, filepath.Clean(path))
	}
	return list, nil
}

func ports(entries []string) (n Net, err error) {
	for _, entry := range entries {
		i := strings.LastIndexByte(entry, ':') // the last: an IPv6 address holds others
		port, err := strconv.ParseUint(entry[i+1:], 10, 16)
		switch {
		case entry == "*":
			n.All = true
		case i < 0:
			return n, fmt.Errorf(`grant %q: write "*", "*:PORT" or "listen:PORT"`, entry)
		case err != nil || port == 0:
			return n, fmt.Errorf("grant %q: %q is not a port", entry, entry[i+1:])
		case entry[:i] == "*":
			n.Connect = append(n.Connect, uint16(port))
		case entry[:i] == "listen":
			n.Listen = append(n.Listen, uint16(port))
		default:
			return n, fmt.Errorf(`grant %q: the sandbox knows ports and not machines; "*:%d" allows this port on all of them`, entry, port)
		}
	}
	return n, nil
}
