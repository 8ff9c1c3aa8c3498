package conformance_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
)

func TestMain(m *testing.M) {
	if os.Getenv(wire.HandshakeCookieKey) == wire.HandshakeCookieValue {
		if err := servePlugin(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 2 && !strings.HasPrefix(os.Args[1], "-") { // a mode, without the cookie
		startedByPerson(os.Args[1])
	}
	flag.Parse()
	sdk, err := filepath.Abs(filepath.Join("..", "..", "sdks", "python", "src"))
	for name, value := range map[string]string{"PYTHONPATH": sdk, "PYTHONDONTWRITEBYTECODE": "1"} {
		err = errors.Join(err, os.Setenv(name, value))
	}
	// These tests wait for processes and deadlines.
	if err := errors.Join(err, flag.Set("test.parallel", "8")); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func startedByPerson(mode string) {
	switch mode {
	case "ignores the cookie":
		<-time.After(time.Minute) // as a server that waits for its host
	case "silent without the cookie":
		os.Exit(1)
	case "no failure without the cookie":
		fmt.Fprintln(os.Stderr, "this is a plugin")
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, "this is a plugin")
	os.Exit(1)
}

// speaker is one session of the test's plugin, over either binding.
type speaker interface {
	// receive returns io.EOF at the end.
	receive() (id, incarnation uint64, body any, err error)
	send(f *pluginpb.PluginFrame) error
}

// badBytes stands in messages for bytes that are not UTF-8.
var badBytes = strings.NewReplacer("BAD-BYTES", "\xff\xfe-bytes")

func servePlugin(mode string) error {
	if mode == "no kit" {
		return errors.New("ModuleNotFoundError: No module named 'kit'")
	}
	if mode == "stays after the end" {
		defer func() { <-time.After(time.Minute) }()
	}
	if os.Getenv(wire.TransportKey) == wire.TransportStdio {
		return answerAll(mode, &lineSpeaker{bufio.NewReaderSize(os.Stdin, 1<<20), mode == "strict fields"})
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: wire.ProtocolVersion, MagicCookieKey: wire.HandshakeCookieKey, MagicCookieValue: wire.HandshakeCookieValue,
		},
		Plugins: goplugin.PluginSet{wire.PluginName: streamServer{mode: mode}},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(wire.MaxFrame))...)
		},
		Logger: hclog.NewNullLogger(),
	})
	return nil
}

// streamServer answers sessions over gRPC.
type streamServer struct {
	goplugin.NetRPCUnsupportedPlugin
	pluginpb.UnimplementedPluginServer

	mode string
}

func (s streamServer) GRPCServer(_ *goplugin.GRPCBroker, server *grpc.Server) error {
	pluginpb.RegisterPluginServer(server, s)
	return nil
}

func (streamServer) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.ErrUnsupported
}

// Session implements pluginpb.PluginServer.
func (s streamServer) Session(stream grpc.BidiStreamingServer[pluginpb.HostFrame, pluginpb.PluginFrame]) error {
	return answerAll(s.mode, streamSpeaker{stream})
}

type streamSpeaker struct {
	grpc.BidiStreamingServer[pluginpb.HostFrame, pluginpb.PluginFrame]
}

func (s streamSpeaker) receive() (id, incarnation uint64, body any, err error) {
	f, err := s.Recv()
	if err != nil {
		return 0, 0, nil, io.EOF
	}
	return f.GetId(), f.GetIncarnation(), f.GetBody(), nil
}

func (s streamSpeaker) send(f *pluginpb.PluginFrame) error { return s.Send(f) }

type lineSpeaker struct {
	in     *bufio.Reader
	strict bool // refuses unknown fields
}

func (s *lineSpeaker) receive() (id, incarnation uint64, body any, err error) {
	line, err := s.in.ReadBytes('\n')
	if err != nil {
		return 0, 0, nil, err
	}
	if s.strict && bytes.Contains(line, []byte("later_field")) {
		return 0, 0, nil, errFault
	}
	data, err := wire.HostFrameOf(bytes.TrimSuffix(line, []byte("\n")))
	if err != nil {
		return 0, 0, nil, err
	}
	var f pluginpb.HostFrame
	err = proto.Unmarshal(data, &f)
	return f.GetId(), f.GetIncarnation(), f.GetBody(), err
}

