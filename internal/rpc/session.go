package rpc

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/recent"
)

// A page logs in once with a token or a code, and then holds a session in two halves: a cookie that scripts cannot
// read, and a text that the page keeps for its own origin. A script that was smuggled into the page has no cookie, and
// other servers of the same host, to which browsers send cookies regardless of the port, do not have the text.

// The bounds of sessions.
const (
	sessionTime  = 12 * time.Hour
	codeTime     = time.Minute
	mostSessions = 1024
	mostCodes    = 64
	loginBytes   = 4 << 10
)

// PageHeader carries the page's half of a session. Its presence also shows that no form of another site is calling.
const PageHeader = "Grapnel-Page"

// pageProtocol begins the WebSocket subprotocol with the page's half of a session.
const pageProtocol = "grapnel.page."

const cookieName = "grapnel_session"

// sessions are the pages that are logged in, by the hash of both halves, and the codes that let one in. Both are
// bounded, and too many of one token push out its own.
type sessions struct {
	mu          sync.Mutex
	open, codes recent.Map[entry]
}

// entry is what a session or a code stands for.
type entry struct {
	key   *key
	until time.Time
}

func newSessions() sessions {
	return sessions{open: recent.New[entry](mostSessions), codes: recent.New[entry](mostCodes)}
}

// put adds an entry for a token.
func (s *sessions) put(m *recent.Map[entry], id string, k *key, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.Put(k.token.Name, id, entry{k, until})
}

// find returns the token of an entry; nil if there is none, or its time is up.
func (s *sessions) find(m *recent.Map[entry], id string, now time.Time) *key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return findLocked(m, id, now)
}

// take is find, and removes the entry.
func (s *sessions) take(m *recent.Map[entry], id string, now time.Time) *key {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer m.Drop(id)
	return findLocked(m, id, now)
}

func findLocked(m *recent.Map[entry], id string, now time.Time) *key {
	e, ok := m.Get(id)
	if !ok || !e.until.After(now) {
		return nil
	}
	return e.key
}

// ended reports whether a page's session is over.
func (s *sessions) ended(id string, now time.Time) bool {
	return s.find(&s.open, id, now) == nil
}

// hashed is the key of a secret in a map.
func hashed(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return string(sum[:])
}

// LoginCode makes a code that logs in one page as the token of that name, within a minute. It is empty if there is no
// such token.
func (s *Server) LoginCode(token string) string {
	k := s.tokens.Load().named(token)
	if k == nil {
		return ""
	}
	code := rand.Text()
	s.sessions.put(&s.sessions.codes, hashed(code), k, s.opts.Now().Add(codeTime))
	return code
}

// login is what a page sends to log in: one of the two.
type login struct {
	Token string `json:"token"`
	Code  string `json:"code"`
}

// Session is what a page learns of its session.
type Session struct {
	Name  string `json:"name"`           // of the token; empty on a gateway without tokens
	Half  string `json:"half,omitempty"` // the page's half of a new session
	LogIn bool   `json:"log_in"`         // whether the page must log in first
}

// serveSession logs a page in (POST) and out (DELETE), and reports whether it is logged in (GET).
func (s *Server) serveSession(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if len(r.Header.Values(PageHeader)) != 1 {
		deny(w, http.StatusForbidden, Errorf(CodeRequest, "the header %s is missing", PageHeader))
		return
	}
	switch r.Method {
	case http.MethodGet:
		s.reportSession(w, r)
	case http.MethodPost:
		s.openSession(w, r)
	case http.MethodDelete:
		s.endSession(r)
		http.SetCookie(w, sessionCookie(r, "", -1))
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		deny(w, http.StatusMethodNotAllowed, Errorf(CodeRequest, "a session takes GET, POST and DELETE"))
	}
}

