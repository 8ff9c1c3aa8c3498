package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/fsview"
)

// maxRead bounds the bytes that are read of one file. A chain that has read maxChain
// bytes reads no more than lowRead of each further file: a tree can nest 2,000 of them.
const (
	maxRead  = 1 << 20
	maxChain = 2 << 20
	lowRead  = 8 << 10
)

// binaryProbe is how much of a file's beginning is searched for a NUL.
const binaryProbe = 8 << 10

// textSum is the hash of a text.
type textSum [sha256.Size]byte

// String is the sum in hex.
func (s textSum) String() string {
	var buf [2 * sha256.Size]byte
	return string(hex.AppendEncode(buf[:0], s[:]))
}

// content is what was read of a file.
type content struct {
	info   fsview.Info
	raw    string
	sum    textSum // of raw
	capped bool    // the file goes on
}

// How long files are waited for on which another program holds a lease: file servers
// give it back at once.
const (
	leasePatience = 200 * time.Millisecond // for all files
	leasePause    = 5 * time.Millisecond
)

// reader reads files. Its buffer serves one after the other.
type reader struct {
	buf    []byte
	spent  int // bytes of all files
	waited time.Duration
}

// open opens a file, as soon as who holds a lease on it has given it back.
func (r *reader) open(dir fsview.Dir, name string) (fsview.File, error) {
	for {
		f, err := dir.Open(name)
		if !errors.Is(err, syscall.EAGAIN) || r.waited >= leasePatience {
			return f, err
		}
		<-time.After(leasePause)
		r.waited += leasePause
	}
}

// read reads a file that was seen to be regular. What is open now may be
// another, so it is looked at again.
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
	raw, err := r.bounded(f, info.Size, most)
	if err != nil {
		return content{}, problemOf(err)
	}
	r.spent += len(raw)
	capped := len(raw) > most
	if capped {
		raw = wholeRunes(raw[:most])
	}
	return content{info: info, raw: string(raw), sum: sha256.Sum256(raw), capped: capped}, nil
}

// bounded reads until the end or one byte beyond most. The size is what the
// system said, which need not be true. The bytes are good until the next call.
func (r *reader) bounded(f io.Reader, size int64, most int) ([]byte, error) {
	const least = 4096
	r.buf = slices.Grow(r.buf[:0], int(max(least, min(size, int64(most))+1)))
	for len(r.buf) <= most {
		if len(r.buf) == cap(r.buf) {
			r.buf = slices.Grow(r.buf, len(r.buf))
		}
		n, err := f.Read(r.buf[len(r.buf):min(cap(r.buf), most+1)])
		r.buf = r.buf[:len(r.buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			return r.buf, nil
		case err != nil:
			return nil, err
		case int64(len(r.buf)) == size:
			return r.buf, nil // asked for one more, got none: this is the end
		}
	}
	return r.buf, nil
}

// wholeRunes drops the beginning of a character from the end of a text that was
// cut at a byte.
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

// isBinary reports whether a file is no text.
func (c *content) isBinary() bool {
	return strings.IndexByte(c.raw[:min(len(c.raw), binaryProbe)], 0) >= 0
}
