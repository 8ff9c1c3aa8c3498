package peers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/ttrpc"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asProgram {
		if err := program(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// peer is one way to ask another process for an echo. A round is so many calls: processes for each hook are slow.
type peer struct {
	name  string
	round int
	call  func(text string) (string, error)
	times []float64 // µs a call, by round
}

// BenchmarkPeers prints the median time of each peer, and its ratio to a bare unary call, of rounds that take turns.
func BenchmarkPeers(b *testing.B) {
	text := strings.Repeat("0123456789abcdef", 64) // 1 KiB
	peers := []*peer{
		{name: "bare socket", round: 200, call: rawPeer(b)},
		{name: "Grapnel, a whole dispatch", round: 200, call: grapnelPeer(b, "lane")},
		{name: "Grapnel, over gRPC alone", round: 200, call: grapnelPeer(b, "grpc")},
		{name: "ttrpc", round: 200, call: ttrpcPeer(b)},
		{name: "go-plugin, a bare unary call", round: 200, call: unaryPeer(b)},
		{name: "HTTP on loopback", round: 200, call: httpPeer(b)},
		{name: "a process for each hook, Go", round: 5, call: processPeer(self(b), asProgram, "hook")},
		{name: "a process for each hook, Python", round: 2, call: processPeer(python(), "-c", "import json,sys; json.dump({'text': json.load(sys.stdin)['text']}, sys.stdout)")},
		{name: "a process for each hook, Node", round: 2, call: processPeer("node", "-e", "let s='';process.stdin.on('data',d=>s+=d).on('end',()=>process.stdout.write(JSON.stringify({text:JSON.parse(s).text})))")},
	}
	peers = slices.DeleteFunc(peers, func(p *peer) bool {
		got, err := p.call(text)
		if errors.Is(err, exec.ErrNotFound) {
			b.Logf("left out: %s: %v", p.name, err)
			return true
		}
		if err != nil || got != text {
			b.Fatalf("%s: %d bytes: %v", p.name, len(got), err)
		}
		return false
	})
	b.ResetTimer()
	for n := range max(b.N, 5) {
		for i := range peers {
			p := peers[(i+n)%len(peers)]
			begin := time.Now()
			for range p.round {
				if _, err := p.call(text); err != nil {
					b.Fatalf("%s: %v", p.name, err)
				}
			}
			p.times = append(p.times, float64(time.Since(begin).Nanoseconds())/1e3/float64(p.round))
		}
	}
	b.ReportMetric(0, "ns/op")
	report(b, peers)
}

func report(b *testing.B, peers []*peer) {
	b.Helper()
	base := slices.IndexFunc(peers, func(p *peer) bool { return strings.HasPrefix(p.name, "go-plugin") })
	ratio := func(p *peer) float64 {
		ratios := make([]float64, len(p.times))
		for i := range ratios {
			ratios[i] = p.times[i] / peers[base].times[i]
		}
		return median(ratios)
	}
	fmt.Printf("| way | µs | × a bare unary call |\n|---|---|---|\n")
	for _, p := range peers {
		fmt.Printf("| %s | %.0f | %.2f |\n", p.name, median(p.times), ratio(p))
	}
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

func self(b *testing.B) string {
	b.Helper()
	path, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	return path
}

// spawn starts a program that prints where it listens.
func spawn(b *testing.B, name string) (address string) {
	b.Helper()
	dir, err := os.MkdirTemp("", "p") //nolint:usetesting // the names of benchmarks are too long for a socket's path
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	cmd := exec.CommandContext(b.Context(), self(b), asProgram, name, filepath.Join(dir, "s"))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func dial(b *testing.B, name string) net.Conn {
	b.Helper()
	conn, err := (&net.Dialer{}).DialContext(b.Context(), "unix", spawn(b, name))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return conn
}

func rawPeer(b *testing.B) func(string) (string, error) {
	conn := dial(b, "raw")
	in := bufio.NewReader(conn)
	return func(text string) (string, error) {
		if err := writeRaw(conn, []byte(text)); err != nil {
			return "", err
		}
		data, err := readRaw(in)
		return string(data), err
	}
}

func ttrpcPeer(b *testing.B) func(string) (string, error) {
	client := ttrpc.NewClient(dial(b, "ttrpc"))
	b.Cleanup(func() { _ = client.Close() })
	return func(text string) (string, error) {
		out := new(wrapperspb.StringValue)
		err := client.Call(context.Background(), "peers.Echo", "Call", wrapperspb.String(text), out)
		return out.GetValue(), err
	}
}

func httpPeer(b *testing.B) func(string) (string, error) {
	url := "http://" + spawn(b, "http")
	return func(text string) (string, error) {
		res, err := http.Post(url, "text/plain", strings.NewReader(text)) //nolint:noctx // a benchmark's
		if err != nil {
			return "", err
		}
		defer func() { _ = res.Body.Close() }()
		data, err := io.ReadAll(res.Body)
		return string(data), err
	}
}

func unaryPeer(b *testing.B) func(string) (string, error) {
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: handshake(), Plugins: plugin.PluginSet{"echo": &bare{}}, AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Cmd:    exec.Command(self(b), asProgram, "bare"), //nolint:noctx // go-plugin ends it
		Logger: hclog.New(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Off}),
	})
	b.Cleanup(client.Kill)
	protocol, err := client.Client()
	if err != nil {
		b.Fatal(err)
	}
	dispensed, err := protocol.Dispense("echo")
	if err != nil {
		b.Fatal(err)
	}
	conn := dispensed.(*grpc.ClientConn) //nolint:forcetypeassert // bare returns it
	return func(text string) (string, error) {
		out := new(wrapperspb.StringValue)
		err := conn.Invoke(context.Background(), "/peers.Echo/Call", wrapperspb.String(text), out)
		return out.GetValue(), err
	}
}

func grapnelPeer(b *testing.B, binding string) func(string) (string, error) {
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{
		Name: "echo", Command: self(b), Path: self(b), Args: []string{asProgram, binding}, UnsafePath: true,
		Grants: phases.Grants{Contribute: []string{"prompt_context"}, See: []string{"user_text"}},
	}}}
	eng, err := runtime.New(b.Context(), cfg, runtime.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := eng.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	turn := phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent}
	return func(text string) (string, error) {
		out, err := eng.Dispatch(context.Background(), turn, &phases.PrePromptContextInput{UserText: phases.T(text)})
		if err != nil {
			return "", err
		}
		if len(out.Merged.Contexts) != 1 {
			return "", fmt.Errorf("no context: %+v", out.Runs)
		}
		return out.Merged.Contexts[0].Content, nil
	}
}

// python is the interpreter itself, past what may wrap it.
func python() string {
	path, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output() //nolint:noctx // a benchmark's
	if err != nil {
		return "python3" // which the first call misses
	}
	return strings.TrimSpace(string(path))
}

// processPeer starts a program for each call.
func processPeer(name string, args ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		in, err := json.Marshal(message{text})
		if err != nil {
			return "", err
		}
		cmd := exec.Command(name, args...) //nolint:noctx // a benchmark's
		cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
		data, err := cmd.Output()
		if err != nil {
			return "", err
		}
		var m message
		err = json.Unmarshal(data, &m)
		return m.Text, err
	}
}
