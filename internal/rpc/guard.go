package rpc

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"
)

// Right is what a method requires. None includes another.
type Right string

// The rights. NoRight is for methods that everybody may use.
const (
	NoRight       Right = ""
	ReadRight     Right = "read"
	WriteRight    Right = "write"
	CompileRight  Right = "compile"
	DispatchRight Right = "dispatch"
	AdminRight    Right = "admin"
)

// Rights lists all rights, for messages and schemas.
func Rights() []Right {
	return []Right{ReadRight, WriteRight, CompileRight, DispatchRight, AdminRight}
}

// EveryWorkspace stands for all workspaces in [Token.Workspaces].
const EveryWorkspace = "*"

// Token lets in callers who know its secret. The gateway has only the hash.
type Token struct {
	// Name is the actor of its calls.
	Name string
	// SHA256 is the secret's hash, in hexadecimal.
	SHA256 string
	// Workspaces are ids, or EveryWorkspace.
	Workspaces []string
	Rights     []Right
}

// CheckTokens refuses missing and duplicate names, invalid and duplicate hashes and that of an empty secret (such as
// an unset variable), empty workspaces, and unknown rights.
func CheckTokens(tokens []Token) error {
	var problems []error
	names, sums := map[string]bool{}, map[[sha256.Size]byte]bool{sha256.Sum256(nil): true}
	for i, t := range tokens {
		switch {
		case t.Name == "":
			problems = append(problems, fmt.Errorf("token %d has no name", i+1))
		case names[t.Name]:
			problems = append(problems, fmt.Errorf("token %q: duplicate name", t.Name))
		}
		names[t.Name] = true
		sum, err := t.sum()
		switch {
		case err != nil:
			problems = append(problems, err)
		case sums[sum]:
			problems = append(problems, fmt.Errorf("token %q: sha256 is that of another token, or of the empty text", t.Name))
		default:
			sums[sum] = true
		}
		if slices.Contains(t.Workspaces, "") {
			problems = append(problems, fmt.Errorf("token %q: a workspace without an id; %q stands for all", t.Name, EveryWorkspace))
		}
		for _, r := range t.Rights {
			if !slices.Contains(Rights(), r) {
				problems = append(problems, fmt.Errorf("token %q: unknown right %q, there are %v", t.Name, r, Rights()))
			}
		}
	}
	return errors.Join(problems...)
}

func (t Token) sum() ([sha256.Size]byte, error) {
	sum, err := hex.DecodeString(t.SHA256)
	if err != nil || len(sum) != sha256.Size {
		return [sha256.Size]byte{}, fmt.Errorf("token %q: sha256 is not the %d hexadecimal digits of a hash", t.Name, 2*sha256.Size)
	}
	return [sha256.Size]byte(sum), nil
}

// Caller returns the token's caller over conn, nil for HTTP POST. It is exported for tests of methods.
func (t Token) Caller(conn *Conn) *Caller {
	return &Caller{
		Name: t.Name, Conn: conn,
		workspaces: slices.Clone(t.Workspaces), rights: slices.Clone(t.Rights),
	}
}

// Caller calls methods. It is immutable. With only Open set it may do everything.
type Caller struct {
	// Name is the token's name; empty where Open is set.
	Name string
	// Open says that there are no tokens: then the params name the actor.
	Open bool
	// Conn is the caller's WebSocket connection; nil for HTTP POST.
	Conn *Conn

	workspaces []string
	rights     []Right
}

// May reports whether the caller has a right.
func (c *Caller) May(r Right) bool {
	return c.Open || r == NoRight || slices.Contains(c.rights, r)
}

// AllWorkspaces reports whether the caller may work in every workspace.
func (c *Caller) AllWorkspaces() bool {
	return c.Open || slices.Contains(c.workspaces, EveryWorkspace)
}

// MayWorkspace reports whether the caller may work in a workspace.
func (c *Caller) MayWorkspace(id string) bool {
	return c.AllWorkspaces() || slices.Contains(c.workspaces, id)
}

