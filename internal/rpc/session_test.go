package rpc

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// page is a browser's page: its cookie, and its half of the session.
type page struct {
	*harness

	cookie *http.Cookie
	half   string
}

// ask calls /session as a page does.
func (p *page) ask(t *testing.T, method, body string, change ...func(*http.Request)) (int, Session) {
	t.Helper()
	req := must(http.NewRequestWithContext(t.Context(), method, "http://"+p.addr+"/session", strings.NewReader(body)))(t)
	req.Header.Set(PageHeader, "new")
	if p.half != "" {
		req.Header.Set(PageHeader, p.half)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", "http://"+p.addr)
	if p.cookie != nil {
		req.AddCookie(p.cookie)
	}
	for _, f := range change {
		f(req)
	}
	resp, err := client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	data := must(io.ReadAll(resp.Body))(t)
	var told Session
	if resp.StatusCode == http.StatusOK {
		if err := json.Unmarshal(data, &told); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
	}
	for _, c := range resp.Cookies() {
		p.cookie = c
	}
	if told.Half != "" {
		p.half = told.Half
	}
	return resp.StatusCode, told
}

// logIn logs in with a token or code.
func (p *page) logIn(t *testing.T, kind, secret string) int {
	t.Helper()
	status, _ := p.ask(t, http.MethodPost, `{"`+kind+`":"`+secret+`"}`)
	return status
}

// connect is the page's WebSocket connection; its error is the answer to a refused handshake.
func (p *page) connect(t *testing.T, cookie *http.Cookie, half, origin string) (*websocket.Conn, string) {
	t.Helper()
	ws, refused, err := p.tryDial(t, func(o *websocket.DialOptions) {
		if o.Subprotocols = []string{plainSubprotocol}; half != "" {
			o.Subprotocols = append(o.Subprotocols, pageProtocol+half)
		}
		if cookie != nil {
			o.HTTPHeader.Set("Cookie", cookie.Name+"="+cookie.Value)
		}
		if origin != "" {
			o.HTTPHeader.Set("Origin", origin)
		}
	})
	if err != nil {
		return nil, refused
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	return ws, ""
}

func (p *page) own() string { return "http://" + p.addr }

func TestSession(t *testing.T) {
	t.Parallel()

	p := &page{harness: start(t, withTokens)}
	if status, told := p.ask(t, http.MethodGet, ""); status != http.StatusOK || told != (Session{LogIn: true}) {
		t.Errorf("before the login: %d, %+v", status, told)
	}
	if status := p.logIn(t, "token", "wrong"); status != http.StatusUnauthorized || p.cookie != nil {
		t.Errorf("with a wrong token: %d, %v", status, p.cookie)
	}
	if status := p.logIn(t, "token", "a"); status != http.StatusOK {
		t.Fatalf("with a token: %d", status)
	}
	if c := p.cookie; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.MaxAge != int(sessionTime.Seconds()) || c.Value == p.half {
		t.Errorf("the cookie %v, the half %q", c, p.half)
	}
	if status, told := p.ask(t, http.MethodGet, ""); status != http.StatusOK || told != (Session{Name: "ann"}) {
		t.Errorf("logged in: %d, %+v", status, told)
	}
	ws, refused := p.connect(t, p.cookie, p.half, p.own())
	if ws == nil {
		t.Fatal(refused)
	}
	say(t, ws, `{"jsonrpc":"2.0","id":1,"method":"test/who"}`)
	if got := hear(t, ws); !strings.Contains(got, `"result":"ann"`) {
		t.Errorf("over the page's connection: %s", got)
	}

	for name, part := range map[string]struct {
		cookie       *http.Cookie
		half, origin string
	}{
		"the cookie alone":    {p.cookie, "", p.own()},
		"the page alone":      {nil, p.half, p.own()},
		"another half":        {p.cookie, p.half + "x", p.own()},
		"no origin":           {p.cookie, p.half, ""},
		"a page of elsewhere": {p.cookie, p.half, "http://example.org"},
	} {
		if ws, _ := p.connect(t, part.cookie, part.half, part.origin); ws != nil {
			t.Errorf("%s opens a connection", name)
		}
	}
	status, answer := p.post(t, `{"jsonrpc":"2.0","id":1,"method":"test/who"}`, func(r *http.Request) {
		r.AddCookie(p.cookie)
		r.Header.Set(PageHeader, p.half)
	})
	if !strings.Contains(answer, "a token is needed") {
		t.Errorf("a POST with the session: %d %s", status, answer)
	}

	kept := *p.cookie
	if status, _ := p.ask(t, http.MethodDelete, ""); status != http.StatusNoContent {
		t.Errorf("logging out: %d", status)
	}
	if ws, _ := p.connect(t, &kept, p.half, p.own()); ws != nil {
		t.Error("the session opens a connection after logging out")
	}
}

// TestSessionEnds: the connections of a session end with it, whether a tab logs out or its time is up; those of other
// sessions of the token, and of programs that have the token itself, go on.
func TestSessionEnds(t *testing.T) {
	t.Parallel()

	for name, end := range map[string]func(t *testing.T, p *page, later *atomic.Int64){
		"logged out": func(t *testing.T, p *page, _ *atomic.Int64) { p.ask(t, http.MethodDelete, "") },
		"too old":    func(_ *testing.T, _ *page, later *atomic.Int64) { later.Store(int64(sessionTime)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var later atomic.Int64
			h := start(t, withTokens, func(o *Options) {
				o.Limits.Ping, o.Limits.Write = 20*time.Millisecond, patience // which is the time of the pong
				o.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
			})
			program, _, err := h.tryDial(t, func(o *websocket.DialOptions) { o.Subprotocols = []string{subprotocol + "a"} })
			if err != nil {
				t.Fatal(err)
			}
			ended, other := &page{harness: h}, &page{harness: h}
			if ended.logIn(t, "token", "a") != http.StatusOK {
				t.Fatal("no login")
			}
			one, _ := ended.connect(t, ended.cookie, ended.half, ended.own())
			two, _ := ended.connect(t, ended.cookie, ended.half, ended.own())
			later.Store(int64(sessionTime / 2))
			if other.logIn(t, "token", "a") != http.StatusOK {
				t.Fatal("no second login")
			}
			stays, _ := other.connect(t, other.cookie, other.half, other.own())
			end(t, ended, &later)
			for _, ws := range []*websocket.Conn{one, two} {
				if got := hearClose(t, ws); got.Code != websocket.StatusPolicyViolation || got.Reason != "the session has ended" {
					t.Errorf("closed with %v", got)
				}
			}
			for _, ws := range []*websocket.Conn{program, stays} {
				say(t, ws, `{"jsonrpc":"2.0","id":1,"method":"test/who"}`)
				if got := hear(t, ws); !strings.Contains(got, `"result":"ann"`) {
					t.Errorf("another connection of the token: %s", got)
				}
			}
		})
	}
}

func TestSessionRequests(t *testing.T) {
	t.Parallel()

	p := &page{harness: start(t, withTokens)}
	plain := func(r *http.Request) { r.Header.Del(PageHeader) }
	form := func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }
	elsewhere := func(r *http.Request) { r.Header.Set("Origin", "http://example.org") }
	for _, tt := range []struct {
		name, method, body string
		change             func(*http.Request)
		want               int
	}{
		{"without the header", http.MethodPost, `{"token":"a"}`, plain, http.StatusForbidden},
		{"as a form", http.MethodPost, `{"token":"a"}`, form, http.StatusBadRequest},
		{"of another site", http.MethodPost, `{"token":"a"}`, elsewhere, http.StatusForbidden},
		{"nothing", http.MethodPost, `{}`, nil, http.StatusBadRequest},
		{"both", http.MethodPost, `{"token":"a","code":"b"}`, nil, http.StatusBadRequest},
		{"no JSON", http.MethodPost, `token=a`, nil, http.StatusBadRequest},
		{"too long", http.MethodPost, `{"token":"` + strings.Repeat("x", loginBytes) + `"}`, nil, http.StatusBadRequest},
		{"another method", http.MethodPut, `{}`, nil, http.StatusMethodNotAllowed},
	} {
		if tt.change == nil {
			tt.change = func(*http.Request) {}
		}
		if status, _ := p.ask(t, tt.method, tt.body, tt.change); status != tt.want || p.cookie != nil {
			t.Errorf("%s: %d, want %d; cookie %v", tt.name, status, tt.want, p.cookie)
		}
	}
}

// TestLoginCode: a code logs in once, within its time, while its token is in force.
func TestLoginCode(t *testing.T) {
	t.Parallel()

	var later atomic.Int64
	h := start(t, withTokens, func(o *Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	})
	if code := h.srv.LoginCode("nobody"); code != "" {
		t.Errorf("a code for nobody: %s", code)
	}
	p, second := &page{harness: h}, &page{harness: h}
	code := h.srv.LoginCode("ann")
	if status := p.logIn(t, "code", code); status != http.StatusOK {
		t.Errorf("with a code: %d", status)
	}
	if status := second.logIn(t, "code", code); status != http.StatusUnauthorized {
		t.Errorf("with a code again: %d", status)
	}
	code = h.srv.LoginCode("ann")
	later.Store(int64(codeTime))
	if status := second.logIn(t, "code", code); status != http.StatusUnauthorized {
		t.Errorf("with a code that is too old: %d", status)
	}
	if ws, refused := p.connect(t, p.cookie, p.half, p.own()); ws == nil {
		t.Errorf("the session has ended: %s", refused)
	}
	later.Store(int64(sessionTime))
	if ws, _ := p.connect(t, p.cookie, p.half, p.own()); ws != nil {
		t.Error("the session does not end")
	}

	later.Store(0)
	third := &page{harness: h}
	_, code = third.logIn(t, "token", "a"), h.srv.LoginCode("ann")
	ws, refused := third.connect(t, third.cookie, third.half, third.own())
	if ws == nil {
		t.Fatal(refused)
	}
	if err := h.srv.SetTokens([]Token{{Name: "ann", SHA256: sum("new")}}); err != nil {
		t.Fatal(err)
	}
	if got := hearClose(t, ws); got.Code != websocket.StatusPolicyViolation {
		t.Errorf("with a new token: %v", got)
	}
	if ws, _ := third.connect(t, third.cookie, third.half, third.own()); ws != nil {
		t.Error("a session outlives its token")
	}
	if status := second.logIn(t, "code", code); status != http.StatusUnauthorized {
		t.Errorf("with the code of an old token: %d", status)
	}
}

func TestSessionOfOpenServer(t *testing.T) {
	t.Parallel()

	p := &page{harness: start(t)}
	if status, told := p.ask(t, http.MethodGet, ""); status != http.StatusOK || told != (Session{}) {
		t.Errorf("%d, %+v", status, told)
	}
	if ws, refused := p.connect(t, nil, "", p.own()); ws == nil {
		t.Error(refused)
	}
	if ws, _ := p.connect(t, nil, "", "http://example.org"); ws != nil {
		t.Error("a page of elsewhere opens a connection")
	}
}

// TestManySessions: too many codes push out the oldest; too many sessions of one token push out its own and nobody
// else's.
func TestManySessions(t *testing.T) {
	t.Parallel()

	h := start(t, func(o *Options) {
		o.Tokens = []Token{{Name: "ann", SHA256: sum("a")}, {Name: "bob", SHA256: sum("b")}}
	})
	first, last := h.srv.LoginCode("ann"), ""
	for range mostCodes {
		last = h.srv.LoginCode("ann")
	}
	p := &page{harness: h}
	if status := p.logIn(t, "code", first); status != http.StatusUnauthorized {
		t.Errorf("the first of too many codes: %d", status)
	}
	if status := p.logIn(t, "code", last); status != http.StatusOK {
		t.Errorf("the last of many codes: %d", status)
	}

	oldest := &page{harness: h}
	if status := oldest.logIn(t, "token", "b"); status != http.StatusOK {
		t.Fatalf("bob's login: %d", status)
	}
	flood := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/session", nil)
	flood.Header.Set(PageHeader, "new")
	flood.Header.Set("Content-Type", contentType)
	for range mostSessions {
		flood.Body = io.NopCloser(strings.NewReader(`{"token":"b"}`))
		w := httptest.NewRecorder()
		h.srv.Handler().ServeHTTP(w, flood)
		if w.Code != http.StatusOK {
			t.Fatalf("a login of the flood: %d %s", w.Code, w.Body)
		}
	}
	if _, got := p.ask(t, http.MethodGet, ""); got != (Session{Name: "ann"}) {
		t.Errorf("another token's logins ended ann's session: %+v", got)
	}
	if _, got := oldest.ask(t, http.MethodGet, ""); !got.LogIn {
		t.Errorf("the oldest of too many sessions: %+v", got)
	}
}

// TestLoginEndsSession: a browser that logs in again ends the session that it had, with the connections of all its tabs.
func TestLoginEndsSession(t *testing.T) {
	t.Parallel()

	p := &page{harness: start(t, func(o *Options) {
		o.Tokens = []Token{{Name: "ann", SHA256: sum("a")}, {Name: "bob", SHA256: sum("b")}}
	})}
	if status := p.logIn(t, "token", "a"); status != http.StatusOK {
		t.Fatalf("the login: %d", status)
	}
	before, half := *p.cookie, p.half
	tab, refused := p.connect(t, &before, half, p.own())
	if tab == nil {
		t.Fatal(refused)
	}
	if status := p.logIn(t, "token", "nobody"); status != http.StatusUnauthorized {
		t.Errorf("a wrong login: %d", status)
	}
	if _, got := p.ask(t, http.MethodGet, ""); got != (Session{Name: "ann"}) {
		t.Errorf("a login that fails ended the session: %+v", got)
	}
	if status := p.logIn(t, "token", "b"); status != http.StatusOK {
		t.Fatalf("the second login: %d", status)
	}
	if got := hearClose(t, tab); got.Reason != "the session has ended" {
		t.Errorf("a tab of the session before: %v", got)
	}
	if ws, _ := p.connect(t, &before, half, p.own()); ws != nil {
		t.Error("the session before opens a connection")
	}
	if _, got := p.ask(t, http.MethodGet, ""); got != (Session{Name: "bob"}) {
		t.Errorf("the new session: %+v", got)
	}
}
