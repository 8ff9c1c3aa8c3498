package mcpclient_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/plugins/mcp/internal/mcpclient"
)

// modeVariable makes the test binary a server of the mode that is its value.
const modeVariable = "GRAPNEL_TEST_MCPCLIENT"

// patience bounds what should take a moment.
const patience = time.Minute

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVariable); mode != "" {
		serveMode(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

// serveMode is a server on standard input and output.
func serveMode(mode string) {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		if mode == "logs" {
			fmt.Print(logs())
		}
		fmt.Println(rawAnswer(mode, m.Method, string(m.ID)))
	}
}

// logs returns lines that are not messages, the last without its end.
func logs() string {
	return "{\"level\":\"info\"}\n[]\n[1,{\"a\":2}]\nnull\n42\n\n{not json\n{\"jsonrpc\":\"2.0\"}\n{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}\n" +
		"received {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}\n" + strings.Repeat("x", 5<<20) + "\n" +
		`[{"jsonrpc":"2.0","method":"notifications/message"},{"level":"info"}]` + "\nstarting... "
}

// rawAnswer is what a server that is not made with the SDK says, in one line.
func rawAnswer(mode, method, id string) string {
	result := func(text string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":` + text + `}` }
	switch method {
	case "initialize":
		switch mode {
		case "no licence":
			return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32000,"message":"no licence"}}`
		case "old":
			return result(`{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"raw","version":"1"}}`)
		case "refuses and dies":
			fmt.Fprintln(os.Stderr, "boom details")
			os.Exit(5)
		}
		return result(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw","version":"1"}}`)
	case "tools/list":
		return result(rawList(mode))
	case "tools/call":
		switch mode {
		case "dies":
			fmt.Fprintln(os.Stderr, "boom details")
			os.Exit(5)
		case "last words":
			fmt.Println(result(`{"content":[{"type":"text","text":"goodbye"}]}`))
			os.Exit(0)
		case "broken call":
			return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":`
		case "another id":
			return strings.Replace(result(`{"content":[{"type":"text","text":"not yours"}]}`), `"id":`+id, `"id":4711`, 1)
		case "wrong type":
			return result(`{"content":"text"}`)
		case "wrong flag":
			return result(`{"content":[],"isError":"yes"}`)
		case "no object":
			return result(`5`)
		case "bytes":
			return result(`{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"AAAA"}}]}`)
		case "unknown content":
			return result(unknownContent)
		case "no content":
			return result(`{}`)
		case "long":
			return result(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 2000) + `"}]}`)
		case "an error":
			return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32000,"message":"out of order"}}`
		}
		return result(`{"content":[{"type":"text","text":"fine"}]}`)
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"no such method"}}`
}

const unknownContent = `{"content":[{"type":"hologram"},{"type":"text","text":"after it"},null,{"type":"image","data":7},{"type":"tool_use"}]}`