func (s *Server) reportSession(w http.ResponseWriter, r *http.Request) {
	if s.tokens.Load().open {
		if _, bad := s.authenticate(r); bad != nil {
			deny(w, http.StatusUnauthorized, bad)
			return
		}
		answerSession(w, Session{})
		return
	}
	k := s.sessionKey(r, r.Header.Get(PageHeader))
	if k == nil {
		answerSession(w, Session{LogIn: true}) // no error: browsers would report one to their console
		return
	}
	answerSession(w, Session{Name: k.token.Name})
}

func (s *Server) openSession(w http.ResponseWriter, r *http.Request) {
	var given login
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && media == contentType {
		err = json.NewDecoder(io.LimitReader(r.Body, loginBytes)).Decode(&given)
	}
	if err != nil || media != contentType || (given.Token == "") == (given.Code == "") {
		deny(w, http.StatusBadRequest, Errorf(CodeInvalid, "log in with {\"token\": …} or {\"code\": …} as %s", contentType))
		return
	}
	now, ring := s.opts.Now(), s.tokens.Load()
	k := ring.find(given.Token)
	if given.Code != "" {
		k = s.sessions.take(&s.sessions.codes, hashed(given.Code), now)
	}
	if k == nil || !ring.has(k) {
		deny(w, http.StatusUnauthorized, Errorf(CodeUnauthorized, "the token or code is not valid; a code is for one login within a minute"))
		return
	}
	s.endSession(r) // the page forgets it, and could not log out of it
	cookie, half := rand.Text(), rand.Text()
	s.sessions.put(&s.sessions.open, hashed(cookie+half), k, now.Add(sessionTime))
	http.SetCookie(w, sessionCookie(r, cookie, int(sessionTime.Seconds())))
	answerSession(w, Session{Name: k.token.Name, Half: half})
}

// endSession ends the session of a request, with the connections of all its tabs.
func (s *Server) endSession(r *http.Request) {
	if id, ok := sessionOf(r, r.Header.Get(PageHeader)); ok {
		s.sessions.take(&s.sessions.open, id, s.opts.Now())
		s.checkConns(s.tokens.Load())
	}
}

func answerSession(w http.ResponseWriter, v Session) {
	w.Header().Set("Content-Type", contentType)
	if text, err := json.Marshal(v); err == nil { // it always encodes
		_, _ = w.Write(text) // the client is gone, or reads it
	}
}

// sessionKey is the token of a page's session; nil if it has none in force.
func (s *Server) sessionKey(r *http.Request, half string) *key {
	id, ok := sessionOf(r, half)
	if !ok {
		return nil
	}
	k := s.sessions.find(&s.sessions.open, id, s.opts.Now())
	if ring := s.tokens.Load(); k != nil && ring.has(k) {
		return ring.named(k.token.Name)
	}
	return nil
}

func sessionOf(r *http.Request, half string) (id string, ok bool) {
	cookie, err := r.Cookie(cookieOf(r))
	if err != nil || half == "" {
		return "", false
	}
	return hashed(cookie.Value + half), true
}

// cookieOf names the cookie with the port: gateways on one host share their cookies.
func cookieOf(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil && port != "" {
		return cookieName + "_" + port
	}
	return cookieName
}

func sessionCookie(r *http.Request, value string, seconds int) *http.Cookie {
	// A proxy may have had the TLS.
	secure := r.TLS != nil || slices.Contains(r.Header.Values("Origin"), "https://"+r.Host)
	return &http.Cookie{ //nolint:gosec // Secure where the connection is: loopback has no TLS
		Name: cookieOf(r), Value: value, Path: "/", MaxAge: seconds, HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode,
	}
}

// pageHalf is the page's half of a session in a WebSocket handshake, which needs an Origin: Guard has checked it.
func pageHalf(r *http.Request) (half string, ok bool) {
	offer := offered(r, pageProtocol)
	return strings.TrimPrefix(offer, pageProtocol), offer != "" && r.Header.Get("Origin") != ""
}
