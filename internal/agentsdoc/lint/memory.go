package lint

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
)

// maxHandles bounds the directories that are held open; others are opened again.
const maxHandles = 128

// memory is a view of the file system that keeps the directories from the top down to the walk's current one open and
// passes everything else on: the chains of a tree share most of their directories. A directory that was listed has no
// notable names but those in the list.
type memory struct {
	chain.FS
	notable map[string]bool
	way     []*place // the directories, top first
	inside  bool     // the walk has begun
}

var _ chain.FS = (*memory)(nil)

type place struct {
	name, real string
	link       bool      // its name is a link's
	dir        chain.Dir // set when it is first needed
	listed     bool
	present    []string // notable names, if listed
}

// newMemory begins with the way to the root. Links on it are replaced by their targets.
func newMemory(view chain.FS, root string, notable map[string]bool) *memory {
	m := &memory{FS: view, notable: notable}
	top := filepath.VolumeName(root) + string(filepath.Separator)
	m.push("", top)
	whole, err := view.RealPath(root)
	plain := err == nil && whole == root // no element is a link
	for name := range strings.SplitSeq(root[len(top):], string(filepath.Separator)) {
		if name == "" {
			continue
		}
		p := m.push(name, chain.Below(m.way[len(m.way)-1].real, name))
		if !plain {
			if real, err := view.RealPath(p.real); err == nil && real != p.real {
				p.real, p.link = real, true
			}
		}
	}
	return m
}

func (m *memory) push(name, real string) *place {
	p := &place{name: name, real: real}
	m.way = append(m.way, p)
	return p
}

// enter goes to the root, or to a directory in the current one.
func (m *memory) enter(path string, present []string, listed bool) {
	last := m.way[len(m.way)-1]
	if m.inside {
		name := filepath.Base(path)
		last = m.push(name, chain.Below(last.real, name))
	}
	m.inside = true // the way has led to the root from the beginning
	last.present, last.listed = present, listed
}

func (m *memory) leave() {
	last := len(m.way) - 1
	p := m.way[last]
	if p.dir != nil {
		_ = p.dir.Close()
	}
	m.way[last] = nil
	m.way = m.way[:last]
}

func (m *memory) close() {
	for len(m.way) > 0 {
		m.leave()
	}
}

func (m *memory) current() (chain.Dir, error) {
	if at := len(m.way) - 1; at < maxHandles {
		return &known{m, at}, nil
	}
	real := m.way[len(m.way)-1].real
	return chain.OpenRoot(m.FS, real, &chain.Options{Boundary: real})
}

// isFile reports whether a name in the current directory is a file or a link.
func (m *memory) isFile(name string) bool {
	dir, err := m.current()
	if err != nil {
		return false
	}
	defer func() { _ = dir.Close() }()
	info, err := dir.Lstat(name)
	return err == nil && (info.Mode.IsRegular() || info.IsLink())
}

// readBeside reads some bytes of a regular file in the current directory.
func (m *memory) readBeside(name string, most int64) string {
	dir, err := m.current()
	if err != nil {
		return ""
	}
	defer func() { _ = dir.Close() }()
	text, _ := fsview.ReadText(dir, name, most) // a link is an error, and git follows none either
	return text
}

// OpenDir implements chain.FS.
func (m *memory) OpenDir(path string) (chain.Dir, error) {
	for i, p := range m.way[:min(len(m.way), maxHandles)] {
		if p.real == path {
			return &known{m, i}, nil
		}
	}
	return m.FS.OpenDir(path)
}

func (m *memory) handle(at int) (chain.Dir, error) {
	p := m.way[at]
	if p.dir != nil {
		return p.dir, nil
	}
	var err error
	if at == 0 || p.link {
		p.dir, err = m.FS.OpenDir(p.real)
		return p.dir, err
	}
	parent, err := m.handle(at - 1)
	if err != nil {
		return nil, err
	}
	p.dir, err = parent.OpenDir(p.name)
	return p.dir, err
}

// known is the directory of a place on the way, opened when first needed.
type known struct {
	m  *memory
	at int
}

var _ chain.Dir = (*known)(nil)

func (k *known) place() *place { return k.m.way[k.at] }

// OpenDir implements fsview.Dir.
func (k *known) OpenDir(name string) (chain.Dir, error) {
	if next := k.at + 1; next < min(len(k.m.way), maxHandles) && k.m.way[next].name == name {
		if k.m.way[next].link {
			return nil, fsview.ErrLink
		}
		return &known{k.m, next}, nil
	}
	dir, err := k.m.handle(k.at)
	if err != nil {
		return nil, err
	}
	return dir.OpenDir(name)
}

// Lstat implements fsview.Dir.
func (k *known) Lstat(name string) (fsview.Info, error) {
	p := k.place()
	if p.listed && k.m.notable[name] && !slices.Contains(p.present, name) {
		return fsview.Info{}, fs.ErrNotExist
	}
	dir, err := k.m.handle(k.at)
	if err != nil {
		return fsview.Info{}, err
	}
	return dir.Lstat(name)
}

// Open implements fsview.Dir.
func (k *known) Open(name string) (fsview.File, error) {
	dir, err := k.m.handle(k.at)
	if err != nil {
		return nil, err
	}
	return dir.Open(name)
}

// Names implements fsview.Dir.
func (k *known) Names() ([]string, error) {
	dir, err := k.m.handle(k.at)
	if err != nil {
		return nil, err
	}
	return dir.Names()
}

// Info implements fsview.Dir.
func (k *known) Info() (fsview.Info, error) {
	dir, err := k.m.handle(k.at)
	if err != nil {
		return fsview.Info{}, err
	}
	return dir.Info()
}

// Close implements fsview.Dir. The memory owns the handle.
func (k *known) Close() error { return nil }