// Rights returns the caller's rights in the order of [Rights]; never nil.
func (c *Caller) Rights() []Right {
	return slices.DeleteFunc(Rights(), func(r Right) bool { return !c.May(r) })
}

// Workspaces returns the ids of the workspaces that the caller is bound to; empty for all, never nil.
func (c *Caller) Workspaces() []string {
	if c.AllWorkspaces() {
		return []string{}
	}
	return append([]string{}, c.workspaces...)
}

// keyring is the set of tokens in force. It is replaced as a whole; only the limiters change.
type keyring struct {
	open bool
	keys []*key
}

// key is one token; nil is a caller without one.
type key struct {
	token  Token
	sum    [sha256.Size]byte
	rate   *rate.Limiter // nil for no bound
	memory *account      // counts the messages and answers of all its connections
}

// newKeyring keeps the limiters and memory of tokens that stay, so that a reload grants no fresh calls.
func newKeyring(tokens []Token, old *keyring, perSecond int, q *quota) *keyring {
	ring := &keyring{open: tokens == nil}
	for _, t := range tokens {
		k := &key{token: t}
		k.sum, _ = t.sum() // CheckTokens has accepted it
		if was := old.named(t.Name); was != nil {
			k.rate, k.memory = was.rate, was.memory
		} else {
			k.memory = q.token()
			if perSecond > 0 {
				k.rate = rate.NewLimiter(rate.Limit(perSecond), perSecond)
			}
		}
		ring.keys = append(ring.keys, k)
	}
	return ring
}

func (r *keyring) named(name string) *key {
	if r == nil {
		return nil
	}
	for _, k := range r.keys {
		if k.token.Name == name {
			return k
		}
	}
	return nil
}

// find compares with all keys, so that a wrong secret takes as long as a right one.
func (r *keyring) find(secret string) *key {
	sum := sha256.Sum256([]byte(secret))
	var found *key
	for _, k := range r.keys {
		if subtle.ConstantTimeCompare(sum[:], k.sum[:]) == 1 {
			found = k
		}
	}
	return found
}

// has reports whether a key, maybe of another ring, is in force with the same grants. A nil key is in force without
// tokens.
func (r *keyring) has(k *key) bool {
	if k == nil {
		return r.open
	}
	now := r.named(k.token.Name)
	return now != nil && now.sum == k.sum &&
		slices.Equal(now.token.Workspaces, k.token.Workspaces) && slices.Equal(now.token.Rights, k.token.Rights)
}

// Guard answers 403 unless the Host is localhost, a loopback address or one of [Options.Hosts], or the socket is a
// unix socket, and the Origin is absent, the gateway's own or one of [Options.Origins].
func (s *Server) Guard(next http.Handler) http.Handler { return s.guard(s.hostAllowed, next) }

// GuardProbe is Guard for probes of orchestrators, which use any name: the Host is checked only for requests that
// arrive at a loopback address.
func (s *Server) GuardProbe(next http.Handler) http.Handler {
	return s.guard(func(r *http.Request) bool {
		at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		return ok && !at.IP.IsLoopback() || s.hostAllowed(r)
	}, next)
}

func (s *Server) guard(hostAllowed func(*http.Request) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !hostAllowed(r):
			deny(w, http.StatusForbidden, Errorf(CodeUnauthorized, "the host %q is not served: use localhost, or add it to the configured hosts", clip(r.Host)))
		case !s.originAllowed(r):
			deny(w, http.StatusForbidden, Errorf(CodeUnauthorized, "pages of %q may not call: add it to the configured origins", clip(r.Header.Get("Origin"))))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// Admit lets through callers on this machine, and callers whose token has the right; others get
// 401. The peer's address decides, not the Host or proxies' headers. Wrap it in Guard.
func (s *Server) Admit(right Right, next http.Handler) http.Handler {
	needed := s.Require(right, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isLocal(r) {
			next.ServeHTTP(w, r)
			return
		}
		needed.ServeHTTP(w, r)
	})
}

