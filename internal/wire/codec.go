package wire

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// codec lets the session's stream carry frames as bytes: gRPC would decode them
// in the reader, and end the stream at the first bad one. All other messages on
// the same connection (go-plugin's own services) are protobuf as usual. On the
// wire there is no difference, hence the same name.
type codec struct{ other encoding.CodecV2 }

var _ encoding.CodecV2 = codec{}

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Name implements encoding.CodecV2.
func (c codec) Name() string { return protocodec.Name }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if o, ok := v.(*outgoing); ok {
		return mem.BufferSlice{o.buffer}, nil
	}
	return c.other.Marshal(v)
}

// Unmarshal implements encoding.CodecV2. The frame keeps a reference of its own
// to the data.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	in, ok := v.(*incoming)
	if !ok {
		return c.other.Unmarshal(data, v)
	}
	switch len(data) {
	case 0:
		*in = incoming{}
	case 1:
		data[0].Ref()
		*in = incoming{buffer: data[0]}
	default:
		*in = incoming{buffer: data.MaterializeToBuffer(mem.DefaultBufferPool())}
	}
	return nil
}

// incoming is one frame as it came.
type incoming struct {
	envelope
	size   int
	buffer mem.Buffer
}

// parse reads the envelope. The payload is valid until free.
func (in *incoming) parse(last body) (err error) {
	if in.buffer == nil {
		return nil
	}
	data := in.buffer.ReadOnlyData()
	in.size = len(data)
	in.envelope, err = parseEnvelope(data, last)
	return err
}

// free gives the frame's memory back. It may be called again.
func (in *incoming) free() {
	if in.buffer != nil {
		in.buffer.Free()
		in.buffer, in.payload = nil, nil
	}
}

// decode reads the body of a frame, and frees it. A panic on the way, a mistake
// of ours that a peer has found, costs the peer this frame and no more.
func decode[T any](p *frames, in *incoming, rule textRule, m *T, fields func(*form, *T)) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be read: %w", panicked(r))
		}
	}()
	defer in.free()
	f := p.form()
	defer p.forms.Put(f)
	f.rule = rule
	if err := read(f, in.payload, m, fields); err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	return nil
}

// frames is the pool that frames are written into. gRPC gives a buffer back
// when it has handed the bytes to the connection, which tells the writer how
// much still waits there.
type frames struct {
	pool    sync.Pool // of *[]byte
	forms   sync.Pool // of *form
	flushed func(size int)
}

// smallFrame is the least capacity of a buffer. gRPC does not give back buffers
// up to 1 KiB.
const smallFrame = 2 << 10

// largestPooled bounds what an idle pool keeps alive.
const largestPooled = 256 << 10

var _ mem.BufferPool = (*frames)(nil)

// Get implements mem.BufferPool.
func (p *frames) Get(size int) *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		*b = (*b)[:0]
		return b
	}
	b := make([]byte, 0, max(size, smallFrame))
	return &b
}

// Put implements mem.BufferPool; gRPC calls it.
func (p *frames) Put(b *[]byte) {
	p.flushed(len(*b))
	p.recycle(b)
}

// form returns an empty form.
func (p *frames) form() *form {
	f, ok := p.forms.Get().(*form)
	if !ok {
		return &form{}
	}
	*f = form{}
	return f
}

// begin returns a form that writes into a pooled buffer. What it has written is
// taken by seal.
func (p *frames) begin(rule textRule) *form {
	f := p.form()
	f.writing, f.rule = true, rule
	f.buffer = p.Get(smallFrame)
	f.out = *f.buffer
	return f
}

// seal returns the frame that was written, or why it could not be.
func (p *frames) seal(f *form) (*[]byte, error) {
	defer p.forms.Put(f)
	*f.buffer = f.out
	if err := f.problem(); err != nil {
		p.recycle(f.buffer)
		return nil, err
	}
	return f.buffer, nil
}

func (p *frames) recycle(b *[]byte) {
	if cap(*b) <= largestPooled {
		p.pool.Put(b)
	}
}
