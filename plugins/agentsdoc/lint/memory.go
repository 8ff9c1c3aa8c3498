package lint

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/fsview"
)

// Bounds of what is remembered. Beyond them things are looked up again.
const (
	// maxHandles bounds the folders that are held open.
	maxHandles = 64
	// maxHeld bounds the bytes of files, together.
	maxHeld = 16 << 20
	// maxFile is more than is ever read of one file.
	maxFile = 1<<20 + 1
	// maxReals bounds the real paths.
	maxReals = 256
)

// memory is a view of the file system for a walk: it remembers the folders from
// the top of the file system to the one that the walk is in, with their files, and
// passes on all else. The chains of a tree have most of their folders in common,
// so most of their questions have been asked before.
//
// A folder that was listed is known to hold none of the notable names but those
// that were in the list.
type memory struct {
	view    chain.FS
	notable map[string]bool
	way     []*place // the folders, top first
	inside  bool     // the walk has begun
	held    int      // bytes of files
	reals   map[string]realPath
}

var _ chain.FS = (*memory)(nil)

// realPath is an answer of RealPath.
type realPath struct {
	path string
	err  error
}

// place is one folder on the way.
type place struct {
	name, real string
	link       bool      // its name is a link's
	dir        chain.Dir // once it was needed, and while there is room for it
	listed     bool
	present    []string // notable names, where listed
	stats      []stat
	files      []file
}

// stat is an answer of Lstat.
type stat struct {
	name string
	info fsview.Info
	err  error
}

// file is a file that was read.
type file struct {
	name string
	info fsview.Info
	data []byte
}

// newMemory begins with the way to the root. Where that has links the memory is
// of their targets; what cannot be found out is not remembered.
func newMemory(view chain.FS, root string, notable map[string]bool) *memory {
	m := &memory{view: view, notable: notable, reals: map[string]realPath{}}
	top := filepath.VolumeName(root) + string(filepath.Separator)
	m.way = append(m.way, &place{real: top})
	whole, err := view.RealPath(root)
	plain := err == nil && whole == root // no element is a link
	for name := range strings.SplitSeq(root[len(top):], string(filepath.Separator)) {
		if name == "" {
			continue
		}
		last := m.way[len(m.way)-1]
		p := &place{name: name, real: join(last.real, name)}
		if !plain {
			if real, err := view.RealPath(p.real); err == nil && real != p.real {
				p.real, p.link = real, true
			}
		}
		m.way = append(m.way, p)
	}
	return m
}

// enter says that the walk is in a folder now: the root, or one in the folder
// where it was.
func (m *memory) enter(path string, present []string, listed bool) {
	last := m.way[len(m.way)-1]
	if m.inside {
		name := filepath.Base(path)
		last = &place{name: name, real: join(last.real, name)}
		m.way = append(m.way, last)
	}
	m.inside = true // the way led to the root from the beginning
	last.present, last.listed = present, listed
}

// leave says that the walk is done with the last folder.
func (m *memory) leave() {
	last := len(m.way) - 1
	m.forget(m.way[last])
	m.way[last] = nil
	m.way = m.way[:last]
}

// forget lets go what is held of a folder.
func (m *memory) forget(p *place) {
	if p.dir != nil {
		_ = p.dir.Close()
		p.dir = nil
	}
	for _, f := range p.files {
		m.held -= len(f.data)
	}
}

// close lets go of everything.
func (m *memory) close() {
	for len(m.way) > 0 {
		m.leave()
	}
}

// isFile reports whether a name of the folder that the walk is in is a file, or a
// link to something.
func (m *memory) isFile(name string) bool {
	dir, err := m.open(len(m.way) - 1)
	if err != nil {
		return false
	}
	defer func() { _ = dir.Close() }()
	info, err := dir.Lstat(name)
	return err == nil && (info.Mode.IsRegular() || info.IsLink())
}

// readBeside reads a file of the folder that the walk is in, if it is one; no more
// than most bytes of it.
func (m *memory) readBeside(name string, most int64) string {
	dir, err := m.open(len(m.way) - 1)
	if err != nil {
		return ""
	}
	defer func() { _ = dir.Close() }()
	if info, err := dir.Lstat(name); err != nil || !info.Mode.IsRegular() {
		return "" // git follows no link here either
	}
	f, err := dir.Open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return ""
	}
	return string(data)
}

// RealPath implements chain.FS. The options name a few folders of the user's, whose
// real paths every chain asks for.
func (m *memory) RealPath(path string) (string, error) {
	known, ok := m.reals[path]
	if !ok {
		known.path, known.err = m.view.RealPath(path)
		if len(m.reals) >= maxReals {
			clear(m.reals)
		}
		m.reals[path] = known
	}
	return known.path, known.err
}