// Require lets through callers that have the right, as for a call; others get 401. Wrap it in Guard.
func (s *Server) Require(right Right, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k, bad := s.authenticate(r)
		if bad == nil && !callerOf(k).May(right) {
			bad = Errorf(CodeUnauthorized, "this needs the right %q, which the token %q does not have", right, k.token.Name)
		}
		if bad != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			deny(w, http.StatusUnauthorized, bad)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostAllowed stops DNS rebinding: a page whose own name was made to point here.
func (s *Server) hostAllowed(r *http.Request) bool {
	if overUnix(r) {
		return true
	}
	host, port := splitHost(r.Host)
	return host == "localhost" || isLoopback(host) || slices.Contains(s.hosts, host) || slices.Contains(s.hosts, net.JoinHostPort(host, port))
}

// splitHost splits NAME or NAME:PORT and normalizes the name: lower case, IPv6 in its shortest form without brackets.
func splitHost(hostport string) (host, port string) {
	host = hostport
	if h, p, err := net.SplitHostPort(hostport); err == nil {
		host, port = h, p
	}
	host = strings.Trim(strings.ToLower(host), "[]")
	if addr, err := netip.ParseAddr(host); err == nil {
		host = addr.String()
	}
	return host, port
}

func (s *Server) originAllowed(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	switch {
	case len(origins) == 0:
		return true
	case len(origins) > 1:
		return false
	}
	origin, host := strings.ToLower(origins[0]), strings.ToLower(r.Host)
	own := host != "" && (origin == "http://"+host || origin == "https://"+host)
	return own || slices.Contains(s.origins, origin)
}

// checkAddresses refuses hosts and origins that no request can have.
func checkAddresses(o Options) error {
	var problems []error
	for _, host := range o.Hosts {
		if u, err := url.Parse("//" + host); err != nil || host == "" || u.Host != host || u.User != nil {
			problems = append(problems, fmt.Errorf("host %q is neither NAME nor NAME:PORT", host))
		}
	}
	for _, origin := range o.Origins {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || u.User != nil || origin != u.Scheme+"://"+u.Host {
			problems = append(problems, fmt.Errorf("origin %q is not SCHEME://HOST or SCHEME://HOST:PORT, without a path", origin))
		}
	}
	return errors.Join(problems...)
}

// overUnix reports whether a request came over a unix socket, whose permissions decide who may connect.
func overUnix(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && addr.Network() == "unix"
}

func isLocal(r *http.Request) bool {
	if overUnix(r) {
		return true
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return err == nil && isLoopback(host)
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// subprotocol begins the WebSocket subprotocol that carries a browser's token: pages cannot set headers.
const subprotocol = "grapnel.bearer."

const plainSubprotocol = "grapnel" // preferred, so that the answer does not repeat the token

// authenticate finds the caller's key, which is nil on a server without tokens.
func (s *Server) authenticate(r *http.Request) (*key, *Error) {
	ring := s.tokens.Load()
	if ring.open {
		if isLocal(r) {
			socketOf(r).authenticated(nil)
			return nil, nil
		}
		return nil, Errorf(CodeUnauthorized, "without tokens only callers on the same machine may call")
	}
	secret, ok := secretOf(r)
	half, page := pageHalf(r)
	if !ok && !page {
		return nil, Errorf(CodeUnauthorized, "a token is needed: Authorization: Bearer TOKEN, or the WebSocket subprotocol %sTOKEN", subprotocol)
	}
	k := ring.find(secret)
	if page {
		k = s.sessionKey(r, half)
	}
	if k == nil {
		return nil, Errorf(CodeUnauthorized, "the token or session is not valid")
	}
	if !socketOf(r).authenticated(k) {
		return nil, Errorf(CodeOverloaded, "the token %q has as many connections as it may, all of them at work: use those", k.token.Name)
	}
	return k, nil
}

func secretOf(r *http.Request) (string, bool) {
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, secret, ok := strings.Cut(header, " ")
		return strings.TrimSpace(secret), ok && strings.EqualFold(scheme, "Bearer")
	}
	offer := offered(r, subprotocol)
	return strings.TrimPrefix(offer, subprotocol), offer != ""
}

// offered is the subprotocol with that beginning that a WebSocket handshake offers; empty for none.
func offered(r *http.Request, beginning string) string {
	for _, header := range r.Header.Values("Sec-WebSocket-Protocol") {
		for name := range strings.SplitSeq(header, ",") {
			if name = strings.TrimSpace(name); strings.HasPrefix(name, beginning) {
				return name
			}
		}
	}
	return ""
}

func callerOf(k *key) *Caller {
	if k == nil {
		return &Caller{Open: true}
	}
	return k.token.Caller(nil)
}

func deny(w http.ResponseWriter, status int, bad *Error) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(refusal(bad))
}

// serveWebSocket returns after the handshake, so that the connection does not hold the resources of an HTTP request.
func (s *Server) serveWebSocket(w http.ResponseWriter, r *http.Request) {
	k, bad := s.authenticate(r)
	if bad != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		deny(w, http.StatusUnauthorized, bad)
		return
	}
	c := newConn(s, k, socketOf(r), isLocal(r))
	if half, page := pageHalf(r); page && k != nil {
		c.session, _ = sessionOf(r, half)
	}
	if bad := s.admit(c); bad != nil {
		c.cancel(ErrClosed)
		w.Header().Set("Retry-After", "1")
		deny(w, http.StatusServiceUnavailable, bad)
		return
	}
	defer s.wg.Done()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.limits.Write))
	tap := &hijackTap{ResponseWriter: w}
	ws, err := websocket.Accept(tap, r, &websocket.AcceptOptions{
		Subprotocols:       []string{plainSubprotocol, offered(r, subprotocol), offered(r, pageProtocol)},
		InsecureSkipVerify: true, // Guard has checked the Origin
	})
	if err != nil {
		s.log.Debug("a handshake failed", slog.Any("error", err))
		s.leave(c)
		return
	}
	ws.SetReadLimit(-1) // receive has the limit
	c.ws, c.nc = ws, tap.conn
	c.socket.work(1) // it never counts as idle
	s.wg.Go(c.read)
	s.wg.Go(func() { //nolint:contextcheck // it outlives the request
		defer s.leave(c)
		c.write()
	})
}

