package mcpclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/grapnelhq/grapnel/plugins/internal/procgroup"
	"github.com/grapnelhq/grapnel/sdk"
)

// Bounds of what a server sends.
const (
	maxMessage = 4 << 20
	maxNoise   = 16 << 20 // between two messages
	maxStderr  = 1 << 10
)

// lastWords is how long the output of a program that has ended is read.
const lastWords = time.Second

// way is how the bytes of one connection go.
type way struct {
	transport mcp.Transport
	program   *program // nil for a URL
}

func open(cfg *Config) (*way, error) {
	if len(cfg.Command) == 0 {
		client := &http.Client{
			Transport:     &boundedHTTP{headers: cfg.Headers},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the headers are for this server
		}
		return &way{transport: &mcp.StreamableClientTransport{Endpoint: cfg.URL, HTTPClient: client, MaxRetries: -1, MaxEventSize: maxMessage}}, nil
	}
	p, err := startProgram(cfg)
	if err != nil {
		return nil, err
	}
	return &way{transport: &mcp.IOTransport{Reader: p.out, Writer: p.in, MaxLineLength: maxMessage + 1}, program: p}, nil
}

// end ends the program, and all that it has started in its process group. It may be called again.
func (w *way) end() {
	if w.program != nil {
		w.program.end()
	}
}

func (w *way) noise() string {
	if w.program == nil || w.program.out.noise.Load() == 0 {
		return ""
	}
	return fmt.Sprintf("it writes to its standard output what is not a message (%d bytes are skipped); servers write such lines to standard error", w.program.out.noise.Load())
}

// explain says why a connection has ended: the program's own end is a better reason than that of its output, but a refusal,
// after which the SDK ends it, a better one than either.
func (w *way) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if w.program == nil {
		return err
	}
	if failed := w.program.out.failed(); failed != nil {
		return failed
	}
	if !broken(err) {
		return err
	}
	return w.program.explain(err)
}

// broken reports whether an error is of the connection, not of what came over it.
func broken(err error) bool {
	_, network := errors.AsType[net.Error](err)
	_, pipe := errors.AsType[*fs.PathError](err)
	return network || pipe || errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, errClosed)
}

// program is a server that runs as a child of this process, in a process group of its own.
type program struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *messages
	stderr tail
	once   sync.Once
	forced atomic.Bool // it did not end by itself
	exited chan struct{}
	err    error // how it ended, once exited is closed
}

func startProgram(cfg *Config) (*program, error) {
	p := &program{exited: make(chan struct{})}
	p.cmd = exec.Command(cfg.Command[0], cfg.Command[1:]...) //nolint:gosec,noctx // the operator named it; end ends it
	p.cmd.Env = os.Environ()
	for name, value := range cfg.Env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stderr, p.cmd.WaitDelay = &p.stderr, time.Second
	procgroup.Own(p.cmd)
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Not StdoutPipe, which Wait closes: the last answer of a program that ends would be lost.
	out, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout = write
	err = p.cmd.Start()
	_ = write.Close() // the program has its own
	if err != nil {
		_ = out.Close() // nobody reads it
		return nil, fmt.Errorf("it cannot be started: %w (the plugin's PATH and grants count: env, read)", err)
	}
	p.in, p.out = in, &messages{from: bufio.NewReaderSize(out, 64<<10), closer: out, end: '\n'}
	p.out.take = p.out.output
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
		_ = out.SetReadDeadline(time.Now().Add(lastWords)) // others may hold the other end; not every system has deadlines
	}()
	return p, nil
}

// end closes the input, which asks a server to end, and kills the group of one that does not.
func (p *program) end() {
	p.once.Do(func() {
		_ = p.in.Close() // it may have ended
		select {
		case <-p.exited:
		case <-time.After(closeTime):
			p.forced.Store(true)
		}
		_ = procgroup.Kill(p.cmd) // also what it has left behind, if there is something
		<-p.exited
		_ = p.out.Close() // the session may have closed it
	})
}

