package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"
)

// Server answers calls of JSON-RPC 2.0.
//
// [New] starts nothing. [Server.Serve] listens until its context ends. [Server.SetTokens] may be called at any time. A
// stopped server answers with [CodeUnavailable] and cannot be started again.
type Server struct {
	methods       map[string]*Method
	names         []string // of the methods, sorted
	notifications []Notification
	hosts         []string
	origins       []string
	limits        Limits
	log           *slog.Logger
	opts          Options // without nil functions

	base   context.Context //nolint:containedctx // what calls over connections live under: the server starts them
	stop   context.CancelCauseFunc
	tokens atomic.Pointer[keyring]
	quota  *quota

	sessions sessions

	wg       sync.WaitGroup // readers, writers, handshakes
	inFlight sync.WaitGroup // messages

	mu       sync.Mutex
	draining bool
	conns    map[*Conn]struct{} // including handshakes
	posts    map[*post]struct{}
}

// New makes a server. Its error lists every invalid method, notification, host, origin and token.
func New(o Options) (*Server, error) {
	o = o.withDefaults()
	base, stop := context.WithCancelCause(context.Background())
	s := &Server{
		methods: make(map[string]*Method, len(o.Methods)),
		limits:  o.Limits, log: o.Logger, opts: o,
		base: base, stop: stop, conns: map[*Conn]struct{}{}, posts: map[*post]struct{}{},
		sessions: newSessions(),
	}
	for _, h := range o.Hosts {
		host, port := splitHost(h)
		if port != "" {
			host = net.JoinHostPort(host, port)
		}
		s.hosts = append(s.hosts, host)
	}
	for _, origin := range o.Origins {
		s.origins = append(s.origins, strings.ToLower(origin))
	}
	s.limits.foreign = map[string]string{}
	s.quota = newQuota(s.limits, s.log)
	problems := []error{CheckTokens(o.Tokens), checkAddresses(o)}
	for _, m := range o.Methods {
		problems = append(problems, s.addMethod(m, o))
	}
	for _, n := range o.Notifications {
		problems = append(problems, s.addNotification(n, o))
	}
	if err := errors.Join(problems...); err != nil {
		stop(ErrClosed)
		return nil, fmt.Errorf("rpc: %w", err)
	}
	s.tokens.Store(newKeyring(o.Tokens, nil, s.limits.Rate, s.quota))
	s.names = slices.Sorted(maps.Keys(s.methods))
	return s, nil
}

func (s *Server) addMethod(m Method, o Options) error {
	switch {
	case m.Name == "" || m.Call == nil:
		return fmt.Errorf("method %q has no name or no function", m.Name)
	case s.methods[m.Name] != nil:
		return fmt.Errorf("method %q: duplicate", m.Name)
	case m.in == nil || m.out == nil:
		return fmt.Errorf("method %q: there is no schema", m.Name)
	case m.Right != NoRight && !slices.Contains(Rights(), m.Right):
		return fmt.Errorf("method %q requires the unknown right %q", m.Name, m.Right)
	}
	var err error
	if m.params, err = o.Schema(m.in); err != nil {
		return fmt.Errorf("method %q: params: %w", m.Name, err)
	}
	if m.result, err = o.Schema(m.out); err != nil {
		return fmt.Errorf("method %q: result: %w", m.Name, err)
	}
	s.methods[m.Name] = &m
	if m.Foreign != "" {
		s.limits.foreign[m.Name] = m.Foreign
	}
	return nil
}

func (s *Server) addNotification(n Notification, o Options) error {
	if n.Name == "" || slices.ContainsFunc(s.notifications, func(other Notification) bool { return other.Name == n.Name }) {
		return fmt.Errorf("notification %q has no name, or is a duplicate", n.Name)
	}
	if n.in == nil {
		return fmt.Errorf("notification %q: there is no schema", n.Name)
	}
	var err error
	if n.params, err = o.Schema(n.in); err != nil {
		return fmt.Errorf("notification %q: params: %w", n.Name, err)
	}
	s.notifications = append(s.notifications, n)
	return nil
}

// Handler serves POST /rpc, GET /ws and a page's /session behind [Server.Guard].
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/rpc", s.servePost)
	mux.HandleFunc("/ws", s.serveWebSocket)
	mux.HandleFunc("/session", s.serveSession)
	return s.Guard(mux)
}