// admit registers a connection before its handshake; leave removes it. The caller must call Done of wg.
func (s *Server) admit(c *Conn) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return Errorf(CodeUnavailable, "the gateway is stopping")
	}
	here, same := 0, 0
	for other := range s.conns {
		if other.socket.listener() == c.socket.listener() {
			here++
		}
		if other.caller.Name == c.caller.Name {
			same++
		}
	}
	switch {
	case here >= s.limits.Connections:
		return Errorf(CodeUnavailable, "there are %d connections already", here)
	case c.key != nil && same >= (s.limits.Connections+1)/2:
		return Errorf(CodeUnavailable, "there are %d connections of the token %q already", same, c.caller.Name)
	}
	s.wg.Add(1)
	s.conns[c] = struct{}{}
	c.check(s.tokens.Load()) // SetTokens and a logout did not know the connection
	s.opts.OnConn(len(s.conns))
	return nil
}

func (s *Server) leave(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.cancel(ErrClosed)
	delete(s.conns, c)
	s.opts.OnConn(len(s.conns))
}

// hijackTap keeps the hijacked connection.
type hijackTap struct {
	http.ResponseWriter

	conn net.Conn
}

func (t *hijackTap) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(t.ResponseWriter).Hijack()
	t.conn = conn
	return conn, rw, err
}
