package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/grapnelhq/grapnel/phases"
)

// RawPeer is the host's end of a session without any checks: it sends the frames that its caller asks for, valid or not,
// and returns every frame of the plugin. It is for conformance checks; hosts use [Session].
type RawPeer struct {
	stream grpc.ClientStream // nil over lines
	cancel context.CancelFunc
	lines  *lines
	in     net.Conn // the plugin's output
	out    net.Conn // the plugin's input
	mu     sync.Mutex
}

// RawWord is a body without fields by its name: "cancel", "ping", "drain", or a name that no version has.
type RawWord string

// RawHello is the body of hello.
type RawHello struct {
	Frame     int
	HostCalls int
}

// RawFrame is one frame of a plugin as it came. At most one of the bodies is set.
type RawFrame struct {
	ID, Incarnation uint64
	Body            string // the name of the body in plugin.proto; empty if there is none that this version knows
	Size            int    // in bytes
	Text            string // the frame as JSON, or the bytes that are not a frame, shortened
	Noise           bool   // what came is not a frame
	Invalid         error  // why a host refuses it
	// Description, Rejected and Err belong to describe, configured, result and tool_result.
	Description *phases.Description
	Rejected    *phases.ConfigError
	Err         *phases.Error
	Result      *phases.Result
}

// OpenRaw opens a session over gRPC, whose frames may be up to MaxFrame long.
func OpenRaw(ctx context.Context, conn *ClientConn) (*RawPeer, error) {
	p := &RawPeer{}
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	var err error
	p.stream, err = conn.NewStream(ctx, &serviceDesc().Streams[0], sessionMethod,
		grpc.ForceCodecV2(newCodec()), grpc.MaxCallRecvMsgSize(MaxFrame), grpc.MaxCallSendMsgSize(MaxFrame))
	if err != nil {
		p.cancel()
		return nil, err
	}
	return p, nil
}

// OpenRawLines is [OpenRaw] over a plugin's standard output and input, which CloseSend and Close close.
func OpenRawLines(stdout, stdin net.Conn) *RawPeer {
	return &RawPeer{lines: newLines(stdout.Read, MaxFrame), in: stdout, out: stdin, cancel: func() {}}
}

// laterBody and laterField are fields that no message of this version has.
const (
	laterBody  body = 1999
	laterField body = 2000
)

// Send writes a frame with the body m: a RawHello, *phases.Configuration, *phases.Dispatch, *phases.ToolCall, a RawWord, or a
// *phases.Error in a host_reply. With later, frame and body hold a field of a later version. It returns the frame as JSON.
func (p *RawPeer) Send(id, incarnation uint64, m any, later bool) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	frame, line, err := p.encode(id, incarnation, m, later)
	if err != nil {
		return "", err
	}
	if word, ok := m.(RawWord); ok && wordBody(word) == laterBody {
		line = append(line[:len(line)-1], fmt.Sprintf(`,%q:{}}`, word)...)
	}
	if later {
		line = withLater(line)
	}
	if p.stream != nil {
		return string(line), p.stream.SendMsg(&outgoing{buffer: mem.SliceBuffer(frame)})
	}
	_, err = p.out.Write(append(bytes.Clone(line), '\n'))
	return string(line), err
}

// Size returns the length of a frame with the body m, and with an id and an incarnation of one digit.
func (p *RawPeer) Size(m any) int {
	frame, line, _ := p.encode(1, 1, m, false) // 0 if m is not a body
	if p.stream != nil {
		return len(frame)
	}
	return len(line)
}

// withLater adds a field to a frame, and to its body.
func withLater(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("}}"))
	if line[len(line)-1] != '{' {
		line = append(line, ',')
	}
	return append(line, `"later_field":1},"later_field":1}`...)
}

func wordBody(word RawWord) body {
	switch word {
	case "cancel":
		return hostCancel
	case "ping":
		return hostPing
	case "drain":
		return hostDrain
	default:
		return laterBody
	}
}

