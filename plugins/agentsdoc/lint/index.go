package lint

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
)

// indexName is the file with all that git tracks.
const indexName = "index"

// Bounds of an index. Both are beyond what any repository has: 512 MiB are those of
// several million files.
const (
	maxGitIndex = 512 << 20
	maxGitName  = 64 << 10
)

// tracked returns the paths of those wanted, by their names in the index, that are
// in it. With an error, others may be, too. A repository without an index tracks
// nothing.
func tracked(view chain.FS, folder string, wanted map[string]string) (map[string]bool, error) {
	found := map[string]bool{}
	var err error
	// How long hashes are stands in no index: it is told by how they are read.
	for _, hash := range []int{20, 32} {
		err = readIndex(view, folder, hash, func(name []byte) {
			if path, ok := wanted[string(name)]; ok {
				found[path] = true
			}
		})
		if err == nil || !errors.Is(err, errDamaged) {
			break
		}
	}
	if errors.Is(err, fs.ErrNotExist) || len(found) == len(wanted) {
		err = nil // whatever is wrong with the rest
	}
	return found, err
}

// What can be wrong with an index.
var (
	errDamaged = errors.New("the file is damaged")
	errSplit   = errors.New("it is split into two files, of which the other is not read")
)

// readIndex calls see for each name in an index. The name is good until see
// returns. The index of a large repository is long, so it is never held.
func readIndex(view chain.FS, folder string, hash int, see func(name []byte)) error {
	f, err := openRegular(view, folder, indexName)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	r := indexReader{in: bufio.NewReaderSize(io.LimitReader(f, maxGitIndex), 64<<10), hash: hash}
	count, err := r.head()
	for ; err == nil && count > 0; count-- {
		if err = r.entry(); err == nil {
			see(r.name)
		}
	}
	if err == nil {
		err = r.extensions()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: it ends too early", errDamaged)
	}
	return err
}

// indexReader reads an index in the forms that git has for it, versions 2 to 4.
type indexReader struct {
	in      *bufio.Reader
	version uint32
	hash    int    // bytes
	name    []byte // of the last entry
	fixed   [entryStat + 32 + 2*entryFlags]byte
}

// head reads the beginning, which says how many entries there are.
func (r *indexReader) head() (count uint32, err error) {
	var head [12]byte
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return 0, err
	}
	r.version = binary.BigEndian.Uint32(head[4:])
	switch {
	case string(head[:4]) != "DIRC":
		return 0, fmt.Errorf("%w: it does not begin as an index does", errDamaged)
	case r.version < 2 || r.version > 4:
		return 0, fmt.Errorf("its version is %d, and 2 to 4 are known", r.version)
	}
	return binary.BigEndian.Uint32(head[8:]), nil
}

// Parts of an entry.
const (
	entryStat     = 40 // bytes about the file, before the hash
	entryFlags    = 2
	flagExtended  = 0x4000 // more flags follow
	flagsNameSize = 0x0fff // bits that have the length of the name, or all of them
)

// entry reads the next entry.
func (r *indexReader) entry() error {
	fixed, size := r.fixed[:], entryStat+r.hash+entryFlags
	if _, err := io.ReadFull(r.in, fixed[:size]); err != nil {
		return err
	}
	flags := int(binary.BigEndian.Uint16(fixed[size-entryFlags:]))
	if flags&flagExtended != 0 && r.version > 2 {
		if _, err := io.ReadFull(r.in, fixed[size:size+entryFlags]); err != nil {
			return err
		}
		size += entryFlags
	}
	if err := r.readName(); err != nil {
		return err
	}
	if want := flags & flagsNameSize; len(r.name) != want && (want < flagsNameSize || len(r.name) < want) {
		return fmt.Errorf("%w: a name is not as long as it says", errDamaged)
	}
	if r.version == 4 {
		return nil
	}
	// Entries are filled up to a multiple of eight bytes.
	_, err := r.in.Discard((8 - (size+len(r.name)+1)%8) % 8)
	return err
}

// readName reads a name. From version 4 on it is told by how it differs from the
// one before.
func (r *indexReader) readName() error {
	kept := 0
	if r.version == 4 {
		dropped, err := r.number()
		if err != nil {
			return err
		}
		if kept = len(r.name) - dropped; kept < 0 {
			return fmt.Errorf("%w: a name builds on what is not there", errDamaged)
		}
	}
	r.name = r.name[:kept]
	for {
		part, err := r.in.ReadSlice(0)
		r.name = append(r.name, part...)
		switch {
		case len(r.name) > maxGitName:
			return fmt.Errorf("%w: a name is too long", errDamaged)
		case err == nil:
			r.name = r.name[:len(r.name)-1]
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// number reads a number of as many bytes as it takes.
func (r *indexReader) number() (int, error) {
	n := 0
	for {
		c, err := r.in.ReadByte()
		if err != nil {
			return 0, err
		}
		n = n<<7 + int(c&0x7f)
		switch {
		case c&0x80 == 0:
			return n, nil
		case n > maxGitName:
			return 0, fmt.Errorf("%w: a number is too large", errDamaged)
		}
		n++
	}
}

// extensions looks at what follows the entries for what would make them less than
// all. Behind the last one is a hash, which has no such name.
func (r *indexReader) extensions() error {
	for {
		head, err := r.in.Peek(8)
		if err != nil || !isExtension(head[:4]) {
			return nil //nolint:nilerr // the end
		}
		if string(head[:4]) == "link" {
			return errSplit
		}
		size := int64(binary.BigEndian.Uint32(head[4:]))
		if _, err := io.CopyN(io.Discard, r.in, 8+size); err != nil {
			return nil //nolint:nilerr // it was a hash that looked like one
		}
	}
}

// isExtension reports whether four bytes are the name of an extension.
func isExtension(name []byte) bool {
	for _, c := range name {
		if c|0x20 < 'a' || c|0x20 > 'z' {
			return false
		}
	}
	return true
}
