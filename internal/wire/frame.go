package wire

import (
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

type body = protowire.Number

// envelope is a frame read up to its body. A session's reader does only that, so that bodies are decoded in many
// goroutines and a bad one fails one call.
type envelope struct {
	id          uint64
	incarnation uint64
	body        body // 0 if the frame has no body with a known number
	payload     []byte
	unknown     body // a field that may be a body of a later version
}

var errFrame = errors.New("the frame is not a protobuf message")

// parseEnvelope reads a frame whose bodies are numbered up to last. On an error the fields before it are set.
func parseEnvelope(data []byte, last body) (e envelope, err error) {
	ok := eachField(data, func(num protowire.Number, typ protowire.Type, rest []byte) (n int) {
		switch {
		case num == 1 && typ == protowire.VarintType:
			e.id, n = protowire.ConsumeVarint(rest)
		case num == 2 && typ == protowire.VarintType:
			e.incarnation, n = protowire.ConsumeVarint(rest)
		case num > 2 && num <= last && typ == protowire.BytesType:
			e.payload, n = protowire.ConsumeBytes(rest)
			e.body = num
		default:
			e.unknown = num
			n = protowire.ConsumeFieldValue(num, typ, rest)
		}
		return n
	})
	if !ok {
		err = errFrame
	}
	return e, err
}

// eachField calls consume, which returns the length of the value, with each field; false if one is malformed.
func eachField(data []byte, consume func(num protowire.Number, typ protowire.Type, rest []byte) int) bool {
	for len(data) > 0 {
		num, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return false
		}
		data = data[n:]
		if n = consume(num, typ, data); n < 0 {
			return false
		}
		data = data[n:]
	}
	return true
}

func putFrame[T any](f *form, id, incarnation uint64, b body, m *T, fields func(*form, *T)) {
	number(f, 1, &id)
	number(f, 2, &incarnation)
	put(f, b, m, fields)
}

// codec lets the session's stream carry frames as bytes: gRPC would decode them in the reader and end the stream at
// the first bad one. Other messages on the connection (go-plugin's services) are protobuf as usual; hence the same
// name.
type codec struct{ other encoding.CodecV2 }

var _ encoding.CodecV2 = codec{}

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

func (c codec) Name() string { return protocodec.Name }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if o, ok := v.(*outgoing); ok {
		return mem.BufferSlice{o.buffer}, nil
	}
	return c.other.Marshal(v)
}

// Unmarshal implements encoding.CodecV2. The frame keeps its own reference to the data.
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

type incoming struct {
	envelope
	size   int
	buffer mem.Buffer // what gRPC brought; nil for a frame of the lane
	data   []byte     // what the lane brought
	owned  bool       // data is nobody else's: text may point into it
	line   bool       // data is JSON
	name   string     // of a body that is not known, in JSON
}

// parse reads the envelope of a frame with these bodies, and this form in JSON. The payload is valid until free.
func (in *incoming) parse(last body, form *jsonMessage) (err error) {
	data := in.data
	if in.buffer != nil {
		data = in.buffer.ReadOnlyData()
	}
	in.size = len(data)
	if in.line {
		if data, in.id, in.name, err = form.parseLine(data); err != nil {
			return err
		}
		in.data, in.owned, in.line = data, true, false
	}
	in.envelope, err = parseEnvelope(data, last)
	return err
}

// unsupported is the answer to a frame whose body is not known.
func (in *incoming) unsupported() unsupported {
	const longest = 64
	u := unsupported{body: uint64(in.unknown)} //nolint:gosec // positive
	if len(in.name) <= longest {
		u.name = in.name
	}
	return u
}

// free releases the frame's memory. It is safe to call twice.
func (in *incoming) free() {
	if in.buffer != nil {
		in.buffer.Free()
	}
	in.buffer, in.data, in.payload = nil, nil, nil
}

// decode reads the body of a frame and frees it. A panic, a bug of ours that a peer has found, costs only this frame.
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
	if err := read(f, in.payload, in.owned, m, fields); err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	return nil
}

// frames is the pool that frames are written into. gRPC returns a buffer when it has handed the bytes to the
// connection, which tells the writer how much still waits there.
type frames struct {
	pool    sync.Pool // of *[]byte
	forms   sync.Pool // of *form
	flushed func(size int)
}

// smallFrame is the least capacity: gRPC does not return buffers up to 1 KiB.
const smallFrame = 2 << 10

// largestPooled bounds what an idle pool keeps alive.
const largestPooled = 256 << 10

var _ mem.BufferPool = (*frames)(nil)

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

func (p *frames) form() *form {
	f, ok := p.forms.Get().(*form)
	if !ok {
		return &form{}
	}
	*f = form{}
	return f
}

// begin returns a form that writes into a pooled buffer, to be taken by seal.
func (p *frames) begin(rule textRule) *form {
	f := p.form()
	f.writing, f.rule = true, rule
	f.buffer = p.Get(smallFrame)
	f.out = *f.buffer
	return f
}

func (p *frames) seal(f *form) (*[]byte, error) {
	defer p.forms.Put(f)
	*f.buffer = f.out
	if err := f.problem(); err != nil {
		p.recycle(f.buffer)
		return nil, err
	}
	return f.buffer, nil
}

// inJSON replaces a frame by its JSON.
func (p *frames) inJSON(frame *[]byte, form *jsonMessage) (*[]byte, error) {
	defer p.recycle(frame)
	line := p.Get(2 * len(*frame))
	var err error
	if *line, err = form.appendJSON(*line, *frame); err != nil {
		p.recycle(line)
		return nil, err
	}
	return line, nil
}

func (p *frames) recycle(b *[]byte) {
	poison(*b)
	if cap(*b) <= largestPooled {
		p.pool.Put(b)
	}
}