func (p *program) explain(err error) error {
	select {
	case <-p.exited:
	case <-time.After(2 * lastWords): // its output may end a moment before it
		return err
	}
	if p.forced.Load() {
		return err
	}
	how := "with exit code 0"
	if p.err != nil {
		how = "with " + p.err.Error()
	}
	words, _ := sdk.CutLine(p.stderr.String(), 300)
	if words != "" {
		words = ": " + words
	}
	return fmt.Errorf("it has ended %s%s", how, words)
}

// tail keeps the end of what is written.
type tail struct {
	mu  sync.Mutex
	end []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, p[max(0, len(p)-maxStderr):]...)
	t.end = slices.Clone(t.end[max(0, len(t.end)-maxStderr):])
	return len(p), nil
}

// String returns what is kept, from the beginning of a line if there is one.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(sdk.CleanText(string(t.end)))
}

var errTooLong = fmt.Errorf("it sent a message of more than %d MiB", maxMessage>>20)

// messages passes on what take makes ready of each line that it reads, and counts the bytes of what is skipped.
type messages struct {
	from   *bufio.Reader
	closer io.Closer
	end    byte // of a line
	take   func(line []byte)
	ready  []byte
	noise  atomic.Int64
	since  int // bytes of noise since the last message
	fault  atomic.Pointer[error]
}

func (m *messages) Read(p []byte) (int, error) {
	for len(m.ready) == 0 {
		line, err := m.line()
		if err != nil {
			return 0, err
		}
		m.take(line)
		if m.since > maxNoise {
			return 0, m.fail(fmt.Errorf("it wrote more than %d MiB that is not a message to its standard output", maxNoise>>20))
		}
	}
	n := copy(p, m.ready)
	m.ready = m.ready[n:]
	return n, nil
}

// output takes a line of a program's output, and makes its messages ready: one, a batch, or an answer after text without a
// line end.
func (m *messages) output(line []byte) {
	text, from := bytes.TrimSpace(line), 0
	var list []json.RawMessage
	if json.Unmarshal(text, &list) != nil {
		if !json.Valid(text) {
			from = max(0, bytes.Index(text, []byte(`{"jsonrpc"`)))
		}
		var raw json.RawMessage
		for d := json.NewDecoder(bytes.NewReader(text[from:])); d.Decode(&raw) == nil; raw = nil {
			list = append(list, raw)
		}
	}
	kept := 0
	for _, raw := range list {
		message, err := jsonrpc.DecodeMessage(raw)
		_, answer := message.(*jsonrpc.Response)
		if err == nil && (answer || from == 0) { // a log may quote a request
			m.ready = append(append(m.ready, legible(raw)...), '\n')
			kept += len(raw)
		}
	}
	if kept > 0 {
		m.since = 0
	}
	if kept == 0 || len(line)-kept > len(list)+2 { // brackets and commas
		m.skip(len(line) - kept)
	}
}

func (m *messages) skip(n int) {
	m.since += n
	m.noise.Add(int64(n))
}

// line reads one line, with its end. One that is too long for a message is skipped, unless it looks like one.
func (m *messages) line() ([]byte, error) {
	var line []byte
	for {
		part, err := m.from.ReadSlice(m.end)
		line = append(line, part...)
		if len(line) > maxMessage {
			if bytes.Contains(line, []byte(`"jsonrpc"`)) || m.since > maxNoise {
				return nil, m.fail(errTooLong)
			}
			m.skip(len(line))
			line = line[:0]
		}
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (m *messages) fail(err error) error {
	m.fault.Store(&err)
	return err
}

func (m *messages) failed() error {
	if err := m.fault.Load(); err != nil {
		return *err
	}
	return nil
}

func (m *messages) Close() error { return m.closer.Close() }

// boundedHTTP adds headers to requests, and bounds answers that are no streams.
type boundedHTTP struct{ headers map[string]string }

func (b *boundedHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range b.headers {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body := &messages{closer: resp.Body, from: bufio.NewReaderSize(resp.Body, 64<<10), end: '\n'}
	body.take = func(line []byte) {
		data := bytes.TrimPrefix(line, []byte("data:"))
		body.ready = append(append(body.ready, line[:len(line)-len(data)]...), legible(data)...)
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		body.end = 0 // one message of several lines
	}
	resp.Body = body
	return resp, nil
}