func rawList(mode string) string {
	tool := func(name, more string) string {
		return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}%s}`, name, more)
	}
	switch mode {
	case "endless pages":
		return `{"tools":[` + tool("again", "") + `],"nextCursor":"more"}`
	case "large":
		return `{"tools":[` + tool("described", `,"description":"`+strings.Repeat("x", 17<<10)+`"`) + "," + tool("fine", "") +
			`,{"name":"grows","inputSchema":{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"a":{"title":"` + strings.Repeat("x", 40<<10) + `"}}}}}}]}`
	case "no list":
		return `{"tools":7}`
	case "odd entries":
		return `{"tools":[{"name":5},7,{"name":"titled","title":[]},{"name":"secret","title":[]},` + tool("fine", "") + `]}`
	case "nulls":
		return `{"tools":[null,` + tool("fine", "") + `,{"name":"bare"},{"name":"list","inputSchema":[]}]}`
	}
	return `{"tools":[` + tool("fine", "") + `]}`
}

// start connects to a server, and waits for the first attempt.
func start(t *testing.T, cfg mcpclient.Config) *mcpclient.Server {
	t.Helper()
	cfg.Name, cfg.MaxResult = "srv", 1<<10
	if cfg.Timeout == 0 {
		cfg.Timeout = patience
	}
	cfg.Granted = func(tool string) bool { return tool != "secret" }
	s := mcpclient.Start(cfg, func() {})
	t.Cleanup(func() {
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s.Ready(ctx)
	return s
}

// program is the configuration of a server of this binary.
func program(t *testing.T, mode string) mcpclient.Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcpclient.Config{Command: []string{self}, Env: map[string]string{modeVariable: mode}}
}

// web serves at a URL until the test ends.
func web(t *testing.T, h http.Handler) mcpclient.Config {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections() //nolint:forcetypeassert // it is one
	})
	return mcpclient.Config{URL: srv.URL, Headers: map[string]string{"Authorization": "Bearer secret"}}
}

// TestHostileLists: whatever a server lists, what is kept is within the bounds, and each kind of what was wrong is told once.
func TestHostileLists(t *testing.T) {
	for mode, want := range map[string]struct {
		code, message string
		tools         int
	}{
		"endless pages":    {mcpclient.CodeTooMany, "lists more tools than are taken", 1},
		"large":            {mcpclient.CodeTooLarge, "2 tools are withheld for the size", 1},
		"no list":          {mcpclient.CodeDown, `its answer cannot be read: its tools is not of the type that the protocol has for it; the next attempt is in`, 0},
		"no licence":       {mcpclient.CodeDown, "no licence; the next attempt", 0},
		"old":              {mcpclient.CodeDown, "1999-01-01", 0},
		"refuses and dies": {mcpclient.CodeDown, "it has ended with exit status 5: boom details; the next", 0},
		"odd entries":      {mcpclient.CodeInvalid, `entry 1 (its name is not of the type that the protocol has for it), entry 2 (it is not an object), titled (its title is not`, 1},
		"nulls":            {mcpclient.CodeInvalid, "list", 2},
	} {
		t.Run(mode, func(t *testing.T) {
			s := start(t, program(t, mode))
			l := s.Listing()
			i := slices.IndexFunc(l.Problems, func(p mcpclient.Problem) bool { return p.Code == want.code })
			if i < 0 || !strings.Contains(l.Problems[i].Message, want.message) || len(l.Tools) != want.tools {
				t.Errorf("%d tools, %.500v", len(l.Tools), l.Problems)
			}
		})
	}
}

// TestHostileCalls: whatever a server answers to a call, the caller learns of it in time.
func TestHostileCalls(t *testing.T) {
	unreadable := func(kind string) string {
		return fmt.Sprintf("[content of the type %q cannot be read and is not shown]", kind)
	}
	for mode, want := range map[string]struct {
		text, err string
		problem   string
	}{
		"plain":           {"fine", "", ""},
		"logs":            {"fine", "", mcpclient.CodeNoise},
		"dies":            {"", "it ended during the call, which may have had an effect (it has ended with exit status 5: boom details)", ""},
		"last words":      {"goodbye", "", ""},
		"broken call":     {"", "it has not answered within 2s", ""},
		"another id":      {"", "it has not answered within 2s", ""},
		"wrong type":      {"", `its answer cannot be read: its content is not of the type that the protocol has for it`, ""},
		"wrong flag":      {"", `its answer cannot be read: its isError is not of the type that the protocol has for it`, ""},
		"no object":       {"", "its answer cannot be read: it is not an object", ""},
		"bytes":           {"[resource a:b (3 bytes) is not shown]", "", ""},
		"unknown content": {unreadable("hologram") + "\nafter it\n" + unreadable("") + "\n" + unreadable("image") + "\n" + unreadable("tool_use"), "", mcpclient.CodeContent},
		"no content":      {"", "", ""},
		"long":            {strings.Repeat("x", 1024) + "\n[the result has 2000 bytes; only the first 1024 are there]", "", ""},
		"an error":        {"", "out of order", ""},
	} {
		t.Run(mode, func(t *testing.T) {
			cfg := program(t, mode)
			if strings.Contains(want.err, "within 2s") {
				cfg.Timeout = 2 * time.Second
			}
			s := start(t, cfg)
			r, err := s.Call(t.Context(), "fine", nil)
			if len(r.Problems) > 0 != (want.problem != "") || want.problem != "" && r.Problems[0].Code != want.problem {
				t.Errorf("%+v", r.Problems)
			}
			if r.Text != want.text || (err != nil) != (want.err != "") || err != nil && !strings.Contains(err.Error(), want.err) {
				t.Errorf("%+v, %v", r, err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errors.New("not any more"))
			if _, err := s.Call(ctx, "fine", nil); err == nil || mode == "plain" && err.Error() != "not any more" {
				t.Errorf("a cancelled call: %v", err)
			}
			if mode == "dies" {
				if _, err := s.Call(t.Context(), "fine", nil); !errors.Is(err, mcpclient.ErrDown) {
					t.Errorf("after its end: %v", err)
				}
			}
		})
	}
}

// TestUnknownContentOfURL: an answer by HTTP keeps what can be read, too.
func TestUnknownContentOfURL(t *testing.T) {
	for _, kind := range []string{"application/json", "text/event-stream"} {
		s := start(t, web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var m struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
			}
			if json.NewDecoder(r.Body).Decode(&m) != nil || m.ID == nil {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			w.Header().Set("Content-Type", kind)
			before, after := "event: message\ndata: ", "\n\n"
			if kind == "application/json" {
				before, after = "", ""
			}
			_, _ = fmt.Fprint(w, before, rawAnswer("unknown content", m.Method, string(m.ID)), after)
		})))
		if r, err := s.Call(t.Context(), "fine", nil); err != nil || !strings.Contains(r.Text, "\nafter it\n") || len(r.Problems) != 4 {
			t.Errorf("%s: %+v, %v", kind, r, err)
		}
	}
}

// TestHostileURLs: what answers at a URL and is no server of the protocol is down, with a reason that names no header.
func TestHostileURLs(t *testing.T) {
	endless := func(kind, chunk string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			for {
				if _, err := w.Write([]byte(chunk)); err != nil {
					return
				}
			}
		}
	}
	for name, handler := range map[string]http.HandlerFunc{
		"an error": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "out of order", http.StatusInternalServerError)
		},
		"a page": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>"))
		},
		"broken JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"jsonrpc":`))
		},
		"endless JSON":     endless("application/json", strings.Repeat(" ", 1<<16)),
		"an endless event": endless("text/event-stream", "data: "+strings.Repeat("x", 1<<16)),
		"events of no sense": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("data: {}\n\n"))
		},
		"it closes at once": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"an unknown encoding": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("no gzip"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, web(t, handler))
			l := s.Listing()
			if len(l.Problems) != 1 || l.Problems[0].Code != mcpclient.CodeDown || strings.Contains(l.Problems[0].Message, "secret") || len(l.Problems[0].Message) > 1000 || len(l.Tools) > 0 {
				t.Errorf("%.2000v", l)
			}
			if _, err := s.Call(t.Context(), "fine", nil); !errors.Is(err, mcpclient.ErrDown) {
				t.Errorf("a call: %v", err)
			}
		})
	}
}
