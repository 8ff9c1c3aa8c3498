package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
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

	"github.com/grapnelhq/grapnel/runtime"
)

// The programs that BenchmarkPeers asks, by the argument of the test binary: a server of a bare socket, one of HTTP, and a
// hook that is started for each call.
const (
	rawArg  = "raw-peer"
	httpArg = "http-peer"
	hookArg = "hook-peer"
)

// peer is one way to ask another process for an echo. A round is so many calls: processes for each hook are slow.
type peer struct {
	name  string
	round int
	call  call
	times []float64 // µs a call, by round
}

// BenchmarkPeers prints the median time of each peer, and its ratio to a bare unary call, of rounds that take turns.
func BenchmarkPeers(b *testing.B) {
	text := payload(1 << 10)
	overGRPC := engineConfig(b, 1)
	overGRPC.Plugins[0].Args = []string{grpcMode}
	const python = "import json,sys; json.dump({'text': json.load(sys.stdin)['text']}, sys.stdout)"
	const node = "let s='';process.stdin.on('data',d=>s+=d).on('end',()=>process.stdout.write(JSON.stringify({text:JSON.parse(s).text})))"
	peers := []*peer{
		{name: "go-plugin, a bare unary call", round: batch, call: unary(startBare(b, 1)[0], text)},
		{name: "bare socket", round: batch, call: rawPeer(b, text)},
		{name: "Grapnel, a whole dispatch", round: batch, call: dispatch(startEngine(b, 1), text, 1)},
		{name: "Grapnel, over gRPC alone", round: batch, call: dispatch(start(b, overGRPC, runtime.Options{}), text, 1)},
		{name: "HTTP on loopback", round: batch, call: httpPeer(b, text)},
		{name: "a process for each hook, Go", round: 5, call: processPeer(text, os.Args[0], hookArg)},
		{name: "a process for each hook, Python", round: 2, call: processPeer(text, interpreter("python3", "-c", "import sys; print(sys.executable)"), "-c", python)},
		{name: "a process for each hook, Node", round: 2, call: processPeer(text, "node", "-e", node)},
	}
	peers = slices.DeleteFunc(peers, func(p *peer) bool {
		err := p.call()
		if err != nil && !errors.Is(err, exec.ErrNotFound) {
			b.Fatalf("%s: %v", p.name, err)
		}
		return err != nil
	})
	b.ResetTimer()
	for n := range max(b.N, 5) {
		for i := range peers {
			p := peers[(i+n)%len(peers)]
			begin := time.Now()
			spread(b, 1, p.round, p.call)
			p.times = append(p.times, float64(time.Since(begin).Nanoseconds())/1e3/float64(p.round))
		}
	}
	b.ReportMetric(0, "ns/op")
	fmt.Printf("| way | µs | × a bare unary call |\n|---|---|---|\n")
	for _, p := range peers {
		ratios := make([]float64, len(p.times))
		for i := range ratios {
			ratios[i] = p.times[i] / peers[0].times[i]
		}
		fmt.Printf("| %s | %.0f | %.2f |\n", p.name, median(p.times), median(ratios))
	}
}

// interpreter is the program itself, past what may wrap it.
func interpreter(name string, args ...string) string {
	path, err := exec.Command(name, args...).Output() //nolint:noctx // a benchmark's
	if err != nil {
		return name // which the first call misses
	}
	return strings.TrimSpace(string(path))
}

// spawn starts a program that prints where it listens.
func spawn(b *testing.B, name string) (address string) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0], name, filepath.Join(b.TempDir(), "s"))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// runPeer is the life of a program that BenchmarkPeers asks.
func runPeer() error {
	if os.Args[1] == hookArg {
		return serveHook()
	}
	return servePeer(os.Args[1], os.Args[2])
}

// servePeer is that of one which listens.
func servePeer(name, socket string) error {
	network, address := "tcp", "127.0.0.1:0"
	if name == rawArg {
		network, address = "unix", socket
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), network, address)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the benchmark has ended
		os.Exit(0)
	}()
	fmt.Println(l.Addr())
	if name == rawArg {
		return serveRaw(l)
	}
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body) // the benchmark compares the answer
		_, _ = w.Write(data)
	}))
}

// serveRaw sends back what it gets, behind its length.
func serveRaw(l net.Listener) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	for {
		data, err := readRaw(in)
		if err != nil {
			return err
		}
		if err := writeRaw(conn, data); err != nil {
			return err
		}
	}
}

func readRaw(in io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	data := make([]byte, binary.LittleEndian.Uint32(head[:]))
	_, err := io.ReadFull(in, data)
	return data, err
}

func writeRaw(out io.Writer, data []byte) error {
	_, err := out.Write(append(binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(data)), uint32(len(data))), data...))
	return err
}

func rawPeer(b *testing.B, text string) call {
	b.Helper()
	conn, err := (&net.Dialer{}).DialContext(b.Context(), "unix", spawn(b, rawArg))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	in := bufio.NewReader(conn)
	return func() error {
		if err := writeRaw(conn, []byte(text)); err != nil {
			return err
		}
		data, err := readRaw(in)
		return echoed(text, string(data), err)
	}
}

func httpPeer(b *testing.B, text string) call {
	b.Helper()
	url := "http://" + spawn(b, httpArg)
	return func() error {
		res, err := http.Post(url, "text/plain", strings.NewReader(text)) //nolint:noctx // a benchmark's
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		data, err := io.ReadAll(res.Body)
		return echoed(text, string(data), err)
	}
}

// message is what a process for each hook reads and writes.
type message struct {
	Text string `json:"text"`
}

// serveHook is the life of such a process.
func serveHook() error {
	var m message
	if err := json.NewDecoder(os.Stdin).Decode(&m); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}

// processPeer starts a program for each call.
func processPeer(text, name string, args ...string) call {
	return func() error {
		in, err := json.Marshal(message{text})
		if err != nil {
			return err
		}
		cmd := exec.Command(name, args...) //nolint:noctx // a benchmark's
		cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
		data, err := cmd.Output()
		if err != nil {
			return err
		}
		var m message
		err = json.Unmarshal(data, &m)
		return echoed(text, m.Text, err)
	}
}

// echoed wants an answer to be the text.
func echoed(want, got string, err error) error {
	if err == nil && got != want {
		err = fmt.Errorf("got %d bytes, want %d", len(got), len(want))
	}
	return err
}