// OpenDir implements chain.FS.
func (m *memory) OpenDir(path string) (chain.Dir, error) {
	for i, p := range m.way {
		if p.real == path {
			return m.open(i)
		}
	}
	return m.view.OpenDir(path)
}

// open opens a folder of the way. Nothing is done in fact until it is asked for
// what is not known, unless it lies too deep for that.
func (m *memory) open(at int) (chain.Dir, error) {
	if at < maxHandles {
		return &known{m: m, place: m.way[at], at: at}, nil
	}
	parent, err := m.open(at - 1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = parent.Close() }()
	return parent.OpenDir(m.way[at].name)
}

// handle is the open folder of a place of the way.
func (m *memory) handle(at int) (chain.Dir, error) {
	p := m.way[at]
	if p.dir != nil {
		return p.dir, nil
	}
	var err error
	if at == 0 || p.link {
		p.dir, err = m.view.OpenDir(p.real)
		return p.dir, err
	}
	parent, err := m.handle(at - 1)
	if err != nil {
		return nil, err
	}
	p.dir, err = parent.OpenDir(p.name)
	return p.dir, err
}

// known is an open folder of the way.
type known struct {
	m     *memory
	place *place
	at    int
	own   chain.Dir // where the place is too deep to be held open
}

var _ chain.Dir = (*known)(nil)

// dir is the folder itself.
func (k *known) dir() (chain.Dir, error) {
	if k.own != nil {
		return k.own, nil
	}
	return k.m.handle(k.at)
}

// OpenDir implements fsview.Dir.
func (k *known) OpenDir(name string) (chain.Dir, error) {
	next := k.at + 1
	if next < len(k.m.way) && k.m.way[next].name == name {
		if k.m.way[next].link {
			return nil, fsview.ErrLink
		}
		if next < maxHandles {
			return k.m.open(next)
		}
	}
	dir, err := k.dir()
	if err != nil {
		return nil, err
	}
	child, err := dir.OpenDir(name)
	if err == nil && next < len(k.m.way) && k.m.way[next].name == name {
		return &known{m: k.m, place: k.m.way[next], at: next, own: child}, nil
	}
	return child, err
}

// Lstat implements fsview.Dir.
func (k *known) Lstat(name string) (fsview.Info, error) {
	if k.place.listed && k.m.notable[name] && !k.place.has(name) {
		return fsview.Info{}, fs.ErrNotExist
	}
	for i := range k.place.stats {
		if s := &k.place.stats[i]; s.name == name {
			return s.info, s.err
		}
	}
	s := stat{name: name}
	dir, err := k.dir()
	if err != nil {
		return fsview.Info{}, err
	}
	s.info, s.err = dir.Lstat(name)
	k.place.stats = append(k.place.stats, s)
	return s.info, s.err
}

// has reports whether a listed folder holds a notable name.
func (p *place) has(name string) bool {
	return slices.Contains(p.present, name)
}

// Open implements fsview.Dir.
func (k *known) Open(name string) (fsview.File, error) {
	for i := range k.place.files {
		if f := &k.place.files[i]; f.name == name {
			return &opened{info: f.info, Reader: bytes.NewReader(f.data)}, nil
		}
	}
	dir, err := k.dir()
	if err != nil {
		return nil, err
	}
	return k.read(dir, name)
}

// read reads a file and remembers it, if there is room for it.
func (k *known) read(dir chain.Dir, name string) (fsview.File, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Info()
	if err != nil || !info.Mode.IsRegular() || min(info.Size, maxFile) > int64(maxHeld-k.m.held) {
		return f, nil //nolint:nilerr // whoever opened it asks again
	}
	data := make([]byte, min(info.Size, maxFile))
	n, err := io.ReadFull(f, data)
	if closed := f.Close(); err == nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	k.m.held += n
	k.place.files = append(k.place.files, file{name: name, info: info, data: data[:n]})
	return &opened{info: info, Reader: bytes.NewReader(data[:n])}, nil
}

// Info implements fsview.Dir.
func (k *known) Info() (fsview.Info, error) {
	dir, err := k.dir()
	if err != nil {
		return fsview.Info{}, err
	}
	return dir.Info()
}

// Close implements fsview.Dir.
func (k *known) Close() error {
	if k.own == nil {
		return nil
	}
	return k.own.Close()
}

// opened is a file that was read before.
type opened struct {
	*bytes.Reader

	info fsview.Info
}

// Info implements fsview.File.
func (o *opened) Info() (fsview.Info, error) { return o.info, nil }

// Close implements fsview.File.
func (o *opened) Close() error { return nil }