// encode returns a frame as bytes and as JSON.
func (p *RawPeer) encode(id, incarnation uint64, m any, later bool) (frame, line []byte, err error) {
	f := &form{writing: true}
	number(f, 1, &id)
	number(f, 2, &incarnation)
	switch m := m.(type) {
	case RawHello:
		transport := Transport
		if p.stream == nil {
			transport = TransportStdio
		}
		h := hello{
			version: ProtocolVersion, features: phases.Features(), frame: uint64(m.Frame), hostCalls: uint64(m.HostCalls), transport: transport, //nolint:gosec // positive
		}
		putLater(f, hostHello, &h, helloFields, later)
	case *phases.Configuration:
		putLater(f, hostConfigure, m, configureFields, later)
	case *phases.Dispatch:
		putLater(f, hostDispatch, m, dispatchFields, later)
	case *phases.ToolCall:
		putLater(f, hostCallTool, m, toolCallFields, later)
	case *phases.Error:
		putLater(f, hostHostReply, &hostReply{err: m}, hostReplyFields, later)
	case RawWord:
		putLater(f, wordBody(m), &none{}, noFields, later)
	default:
		return nil, nil, fmt.Errorf("wire: %T is not a body", m)
	}
	if later {
		f.putNumber(laterField, 1)
	}
	if err := f.problem(); err != nil {
		return nil, nil, err
	}
	line, err = frameForms().host.appendJSON(nil, f.out)
	return f.out, line, err
}

func putLater[T any](f *form, b body, m *T, fields func(*form, *T), later bool) {
	put(f, b, m, func(f *form, m *T) {
		if fields(f, m); later {
			f.putNumber(laterField, 1)
		}
	})
}

// Recv waits for the plugin's next frame. It returns the stream's error, io.EOF if the plugin has ended the session.
func (p *RawPeer) Recv() (RawFrame, error) {
	in := incoming{}
	if p.stream != nil {
		if err := p.stream.RecvMsg(&in); err != nil {
			return RawFrame{}, err
		}
		return readRaw(&in), nil
	}
	line, _, err := p.lines.next()
	if err != nil {
		return RawFrame{}, err
	}
	in = incoming{data: bytes.Clone(line), owned: true, line: true}
	return readRaw(&in), nil
}

// CloseSend ends the host's half of the session.
func (p *RawPeer) CloseSend() error {
	if p.stream != nil {
		return p.stream.CloseSend()
	}
	return p.out.Close()
}

// Close ends the session.
func (p *RawPeer) Close() {
	p.cancel()
	if p.in != nil {
		_ = errors.Join(p.in.Close(), p.out.Close()) // or they were closed before
	}
}

// rawShown bounds RawFrame.Text.
const rawShown = 2000

func readRaw(in *incoming) RawFrame {
	data := in.data
	if in.buffer != nil {
		data = in.buffer.ReadOnlyData()
	}
	text := string(data[:min(len(data), rawShown)])
	if in.buffer != nil {
		if line, err := frameForms().plugin.appendJSON(nil, data); err == nil {
			text = string(line[:min(len(line), rawShown)])
		}
	}
	r := RawFrame{Size: len(data), Text: strings.ToValidUTF8(text, replacement)}
	err := in.parse(pluginUnsupported, frameForms().plugin)
	_, r.Noise = errors.AsType[*notFrame](err)
	r.ID, r.Incarnation, r.Invalid = in.id, in.incarnation, err
	if err == nil {
		r.readBody(in)
	}
	in.free()
	return r
}

func (r *RawFrame) readBody(in *incoming) {
	if in.body != 0 {
		r.Body = frameForms().plugin.byNumber[in.body].name
	}
	p := &frames{}
	switch in.body {
	case pluginDescribe:
		m := decodeRaw(r, p, in, describeFields)
		r.Description, r.Err = m.description, m.err
	case pluginConfigured:
		m := decodeRaw(r, p, in, configuredFields)
		r.Description, r.Rejected, r.Err = m.description, m.rejected, m.err
	case pluginResult:
		m := decodeRaw(r, p, in, resultFields)
		m.reportUnknown()
		r.Result, r.Err = &m.Result, m.err
	case pluginToolResult:
		r.Err = decodeRaw(r, p, in, toolResultFields).err
	case pluginHostCall:
		decodeRaw(r, p, in, hostCallFields)
	case pluginInvalidate:
		decodeRaw(r, p, in, invalidateFields)
	case pluginUnsupported:
		decodeRaw(r, p, in, unsupportedFields)
	default: // a body without fields, or none that this version knows
	}
}

func decodeRaw[T any](r *RawFrame, p *frames, in *incoming, fields func(*form, *T)) *T {
	m := new(T)
	r.Invalid = decode(p, in, ruleClean, m, fields)
	return m
}
