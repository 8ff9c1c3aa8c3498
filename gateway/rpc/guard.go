package rpc

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Guard lets through what comes from where it may: the Host must be localhost, a
// loopback address or one of [Options.Hosts], or the socket a unix socket; the
// Origin must be absent, the gateway's own or one of [Options.Origins]. Everything
// else is answered with 403.
func (s *Server) Guard(next http.Handler) http.Handler { return s.guard(s.hostAllowed, next) }

// GuardProbe is Guard for what an orchestrator asks, which names the gateway as it
// likes: any Host will do, but for requests that arrive at a loopback address.
func (s *Server) GuardProbe(next http.Handler) http.Handler {
	return s.guard(func(r *http.Request) bool {
		at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		return ok && !at.IP.IsLoopback() || s.hostAllowed(r)
	}, next)
}

// guard is Guard with another test of the Host.
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

// Admit lets through callers on this machine, and those with a token that has the
// right; everybody else gets 401. Where a caller is, the address of the peer says:
// neither the Host nor headers of proxies count. It belongs inside Guard.
func (s *Server) Admit(right Right, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r) {
			k, bad := s.authenticate(r)
			if bad == nil && !callerOf(k).May(right) {
				bad = Errorf(CodeUnauthorized, "this needs the right %q, which the token %q does not have", right, k.token.Name)
			}
			if bad != nil {
				w.Header().Set("WWW-Authenticate", "Bearer")
				deny(w, http.StatusUnauthorized, bad)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// hostAllowed keeps a page from reaching the gateway by a name of its own that
// points here (DNS rebinding): the browser tells the name.
func (s *Server) hostAllowed(r *http.Request) bool {
	if overUnix(r) {
		return true
	}
	host, port := splitHost(r.Host)
	return host == "localhost" || isLoopback(host) || slices.Contains(s.hosts, host) || slices.Contains(s.hosts, net.JoinHostPort(host, port))
}

// splitHost splits NAME or NAME:PORT and writes the name in one way: in lower
// case, an IPv6 address in its shortest form without brackets.
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

// plainHosts writes configured hosts as hostAllowed compares them.
func plainHosts(hosts []string) []string {
	out := make([]string, len(hosts))
	for i, h := range hosts {
		host, port := splitHost(h)
		if out[i] = host; port != "" {
			out[i] = net.JoinHostPort(host, port)
		}
	}
	return out
}

// originAllowed keeps other pages from calling with the user's reach.
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

// checkDoors refuses hosts and origins that no request can have, as they would let
// in nobody.
func checkDoors(o Options) error {
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

// overUnix reports whether a request came over a unix socket, whose permissions
// decide who may connect.
func overUnix(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && addr.Network() == "unix"
}

// isLocal reports whether the peer is on this machine.
func isLocal(r *http.Request) bool {
	if overUnix(r) {
		return true
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return err == nil && isLoopback(host)
}

// isLoopback reports whether a host is a loopback address.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// subprotocol begins the subprotocol in which a browser's WebSocket gives its
// token: pages cannot set its headers.
const subprotocol = "grapnel.bearer."

// plainSubprotocol is chosen before one with a token, if the client offers both:
// then the token is not repeated in the answer.
const plainSubprotocol = "grapnel"

// authenticate finds out who calls. The key is nil for an open server.
func (s *Server) authenticate(r *http.Request) (*key, *Error) {
	ring := s.tokens.Load()
	if ring.open {
		if isLocal(r) {
			socketOf(r).authenticated(nil)
			return nil, nil
		}
		return nil, Errorf(CodeUnauthorized, "without tokens only callers on the gateway's own machine are let in")
	}
	secret, ok := secretOf(r)
	if !ok {
		return nil, Errorf(CodeUnauthorized, "a token is needed: Authorization: Bearer TOKEN, or the WebSocket subprotocol %sTOKEN", subprotocol)
	}
	k := ring.find(secret)
	if k == nil {
		return nil, Errorf(CodeUnauthorized, "the token is not valid")
	}
	if !socketOf(r).authenticated(k) {
		return nil, Errorf(CodeOverloaded, "the token %q has as many connections as it may, all of them at work: use those", k.token.Name)
	}
	return k, nil
}

// secretOf returns the token that a request carries.
func secretOf(r *http.Request) (string, bool) {
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, secret, ok := strings.Cut(header, " ")
		return strings.TrimSpace(secret), ok && strings.EqualFold(scheme, "Bearer")
	}
	offer := offered(r)
	return strings.TrimPrefix(offer, subprotocol), offer != ""
}

// offered is the subprotocol with a token that a client offers; empty for none.
func offered(r *http.Request) string {
	for _, header := range r.Header.Values("Sec-WebSocket-Protocol") {
		for name := range strings.SplitSeq(header, ",") {
			if name = strings.TrimSpace(name); strings.HasPrefix(name, subprotocol) {
				return name
			}
		}
	}
	return ""
}

// callerOf makes the caller of a key.
func callerOf(k *key) *Caller {
	if k == nil {
		return &Caller{Open: true}
	}
	return k.token.Caller(nil)
}

// deny answers a request that gets no further with a status and an error object.
func deny(w http.ResponseWriter, status int, bad *Error) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(refusal(bad)) // the client is gone, or reads it
}
