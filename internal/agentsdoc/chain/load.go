package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
)

const (
	maxStubHops = 8
	maxStub     = 256 // bytes
)

// place is where a candidate's text was found.
type place struct {
	path    string // real path; empty if unknown
	content content
	linked  bool // behind a link or a stub
	stub    bool // behind a stub
}

// load reads a candidate of the directory, which is at real, behind links and stubs. With a problem, the place says
// how far it got.
func (r *resolver) load(f directory, name, real string, info fsview.Info) (place, *problem) {
	at := place{path: real, linked: info.IsLink()}
	var p *problem
	if at.linked {
		at.path, at.content, p = r.follow(f, at.path)
	} else {
		at.content, p = r.read(f.dir, name)
	}
	for hops := 0; p == nil && r.chain.Options.Checks.Stubs; hops++ {
		target, ok := r.stubTarget(f, at)
		if !ok {
			return at, nil
		}
		at.linked, at.stub = true, true
		if hops == maxStubHops {
			return at, &problem{code: CodeStubLoop, detail: "more than 8 files lead from one to the next"}
		}
		at.path, at.content, p = r.follow(f, target)
	}
	return at, p
}

// stubTarget recognizes a stub, as git writes a link on systems without links: nothing but a relative path to a
// candidate name, which exists, in a readable place.
func (r *resolver) stubTarget(f directory, at place) (string, bool) {
	raw, o := at.content.raw, &r.chain.Options
	if len(raw) == 0 || len(raw) > maxStub {
		return "", false
	}
	text := strings.TrimSpace(strings.TrimPrefix(raw, byteOrderMark))
	path := filepath.FromSlash(text)
	candidates := slices.Concat(o.Names, o.FallbackNames, o.LocalNames, o.GlobalNames)
	if strings.ContainsFunc(text, isControl) || filepath.IsAbs(path) || !slices.Contains(candidates, filepath.Base(path)) {
		return "", false
	}
	target := filepath.Join(filepath.Dir(at.path), path)
	if !slices.ContainsFunc(r.bases(f), func(b base) bool { return Within(b.real, target) }) {
		return "", false
	}
	// A line that says "see docs/AGENTS.md" has the form of a path, too.
	_, err := r.view.RealPath(target)
	return target, !errors.Is(err, fs.ErrNotExist)
}

func isControl(c rune) bool { return c < ' ' || c == 0x7f }

// base is a directory that links may lead into.
type base struct {
	real string
	dir  fsview.Dir // nil until opened
}

// bases returns the directories that files may be read from when the chain directory is f: the root, the directory
// itself, and those that the options allow.
func (r *resolver) bases(f directory) []base {
	var list []base
	if len(r.tree) > 0 {
		list = append(list, base{r.tree[0].real, r.tree[0].dir})
	}
	list = append(list, base{f.real, f.dir})
	for _, real := range r.allowedDirectories() {
		list = append(list, base{real: real})
	}
	return list
}

// follow reads the file that a path leads to, if it may be read. Nothing is opened before the real path is known to
// lie in one of the bases; then it is walked from that directory's handle, where no element may be a link any more.
func (r *resolver) follow(f directory, path string) (string, content, *problem) {
	real, err := r.view.RealPath(path)
	if err != nil {
		p := problemOf(err)
		switch {
		case p.gone:
			p = &problem{code: CodeReadError, detail: "the link leads to nothing"}
		case p.code == CodeReadError:
			p.detail = "the link cannot be followed to its end"
		}
		return "", content{}, p
	}
	from, p := r.containing(r.bases(f), real)
	if p != nil {
		return real, content{}, p
	}
	found, p := r.walkTo(from, real)
	return real, found, p
}

// containing returns the base that a real path lies in, if it may be read.
func (r *resolver) containing(bases []base, real string) (base, *problem) {
	i := slices.IndexFunc(bases, func(b base) bool { return Within(b.real, real) && b.real != real })
	if i < 0 {
		return base{}, &problem{code: CodeSymlinkEscape, detail: "the link leads out of the tree"}
	}
	if r.inGitDirectory(bases[i].real, real) {
		return base{}, gitProblem()
	}
	return bases[i], nil
}

// walkTo reads a file below a base, directory by directory. A directory with the structure of a git repository ends it.
func (r *resolver) walkTo(from base, real string) (content, *problem) {
	dir, release := from.dir, func() {}
	if dir == nil {
		opened, err := openReal(r.view, from.real, nil)
		if err != nil {
			return content{}, linkProblem(err)
		}
		dir, release = opened, func() { _ = opened.Close() }
	}
	defer func() { release() }()
	const separator = string(filepath.Separator)
	names := strings.Split(strings.Trim(real[len(from.real):], separator), separator)
	for ; !hasGitStructure(dir); names = names[1:] {
		if len(names) == 1 {
			return r.readChecked(dir, names[0])
		}
		next, err := dir.OpenDir(names[0])
		if err != nil {
			return content{}, linkProblem(err)
		}
		release()
		dir, release = next, func() { _ = next.Close() }
	}
	return content{}, gitProblem()
}

