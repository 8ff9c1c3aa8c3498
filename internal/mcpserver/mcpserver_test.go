package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/internal/mcpserver"
)

// gateway answers for a gateway, and keeps what it was asked.
type gateway struct {
	mu    sync.Mutex
	asked []string
}

func (g *gateway) call(_ context.Context, method string, params, result any) error {
	text, err := json.Marshal(params)
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.asked = append(g.asked, method+" "+string(text))
	g.mu.Unlock()
	return json.Unmarshal([]byte(`{"text":"3 m"}`), result)
}

var place = mcpserver.Place{WorkspaceID: "w", ThreadID: "t", Dir: "/d"}

func handler(g *gateway) http.Handler {
	return mcpserver.Handler("1.2.3", func(*http.Request) (mcpserver.Place, mcpserver.Call) { return place, g.call })
}

// atEnd calls a function when everything was read.
type atEnd struct {
	io.Reader

	ended func()
}

func (a *atEnd) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		a.ended()
	}
	return n, err
}

// TestLastAnswers: a client that has ended its input gets the answers to what it asked, and one that is gone is not waited for.
func TestLastAnswers(t *testing.T) {
	t.Parallel()

	const asks = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"pipe","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"measure","arguments":{}}}
{"jsonrpc":"2.0","id":"three","method":"tools/call","params":{"name":"measure","arguments":{}}}
`
	g := &gateway{}
	ended := make(chan struct{})
	in := &atEnd{strings.NewReader(asks), sync.OnceFunc(func() { close(ended) })}
	late := func(ctx context.Context, method string, params, result any) error {
		<-ended
		return g.call(ctx, method, params, result)
	}
	var out bytes.Buffer
	err := mcpserver.Serve(t.Context(), mcpserver.New("1", place, late), in, &out)
	if n := strings.Count(out.String(), `"text":"3 m"`); err != nil || n != 2 {
		t.Errorf("%d answers of 2, %v:\n%s", n, err, out.String())
	}

	ctx, cancel := context.WithCancel(t.Context())
	in = &atEnd{strings.NewReader(asks), cancel}
	never := func(ctx context.Context, _ string, _, _ any) error {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := mcpserver.Serve(ctx, mcpserver.New("1", place, never), in, io.Discard); err != nil {
		t.Errorf("ended from outside: %v", err)
	}
}

// TestHostileClients: what is not the protocol, or is too long, is answered with an error, and asks the gateway nothing.
func TestHostileClients(t *testing.T) {
	t.Parallel()

	g := &gateway{}
	srv := httptest.NewServer(handler(g))
	t.Cleanup(srv.Close)
	for name, body := range map[string]string{
		"nothing": "", "no JSON": "hello", "half": `{"jsonrpc":"2.0","id":1,"method":"tools/`, "a number": "7", "null": "null",
		"2 MiB":            `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + strings.Repeat("x", 2<<20) + `"}}`,
		"deep":             `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + strings.Repeat("[", 100_000),
		"an answer":        `{"jsonrpc":"2.0","id":1,"result":{}}`,
		"an unknown call":  `{"jsonrpc":"2.0","id":1,"method":"../../etc"}`,
		"params of a list": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}`,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		answer, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if name != "an answer" && (err != nil || resp.StatusCode == http.StatusOK && !bytes.Contains(answer, []byte(`"error"`)) || len(answer) > 10<<10) {
			t.Errorf("%s: %s %.300s %v", name, resp.Status, answer, err)
		}
	}
	if len(g.asked) > 0 {
		t.Errorf("the gateway was asked %.500q", g.asked)
	}
	for name, text := range map[string]string{"garbage": "hello\n", "half a message": `{"jsonrpc":`, "nothing": ""} {
		var out bytes.Buffer
		err := mcpserver.Serve(t.Context(), mcpserver.New("1", place, g.call), strings.NewReader(text), &out)
		if bytes.Contains(out.Bytes(), []byte(`"result"`)) || name == "nothing" && err != nil {
			t.Errorf("%s: %v, %s", name, err, out.Bytes())
		}
	}
}