// TokenMay reports whether a token of that name exists and may work in a workspace.
func (s *Server) TokenMay(name, workspace string) bool {
	k := s.tokens.Load().named(name)
	return k != nil && k.token.Caller(nil).MayWorkspace(workspace)
}

// SetTokens replaces the tokens for calls that begin from now on. Connections of tokens that are gone or changed are
// closed: WebSockets with the status 1008, HTTP after the request in flight, whose remaining calls are refused.
// Contexts of their calls end. If a token is invalid, nothing changes.
func (s *Server) SetTokens(tokens []Token) error {
	if err := CheckTokens(tokens); err != nil {
		return fmt.Errorf("rpc: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ring := newKeyring(tokens, s.tokens.Load(), s.limits.Rate, s.quota)
	s.tokens.Store(ring)
	s.checkConnsLocked(ring)
	for p := range s.posts {
		if !ring.has(p.key) {
			p.cut(revoked())
		}
	}
	return nil
}

func revoked() *Error {
	return Errorf(CodeUnauthorized, "the token is no longer valid, or has changed")
}

// checkConns closes the connections whose token or session is gone.
func (s *Server) checkConns(ring *keyring) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checkConnsLocked(ring)
}

func (s *Server) checkConnsLocked(ring *keyring) {
	for c := range s.conns {
		c.check(ring)
	}
}

// check closes a connection whose token or session is gone.
func (c *Conn) check(ring *keyring) {
	switch {
	case !ring.has(c.key):
		c.close(websocket.StatusPolicyViolation, "the token is no longer valid", false)
	case c.session != "" && c.srv.sessions.ended(c.session, c.srv.opts.Now()):
		c.close(websocket.StatusPolicyViolation, "the session has ended", false)
	}
}

func limiterOf(k *key, local bool) *rate.Limiter {
	if k == nil || local {
		return nil
	}
	return k.rate
}

// begin counts a message as in flight unless the server is stopping. The caller must call Done of inFlight.
func (s *Server) begin() *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return Errorf(CodeUnavailable, "the gateway is stopping")
	}
	s.inFlight.Add(1)
	return nil
}

// Serve answers requests on the listeners with handler, which contains [Server.Handler], until ctx ends or a listener
// fails. Then it closes the listeners, lets calls in flight end, and returns when every goroutine has ended. The end of
// ctx is not an error.
func (s *Server) Serve(ctx context.Context, handler http.Handler, listeners ...net.Listener) error {
	hs := &http.Server{
		Handler:     track(handler),
		BaseContext: func(net.Listener) context.Context { return s.base },
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, socketKey{}, conn)
		},
		ReadHeaderTimeout: s.limits.Header,
		ReadTimeout:       s.limits.Read,
		WriteTimeout:      2 * s.limits.Read, // for other handlers; calls set their own
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, len(listeners))
	var wg sync.WaitGroup
	for _, l := range listeners {
		wg.Go(func() { failed <- hs.Serve(newListener(s, l)) })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	err = errors.Join(err, s.shutdown(context.WithoutCancel(ctx), hs))
	wg.Wait()
	return err
}

// shutdown refuses new calls and connections. Calls in flight may take four fifths of [Limits.Drain], then their contexts
// end. A WebSocket connection is closed with the status 1001 when it has none in flight. The error says that calls have
// not ended in time.
func (s *Server) shutdown(ctx context.Context, hs *http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Drain)
	defer cancel()
	patience, cancelPatience := context.WithTimeout(ctx, s.limits.Drain*4/5)
	defer cancelPatience()
	s.drain()
	_ = hs.Shutdown(patience) // the rest is cut off below
	ended := make(chan struct{})
	go func() {
		s.inFlight.Wait()
		s.wg.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-patience.Done():
		s.log.Warn("calls in flight are cut short")
		s.cut()
	}
	s.stop(ErrClosed)
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		err = fmt.Errorf("rpc: stopping: calls have not ended: %w", ctx.Err())
	}
	return errors.Join(err, hs.Close())
}

func (s *Server) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	for c := range s.conns {
		c.close(websocket.StatusGoingAway, "the gateway is stopping", true) // when its calls are answered
	}
}

func (s *Server) cut() {
	s.stop(ErrClosed)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.close(websocket.StatusGoingAway, "the gateway is stopping", false)
	}
}
