package mcpclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Config says how a server is reached: by Command or by URL.
type Config struct {
	Name string
	// Command is a program and its arguments; Env is added to this process's environment.
	Command []string
	Env     map[string]string
	// URL is an endpoint of Streamable HTTP; Headers go to it and to no other place.
	URL     string
	Headers map[string]string
	// Granted says whether a tool may be listed, by the server's own name of it.
	Granted func(tool string) bool
	// Timeout bounds one call.
	Timeout time.Duration
	// MaxResult bounds the text of one result, in bytes.
	MaxResult int
}

// Bounds of time.
const (
	connectTime = 20 * time.Second
	listTime    = 20 * time.Second
	firstPause  = time.Second
	mostPause   = time.Minute
	steadyTime  = time.Minute // a server that lived so long starts over with the pauses
	relistPause = time.Second // the least time between two lists
	closeTime   = time.Second // between the end of a program's input and its own
)

// legacyVersion begins with the handshake that all servers know. It is tried after a server has not answered the newer one.
const legacyVersion = "2025-11-25"

// Server is one server that is kept connected. Its methods may be called concurrently.
type Server struct {
	cfg     Config
	changed func()
	cancel  context.CancelFunc
	done    chan struct{}
	first   chan struct{} // closed when the first attempt has ended

	mu      sync.Mutex
	session *mcp.ClientSession
	way     *way // of the session
	listing *Listing
}

// Start connects in the background. changed is called, from another goroutine, whenever Listing is another one.
func Start(cfg Config, changed func()) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		cfg: cfg, changed: changed, cancel: cancel, done: make(chan struct{}), first: make(chan struct{}),
		listing: &Listing{Problems: []Problem{{CodeStarting, "it has not answered yet, and its tools come once it has; try again in some seconds"}}},
	}
	go s.keep(ctx)
	return s
}

// Listing is what the server offers now. It must not be changed. Each change is another pointer.
func (s *Server) Listing() *Listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listing
}

// Ready waits until the first attempt to connect has ended, or ctx.
func (s *Server) Ready(ctx context.Context) {
	select {
	case <-s.first:
	case <-ctx.Done():
	}
}

// Stop begins to end the connection; Close waits for it.
func (s *Server) Stop() { s.cancel() }

// Close ends the connection, and the program. It waits for that until ctx ends.
func (s *Server) Close(ctx context.Context) error {
	s.cancel()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the server %s has not ended: %w", s.cfg.Name, context.Cause(ctx))
	}
}

// keep connects again and again, until ctx ends.
func (s *Server) keep(ctx context.Context) {
	defer close(s.done)
	first := sync.OnceFunc(func() { close(s.first) })
	defer first()
	version, pause := "", firstPause
	for {
		began := time.Now()
		err := s.live(ctx, version, first)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, context.DeadlineExceeded) && version == "" {
			version = legacyVersion
		} else {
			version = ""
		}
		if time.Since(began) > steadyTime {
			pause = firstPause
		}
		s.put(nil, nil, &Listing{Problems: []Problem{{CodeDown, fmt.Sprintf("%v; the next attempt is in %v", err, pause)}}})
		first()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, mostPause)
	}
}

// live is one connection, from its beginning to its end, which the error explains.
func (s *Server) live(ctx context.Context, version string, listed func()) error {
	way, err := open(&s.cfg)
	if err != nil {
		return err
	}
	defer way.end()
	relist := make(chan struct{}, 1)
	client := mcp.NewClient(&mcp.Implementation{Name: "grapnel", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{}, // it is asked for nothing: no roots, no models, no people
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			select {
			case relist <- struct{}{}:
			default:
			}
		},
	})
	connecting, cancel := context.WithTimeoutCause(ctx, connectTime, fmt.Errorf("it has not answered within %v: %w", connectTime, context.DeadlineExceeded))
	defer cancel()
	session, err := client.Connect(connecting, way.transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return way.explain(connecting, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	defer func() {
		way.end()
		_ = session.Close() // the program is gone
		<-ended             //nolint:errcheck // and the rest is only told
	}()
	for {
		if err := s.list(ctx, session, way); err != nil {
			return err
		}
		listed()
		pause := time.NewTimer(relistPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case err := <-ended:
			pause.Stop()
			ended <- err
			return way.explain(ctx, cmp.Or(err, errClosed))
		case <-relist:
		}
		<-pause.C
	}
}

var errClosed = errors.New("it has closed the connection")

// list takes over what the server offers.
func (s *Server) list(ctx context.Context, session *mcp.ClientSession, way *way) error {
	ctx, cancel := context.WithTimeoutCause(ctx, listTime, fmt.Errorf("it has not listed its tools within %v", listTime))
	defer cancel()
	l, err := listTools(ctx, session, s.cfg.Granted)
	if err != nil {
		return way.explain(ctx, err)
	}
	if noise := way.noise(); noise != "" {
		l.Problems = append(l.Problems, Problem{CodeNoise, noise})
	}
	if hello := session.InitializeResult(); hello != nil {
		l.Instructions = hello.Instructions
	}
	s.put(session, way, l)
	return nil
}

func (s *Server) put(session *mcp.ClientSession, way *way, l *Listing) {
	s.mu.Lock()
	s.session, s.way, s.listing = session, way, l
	s.mu.Unlock()
	s.changed()
}

// Result is the answer of a tool.
type Result struct {
	Text     string
	IsError  bool
	Problems []Problem // what of the answer could not be read, and what came beside it
}

// ErrDown says that a call was not made, because the server is not there.
var ErrDown = errors.New("the server is not there")

// Call calls a tool by the server's own name of it. An error is for the model, too: the server is not there, has ended in
// the call, has not answered in time, or answered with an error of the protocol.
func (s *Server) Call(ctx context.Context, tool string, arguments json.RawMessage) (Result, error) {
	s.mu.Lock()
	session, way, l := s.session, s.way, s.listing
	s.mu.Unlock()
	if session == nil {
		return Result{}, fmt.Errorf("%w: %s", ErrDown, l.Problems[0].Message)
	}
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	before := way.noise()
	calling, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	res, err := session.CallTool(calling, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	switch {
	case ctx.Err() != nil:
		return Result{}, context.Cause(ctx)
	case calling.Err() != nil:
		return Result{}, fmt.Errorf("it has not answered within %v", s.cfg.Timeout)
	case err != nil && unsent(err):
		return Result{}, fmt.Errorf("%w: the connection was closed before the call, which was not sent", ErrDown)
	case err != nil:
		if _, answered := errors.AsType[*jsonrpc.Error](err); answered {
			return Result{}, err
		}
		if !broken(err) {
			return Result{}, errors.New("its answer is none of the protocol, and the call may have had an effect")
		}
		return Result{}, fmt.Errorf("it ended during the call, which may have had an effect (%w)", way.explain(ctx, err))
	}
	out := resultOf(res, s.cfg.MaxResult)
	if noise := way.noise(); noise != before {
		out.Problems = append(out.Problems, Problem{CodeNoise, noise})
	}
	return out, nil
}

// unsent reports whether a call failed before a server could get it.
func unsent(err error) bool {
	if way, ok := errors.AsType[*net.OpError](err); ok && way.Op == "dial" {
		return true
	}
	if pipe, ok := errors.AsType[*fs.PathError](err); ok && pipe.Op == "write" { // to a program's input
		return true
	}
	return errors.Is(err, mcp.ErrConnectionClosed) && strings.Contains(err.Error(), "is closing") // the SDK's own, not a server's error of that code
}