func (r *reader) readChecked(dir fsview.Dir, name string) (content, *problem) {
	info, err := dir.Lstat(name)
	switch {
	case err != nil:
		return content{}, linkProblem(err)
	case info.IsLink():
		return content{}, linkProblem(fsview.ErrLink)
	case !info.Mode.IsRegular():
		return content{}, &problem{code: CodeNotRegular, detail: "the link leads to " + describe(info)}
	}
	return r.read(dir, name)
}

// linkProblem classifies an error behind a link. Another link there means that the tree changed after the real path
// was checked.
func linkProblem(err error) *problem {
	if errors.Is(err, fsview.ErrLink) {
		return &problem{code: CodeReadError, detail: "the link's target changed while it was read"}
	}
	return problemOf(err)
}

// Bounds in bytes. A chain that has read maxChain reads no more than lowRead of each further file: a tree can nest
// 2,000 of them.
const (
	maxRead     = 1 << 20 // of one file
	maxChain    = 2 << 20
	lowRead     = 8 << 10
	binaryProbe = 8 << 10 // how much of a file's beginning is searched for a NUL
)

type textSum [sha256.Size]byte

func (s textSum) String() string { return hex.EncodeToString(s[:]) }

type content struct {
	info   fsview.Info
	raw    string
	sum    textSum // of raw
	capped bool    // the file goes on
}

// How long to wait for files on which another program holds a lease: file servers give it back at once.
const (
	leasePatience = 150 * time.Millisecond // for all files
	leasePause    = 5 * time.Millisecond   // the first one of a file; each is twice as long as the one before
)

// reader reads the files of a chain with one buffer.
type reader struct {
	buf    []byte
	spent  int // bytes of all files
	waited time.Duration
}

func (r *reader) open(dir fsview.Dir, name string) (fsview.File, error) {
	for pause := leasePause; ; pause *= 2 {
		f, err := dir.Open(name)
		if !errors.Is(err, syscall.EAGAIN) || r.waited >= leasePatience {
			return f, err
		}
		<-time.After(pause)
		r.waited += pause
	}
}

// read reads a file that was seen to be regular. What is open now may be another, so it is looked at again.
func (r *reader) read(dir fsview.Dir, name string) (content, *problem) {
	f, err := r.open(dir, name)
	if err != nil {
		return content{}, problemOf(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Info()
	if err != nil {
		return content{}, problemOf(err)
	}
	if !info.Mode.IsRegular() {
		return content{}, &problem{code: CodeNotRegular, detail: "became something else than a regular file"}
	}
	most := maxRead
	if r.spent > maxChain {
		most = lowRead
	}
	want := int(max(0, min(info.Size, int64(most)))) + 1
	r.buf = slices.Grow(r.buf[:0], want)
	n, err := f.Read(r.buf[:want])
	raw := r.buf[:n]
	if err == nil && int64(n) != info.Size { // the size is only a hint
		var rest []byte
		rest, err = io.ReadAll(io.LimitReader(f, int64(most+1-n)))
		raw = append(raw, rest...)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return content{}, problemOf(err)
	}
	r.spent += len(raw)
	capped := len(raw) > most
	if capped {
		raw = wholeRunes(raw[:most])
	}
	return content{info: info, raw: string(raw), sum: sha256.Sum256(raw), capped: capped}, nil
}

// wholeRunes drops an incomplete character from the end.
func wholeRunes(s []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		tail := s[len(s)-n:]
		if utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return s[:len(s)-n]
			}
			break
		}
	}
	return s
}

func (c *content) isBinary() bool {
	return c.isUTF16() || strings.IndexByte(c.raw[:min(len(c.raw), binaryProbe)], 0) >= 0
}

// isUTF16 reports whether a text is in UTF-16, by its byte order mark or by its first two letters.
func (c *content) isUTF16() bool {
	if len(c.raw) < 4 {
		return c.raw == "\xff\xfe" || c.raw == "\xfe\xff"
	}
	mark := c.raw[:2] == "\xff\xfe" || c.raw[:2] == "\xfe\xff"
	return mark || (c.raw[0] == 0) != (c.raw[1] == 0) && (c.raw[0] == 0) == (c.raw[2] == 0) && (c.raw[1] == 0) == (c.raw[3] == 0)
}
