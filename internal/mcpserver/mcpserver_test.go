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

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

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
	answer := `{"tools":[{"name":"bare"},{"name":"measure","description":"How long.","input_schema":{"type":"object","properties":{"a":{}}}}]}`
	if method == mcpserver.MethodCall {
		switch params.(mcpserver.ToolCall).Tool { //nolint:forcetypeassert // it panics, and the test fails
		case "refused":
			answer = `{"text":"ignored","refused":{"text":"not today"}}`
		case "failed":
			answer = `{"text":"no such file","is_error":true}`
		case "broken":
			return errors.New("the gateway is gone")
		default:
			answer = `{"text":"3 m"}`
		}
	}
	return json.Unmarshal([]byte(answer), result)
}

var place = mcpserver.Place{WorkspaceID: "w", ThreadID: "t", Dir: "/d"}

// over connects a client of the SDK to the server, by a pair of streams or by HTTP.
func over(t *testing.T, g *gateway, http bool) *mcp.ClientSession {
	t.Helper()
	var transport mcp.Transport
	if http {
		srv := httptest.NewServer(handler(g))
		t.Cleanup(srv.Close)
		transport = &mcp.StreamableClientTransport{Endpoint: srv.URL, MaxRetries: -1}
	} else {
		fromClient, toServer := io.Pipe()
		fromServer, toClient := io.Pipe()
		var serving sync.WaitGroup
		serving.Go(func() {
			if err := mcpserver.Serve(t.Context(), mcpserver.New("1.2.3", place, g.call), fromClient, toClient); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(func() { _ = toServer.Close(); serving.Wait() })
		transport = &mcp.IOTransport{Reader: fromServer, Writer: toServer}
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() }) // the server may be gone
	return session
}

func handler(g *gateway) http.Handler {
	return mcpserver.Handler("1.2.3", func(*http.Request) (mcpserver.Place, mcpserver.Call) { return place, g.call })
}

// TestServer: what an agent asks becomes calls of the gateway, in the client's place; a refusal is a result.
func TestServer(t *testing.T) {
	t.Parallel()

	for name, http := range map[string]bool{"streams": false, "HTTP": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			g := &gateway{}
			session := over(t, g, http)
			if hello := session.InitializeResult(); hello.ServerInfo.Version != "1.2.3" || hello.Capabilities.Tools == nil || hello.Capabilities.Prompts != nil || hello.Capabilities.Resources != nil {
				t.Errorf("the server is %+v", hello)
			}
			list, err := session.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if list.CacheScope != "private" || list.TTLMs != 0 {
				t.Errorf("the list may be kept for %d ms by %q", list.TTLMs, list.CacheScope)
			}
			got, err := json.Marshal(list.Tools)
			want := `[{"inputSchema":{"properties":{},"type":"object"},"name":"bare"},{"description":"How long.","inputSchema":{"properties":{"a":{}},"type":"object"},"name":"measure"}]`
			if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			for _, test := range []struct {
				tool, text string
				isError    bool
			}{{"measure", "3 m", false}, {"refused", "not today", true}, {"failed", "no such file", true}} {
				r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: test.tool, Arguments: map[string]any{"a": 1}})
				if err != nil || r.IsError != test.isError || len(r.Content) != 1 || r.Content[0].(*mcp.TextContent).Text != test.text { //nolint:forcetypeassert // it panics, and the test fails
					t.Errorf("%s: %+v, %v", test.tool, r, err)
				}
			}
			if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "broken"}); err == nil || !strings.Contains(err.Error(), "the gateway is gone") {
				t.Errorf("without a gateway: %v", err)
			}
			if r, err := session.ListPrompts(t.Context(), nil); err == nil && len(r.Prompts) > 0 {
				t.Errorf("it has prompts: %+v", r)
			}
			call := `mcp/call {"workspace_id":"w","thread_id":"t","dir":"/d","tool":"measure","arguments":{"a":1}}`
			if g.asked[0] != `mcp/tools {"workspace_id":"w","thread_id":"t","dir":"/d"}` || g.asked[1] != call || len(g.asked) != 5 {
				t.Errorf("it asked %q", g.asked)
			}
		})
	}
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
