package conformance_test

import (
	"bufio"
	"bytes"
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

	"go.uber.org/goleak"
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

// badBytes stands in messages for bytes that are not UTF-8.
var badBytes = strings.NewReplacer("BAD-BYTES", "\xff\xfe-bytes")

func servePlugin(mode string) error {
	if mode == "stays after the end" {
		defer func() { <-time.After(time.Minute) }()
	}
	p := &plugin{mode: mode, in: bufio.NewReaderSize(os.Stdin, 1<<20)}
	if mode == "ignores SIGTERM" {
		signal.Ignore(syscall.SIGTERM)
	}
	for {
		f, err := p.receive()
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
		if err := p.answer(&pluginpb.PluginFrame{Id: f.GetId(), Incarnation: f.GetIncarnation()}, f.GetBody()); err != nil {
			return err
		}
	}
}

// plugin keeps the contract but for what its mode says.
type plugin struct {
	in         *bufio.Reader
	mode       string
	limit      int
	configured int
}

// receive returns io.EOF at the end.
func (p *plugin) receive() (*pluginpb.HostFrame, error) {
	line, err := p.in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	if p.mode == "strict fields" && bytes.Contains(line, []byte("later_field")) {
		return nil, errFault
	}
	data, err := wire.HostFrameOf(bytes.TrimSuffix(line, []byte("\n")))
	if err != nil {
		return nil, err
	}
	var f pluginpb.HostFrame
	return &f, proto.Unmarshal(data, &f)
}

func (p *plugin) send(f *pluginpb.PluginFrame) error {
	data, err := lineOf(f)
	if err == nil {
		_, err = os.Stdout.WriteString(badBytes.Replace(string(data)) + "\n")
	}
	return err
}

// lineOf is a frame as a line of this binding.
func lineOf(f *pluginpb.PluginFrame) ([]byte, error) {
	data, err := proto.Marshal(f)
	if err != nil {
		return nil, err
	}
	return wire.PluginLineOf(data)
}

var errFault = errors.New("the fault of this mode")

// leaked are open files that nobody closes, not even the garbage collector.
var leaked sync.Map

func (p *plugin) answer(f *pluginpb.PluginFrame, body any) error {
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
		stray := p.mode == "dies of a stray reply"
		if refused := "dies of " + body.HostReply.GetError().GetCode(); stray || p.mode == refused {
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
	case p.mode == "configured once" && p.configured > 1, p.mode == "a wrong configuration without an answer" && wrong:
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
	case "dies of a wrong configuration", "a wrong configuration without an answer":
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
	case "echo without measuring":
		decision.Reason = fmt.Sprintf("no: %q", arguments)
	case "one byte too many":
		for size := 0; len(arguments) > 1<<20 && size != p.limit+1; size = lineSize(f) {
			decision.Reason += strings.Repeat("o", p.limit+1-lineSize(f))
		}
	case "measures":
		if decision.Reason = strings.Repeat("n", 2*len(arguments)); lineSize(f) > p.limit {
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
	case "dies of forbidden", "dies of unavailable":
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

// lineSize is how many bytes a frame has.
func lineSize(f *pluginpb.PluginFrame) int {
	line, _ := lineOf(f)
	return len(line)
}