func (s *lineSpeaker) send(f *pluginpb.PluginFrame) error {
	data, err := proto.Marshal(f)
	if err != nil {
		return err
	}
	line, err := wire.PluginLineOf(data)
	if err == nil {
		_, err = os.Stdout.WriteString(badBytes.Replace(string(line)) + "\n")
	}
	return err
}

// answerAll is a plugin that keeps the contract but for what its mode says.
func answerAll(mode string, s speaker) error {
	p := &plugin{mode: mode, speaker: s}
	if mode == "ignores SIGTERM" {
		signal.Ignore(syscall.SIGTERM)
	}
	for {
		id, incarnation, body, err := s.receive()
		switch {
		case errors.Is(err, io.EOF) && mode == "fails at the end":
			return errors.New("the end of standard input")
		case errors.Is(err, io.EOF) && mode == "trace at the end":
			fmt.Fprintln(os.Stderr, "Traceback (most recent call last):")
			return nil
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := p.answer(&pluginpb.PluginFrame{Id: id, Incarnation: incarnation}, body); err != nil {
			return err
		}
	}
}

type plugin struct {
	speaker

	mode       string
	limit      int
	configured int
}

var errFault = errors.New("the fault of this mode")

// leaked are open files that nobody closes, not even the garbage collector.
var leaked sync.Map

func (p *plugin) answer(f *pluginpb.PluginFrame, body any) error {
	if p.mode == "strict fields" && bytes.Contains(fmt.Append(nil, body), []byte("2000:1")) {
		return errFault
	}
	switch body := body.(type) {
	case *pluginpb.HostFrame_Hello:
		p.limit = int(body.Hello.GetMaxFrameBytes())
		f.Body = &pluginpb.PluginFrame_Describe{Describe: &pluginpb.Describe{Description: p.description()}}
	case *pluginpb.HostFrame_Configure:
		return p.configure(f, body.Configure)
	case *pluginpb.HostFrame_Dispatch:
		return p.decide(f, body.Dispatch)
	case *pluginpb.HostFrame_CallTool:
		f.Body = &pluginpb.PluginFrame_ToolResult{ToolResult: &pluginpb.ToolResult{IsError: true}}
	case *pluginpb.HostFrame_Ping:
		if p.mode == "no pong" {
			return nil
		}
		f.Body = &pluginpb.PluginFrame_Pong{Pong: &pluginpb.Pong{}}
	case *pluginpb.HostFrame_Drain:
		if p.mode == "ignored drain" {
			return nil
		}
		f.Body = &pluginpb.PluginFrame_Pong{Pong: &pluginpb.Pong{}}
	case *pluginpb.HostFrame_Cancel:
		if p.mode != "late answer with another id" {
			return nil
		}
		f.Id += 1000
		f.Body = &pluginpb.PluginFrame_Result{Result: &pluginpb.Result{}}
	case *pluginpb.HostFrame_HostReply:
		if p.mode == "dies of a stray reply" || p.mode == "dies of "+body.HostReply.GetError().GetCode() {
			return errFault
		}
		return nil
	case *pluginpb.HostFrame_Unsupported:
		return nil
	default:
		switch p.mode {
		case "unknown body without an answer":
			return nil
		case "pong to an unknown body":
			f.Body = &pluginpb.PluginFrame_Pong{Pong: &pluginpb.Pong{}}
			return p.send(f)
		}
		f.Body = &pluginpb.PluginFrame_Unsupported{Unsupported: &pluginpb.Unsupported{}}
	}
	return p.send(f)
}

func (p *plugin) configure(f *pluginpb.PluginFrame, c *pluginpb.Configure) error {
	p.configured++
	wrong := bytes.Contains(c.GetConfigJson(), []byte("no_such_option"))
	answer := &pluginpb.Configured{Description: p.description()}
	switch {
	case p.mode == "configured once" && p.configured > 1:
		return nil
	case p.mode == "dies of a wrong configuration" && wrong:
		return errFault
	case p.mode == "refuses its configuration" || wrong:
		answer = &pluginpb.Configured{Rejected: &pluginpb.Rejection{Message: "no"}}
	}
	f.Body = &pluginpb.PluginFrame_Configured{Configured: answer}
	return p.send(f)
}

func (p *plugin) description() *pluginpb.Description {
	d := &pluginpb.Description{
		Name: "bad", Version: "1.0.0",
		Hooks: []*pluginpb.Hook{{Name: "guard", Phase: "tool.pre_call", Kinds: []string{"decision"}, Role: "validate", Needs: []string{"tool"}}},
		Tools: []*pluginpb.Tool{{Name: "t", Description: "does nothing", InputSchemaJson: []byte(`{"type":"object"}`)}},
	}
	switch p.mode {
	case "invalid tool schema":
		d.Tools[0].InputSchemaJson = []byte(`{"type":17}`)
	case "changing description":
		d.Doc = time.Now().Format(time.RFC3339Nano)
	case "no needs":
		d.Hooks[0].Needs = nil
	case "invalid configuration schema":
		d.ConfigSchemaJson = []byte(`{"type":17}`)
	case "dies of a wrong configuration":
		d.ConfigSchemaJson = []byte(`{"type":"object","additionalProperties":false}`)
	case "two hooks of one name":
		d.Hooks = append(d.Hooks, d.GetHooks()[0])
	case "random answers":
		d.Hooks[0].Cache = &pluginpb.Cache{TtlNs: 1e9}
	}
	return d
}

func (p *plugin) decide(f *pluginpb.PluginFrame, d *pluginpb.Dispatch) error {
	decision := &pluginpb.Decision{Verdict: "deny", Reason: "no"}
	f.Body = &pluginpb.PluginFrame_Result{Result: &pluginpb.Result{
		Contributions: []*pluginpb.Contribution{{Kind: &pluginpb.Contribution_Decision{Decision: decision}}},
	}}
	arguments := d.GetToolPreCall().GetArgumentsJson()
	times := 1
	switch p.mode {
	case "double answer":
		times = 2
	case "wrong incarnation":
		f.Incarnation++
	case "noise in mid-session":
		fmt.Println("debug: a call")
	case "oversize":
		decision.Reason = strings.Repeat("no ", 1000)
	case "one byte too many":
		for size := 0; len(arguments) > 1<<20 && size != p.limit+1; size = p.size(f) {
			decision.Reason += strings.Repeat("o", p.limit+1-p.size(f))
		}
	case "measures":
		if decision.Reason = strings.Repeat("n", 2*len(arguments)); p.size(f) > p.limit {
			f.Body = &pluginpb.PluginFrame_Result{Result: &pluginpb.Result{Error: &pluginpb.Error{Code: "oversize_reply"}}}
		}
	case "small buffer":
		if len(arguments) > 64<<10 {
			return errFault
		}
	case "late calls without an answer":
		if d.GetRemainingNs() < int64(time.Second) {
			return nil
		}
	case "unknown hooks without an answer":
		if d.GetHook() != "guard" {
			return nil
		}
	case "dies of forbidden":
		if err := p.send(&pluginpb.PluginFrame{Id: f.GetId(), Incarnation: f.GetIncarnation(), Body: &pluginpb.PluginFrame_HostCall{
			HostCall: &pluginpb.HostCall{Parent: f.GetId(), Service: "model", Method: "complete"},
		}}); err != nil {
			return err
		}
	case "invalid UTF-8":
		decision.Reason = "BAD-BYTES"
	case "blocked reader":
		<-time.After(45 * time.Millisecond) // 32 calls take longer than a pong may
	case "child left behind":
		if err := exec.Command("/bin/sleep", "60").Start(); err != nil { //nolint:noctx // it must outlive everything
			return err
		}
		p.mode = ""
	case "allows blindly":
		decision.Verdict = "allow"
	case "random answers":
		decision.Reason = time.Now().Format(time.RFC3339Nano)
	case "leaks descriptors":
		file, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		leaked.Store(file, nil)
	}
	for range times {
		if err := p.send(f); err != nil {
			return err
		}
	}
	return nil
}

// size is how many bytes a frame has in this binding.
func (p *plugin) size(f *pluginpb.PluginFrame) int {
	data, _ := proto.Marshal(f)
	if _, lines := p.speaker.(*lineSpeaker); lines {
		data, _ = wire.PluginLineOf(data)
	}
	return len(data)
}
