package store

import (
	"bytes"
	"compress/zlib"
	"io"
	"sync"
)

// packers compress records at the level that others use, too: level 1 takes a third of its time for records that are a
// sixth longer, and a log of years is read from a disk.
type packers struct{ pool sync.Pool }

type packer struct {
	plain []byte // the record, uncompressed; its memory is used again
	// outline is the record's, encoded.
	outline []byte
	packed  bytes.Buffer
	zlib    *zlib.Writer
}

// Get returns a packer that nobody else uses, until Put.
func (p *packers) Get() *packer {
	if k, ok := p.pool.Get().(*packer); ok {
		return k
	}
	k := &packer{}
	k.zlib, _ = zlib.NewWriterLevel(&k.packed, zlib.DefaultCompression) // a level that exists
	return k
}

// Put gives a packer back.
func (p *packers) Put(k *packer) { p.pool.Put(k) }

// pack compresses plain. The result is valid until the next call.
func (k *packer) pack() []byte {
	k.packed.Reset()
	k.zlib.Reset(&k.packed)
	_, _ = k.zlib.Write(k.plain) // memory takes all that is written
	_ = k.zlib.Close()
	return k.packed.Bytes()
}

// unpacker uncompresses records, one after the other.
type unpacker struct {
	in  bytes.Reader
	out []byte
	r   io.ReadCloser
}

// unpack returns a record of so many bytes, valid until the next call. What does not uncompress to just as many is
// returned as it is: whoever reads it finds out that it is no record.
func (u *unpacker) unpack(packed []byte, size int) []byte {
	u.in.Reset(packed)
	var err error
	if u.r == nil {
		u.r, err = zlib.NewReader(&u.in)
	} else {
		err = u.r.(zlib.Resetter).Reset(&u.in, nil) //nolint:forcetypeassert // documented by zlib.NewReader
	}
	if err != nil || size < 0 || size > maxRecord {
		u.r = nil
		return packed
	}
	if cap(u.out) < size {
		u.out = make([]byte, size)
	}
	u.out = u.out[:size]
	if _, err := io.ReadFull(u.r, u.out); err != nil {
		return packed
	}
	// The checksum is compared with the end, behind which nothing stands.
	if n, err := u.r.Read(make([]byte, 1)); n > 0 || err != io.EOF || u.in.Len() > 0 {
		return packed
	}
	return u.out
}

// maxRecord bounds what a record may say that it uncompresses to.
const maxRecord = 64 << 20
