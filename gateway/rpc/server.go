package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"
)

// Server answers calls of JSON-RPC 2.0. Its life:
//
//  1. [New] checks everything; it starts nothing.
//  2. [Server.Serve] listens, until its context ends. Or, in a test, an HTTP server
//     of the caller's uses [Server.Handler], and [Server.Shutdown] stops.
//  3. [Server.SetTokens] may be called at any time.
//
// A server that was stopped answers every call with [CodeUnavailable], and cannot
// be started again.
type Server struct {
	methods       map[string]*Method
	names         []string // of the methods, sorted
	notifications []Notification
	hosts         []string
	origins       []string
	limits        Limits
	log           *slog.Logger
	now           func() time.Time
	onCall        func(method, code string, took time.Duration)
	onConn        func(open int)
	onNotify      func(outcome string)
	buffers       *sync.Pool

	base   context.Context //nolint:containedctx // what calls over connections live under: the server starts them
	stop   context.CancelCauseFunc
	tokens atomic.Pointer[keyring]
	quota  *quota

	wg       sync.WaitGroup // readers, writers, handshakes
	inFlight sync.WaitGroup // messages

	mu       sync.Mutex
	draining bool
	open     map[seat]int // connections, those in their handshake included
	conns    map[*Conn]struct{}
	visits   map[*visit]struct{}
}

// New makes a server. Its error names every method that is wrong: without a name
// or function, there twice, or without schemas; every notification likewise; hosts
// and origins that no request can have; and what [CheckTokens] says.
func New(o Options) (*Server, error) {
	base, stop := context.WithCancelCause(context.Background())
	s := &Server{
		methods: make(map[string]*Method, len(o.Methods)),
		hosts:   plainHosts(o.Hosts), origins: lower(o.Origins), limits: o.Limits.withDefaults(),
		log: o.Logger, now: o.Now, onCall: o.OnCall, onConn: o.OnConn, onNotify: o.OnNotify, buffers: newBuffers(),
		base: base, stop: stop, open: map[seat]int{}, conns: map[*Conn]struct{}{}, visits: map[*visit]struct{}{},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.quota = newQuota(s.limits, s.log)
	problems := []error{CheckTokens(o.Tokens), checkDoors(o)}
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

// addMethod checks a method and keeps it with its schemas.
func (s *Server) addMethod(m Method, o Options) error {
	switch {
	case m.Name == "" || m.Call == nil:
		return fmt.Errorf("method %q has no name or no function", m.Name)
	case s.methods[m.Name] != nil:
		return fmt.Errorf("method %q is there twice", m.Name)
	case m.Right != NoRight && !slices.Contains(Rights(), m.Right):
		return fmt.Errorf("method %q asks for the unknown right %q", m.Name, m.Right)
	}
	var err error
	if m.Params, err = schemaOr(m.Params, m.in, o.Types); err != nil {
		return fmt.Errorf("method %q: params: %w", m.Name, err)
	}
	if m.Result, err = schemaOr(m.Result, m.out, o.Types); err != nil {
		return fmt.Errorf("method %q: result: %w", m.Name, err)
	}
	s.methods[m.Name] = &m
	return nil
}

// addNotification checks a notification and keeps it with its schema.
func (s *Server) addNotification(n Notification, o Options) error {
	if n.Name == "" || slices.ContainsFunc(s.notifications, func(other Notification) bool { return other.Name == n.Name }) {
		return fmt.Errorf("notification %q has no name, or is there twice", n.Name)
	}
	var err error
	if n.Params, err = schemaOr(n.Params, n.in, o.Types); err != nil {
		return fmt.Errorf("notification %q: params: %w", n.Name, err)
	}
	s.notifications = append(s.notifications, n)
	return nil
}

// lower returns the texts in lower case.
func lower(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = strings.ToLower(t)
	}
	return out
}

// Handler serves POST /rpc and GET /ws. Both check the Host and the Origin by
// themselves; [Server.Guard] and [Server.GuardProbe] do that for others that are
// mounted beside.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/rpc", s.servePost)
	mux.HandleFunc("/ws", s.serveWebSocket)
	return s.Guard(mux)
}

// TokenMay reports whether a token of the name is in force and may work in a workspace.
func (s *Server) TokenMay(name, workspace string) bool {
	k := s.tokens.Load().named(name)
	return k != nil && k.token.Caller(nil).MayWorkspace(workspace)
}

// SetTokens puts other tokens in force, for calls that begin from now on.
// Connections of tokens that are gone, or whose secret, workspaces or rights are
// others now, are closed: WebSockets with the status 1008, those of HTTP with the answer
// to the request under way, of which no call begins any more. Contexts of calls end.
// An idle connection of HTTP stays: its next request has to show a token. Its error is that of [CheckTokens]; then everything stays as it was.
func (s *Server) SetTokens(tokens []Token) error {
	if err := CheckTokens(tokens); err != nil {
		return fmt.Errorf("rpc: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ring := newKeyring(tokens, s.tokens.Load(), s.limits.Rate, s.quota)
	s.tokens.Store(ring)
	for c := range s.conns {
		c.checkKey(ring)
	}
	for v := range s.visits {
		if !ring.has(v.key) {
			v.cut(revoked())
		}
	}
	return nil
}

// revoked is the error for calls of a token that is not in force any more.
func revoked() *Error {
	return Errorf(CodeUnauthorized, "the token is not valid any more, or grants something else now")
}

// checkKey closes a connection whose token is not in force any more.
func (c *Conn) checkKey(ring *keyring) {
	if !ring.has(c.key) {
		c.close(websocket.StatusPolicyViolation, "the token is not valid any more", false)
	}
}

// limiter bounds how often the connection's caller may call; nil does not.
func (c *Conn) limiter() *rate.Limiter { return limiterOf(c.key, c.local) }

// limiterOf is the limiter of a caller. Those on the own machine have none.
func limiterOf(k *key, local bool) *rate.Limiter {
	if k == nil || local {
		return nil
	}
	return k.rate
}

// begin counts a message as in flight; its end is Done of inFlight. The error is
// for one that comes when the server stops.
func (s *Server) begin() *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return Errorf(CodeUnavailable, "the gateway is stopping")
	}
	s.inFlight.Add(1)
	return nil
}
