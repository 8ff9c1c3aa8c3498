package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/store"
)

// bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// mcpSession connects as an agent does.
func mcpSession(t *testing.T, s *served, token, query, version string) (*mcp.ClientSession, error) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: "http://" + s.addr + mcpPath + query, HTTPClient: &http.Client{Transport: bearer(token)}, MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err == nil {
		t.Cleanup(func() { _ = session.Close() }) // the gateway may be gone
	}
	return session, err
}

// toolGuard denies calls whose arguments say so, and brings a hidden tool.
func toolGuard() *sdk.Plugin {
	return &sdk.Plugin{Name: "guard", Version: "1.0.0", Hooks: []sdk.Hook{{
		Name: "calls", Kinds: []phases.Kind{phases.KindDecision}, Role: phases.RoleValidate, Needs: []string{phases.NeedsNothing},
		ToolPreCall: func(_ context.Context, _ *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
			return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "no " + in.Tool + " today"})
		},
	}}}
}

// TestMCP: an agent lists and calls tools of plugins, and what it did is on record, with the guard's verdict.
func TestMCP(t *testing.T) {
	t.Parallel()

	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-03-26"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			log, tree := logStore(t), storetest.Tree(t, time.Now)
			s := serve(t, Options{Tree: tree, Engine: engine(t, tree, log), Log: log})
			session := must(mcpSession(t, s, "", "?thread=th", version))(t)
			if got := session.InitializeResult(); got.ProtocolVersion != version || got.ServerInfo.Name != "grapnel" || got.Capabilities.Tools == nil {
				t.Errorf("the server is %+v", got)
			}
			list, err := session.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "measure" {
				t.Fatalf("tools %+v, %v", list, err)
			}
			if kept, err := log.List(t.Context(), store.Filter{}); err != nil || len(kept) != 0 {
				t.Errorf("listing tools left the records %+v, %v", kept, err)
			}
			res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "measure", Arguments: map[string]any{"a": 1}})
			if err != nil || res.IsError || said(res) != `th{"a":1}` {
				t.Fatalf("%+v, %v", res, err)
			}
			res, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "mesure"})
			if err != nil || !res.IsError || !strings.Contains(said(res), `did you mean "measure"?`) {
				t.Errorf("an unknown tool: %+v, %v", res, err)
			}
			calls := recorded(t, log, "th")
			if !slices.Contains(calls, "measure of house: ") || !slices.Contains(calls, "mesure of : ") {
				t.Errorf("on record are %q", calls)
			}
		})
	}
}

func said(r *mcp.CallToolResult) string {
	if len(r.Content) != 1 {
		return ""
	}
	text, _ := r.Content[0].(*mcp.TextContent)
	return text.Text
}

// recorded are the calls in the records of a thread.
func recorded(t *testing.T, log *store.Store, thread string) (calls []string) {
	t.Helper()
	for _, m := range records(t, log, thread) {
		for _, c := range m.Calls {
			calls = append(calls, c.Tool+" of "+c.Owner+": "+string(c.Verdict))
		}
	}
	return calls
}

// TestMCPGuarded: a plugin's denial reaches the model as a result, and the tool is not called.
func TestMCPGuarded(t *testing.T) {
	t.Parallel()

	log, tree := logStore(t), storetest.Tree(t, time.Now)
	s := serve(t, Options{Tree: tree, Engine: engine(t, tree, log, toolGuard()), Log: log})
	session := must(mcpSession(t, s, "", "", ""))(t)
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "measure"})
	if err != nil || !res.IsError || !strings.Contains(said(res), "no measure today") {
		t.Errorf("%+v, %v", res, err)
	}
	if calls := recorded(t, log, mcpThread); !slices.Equal(calls, []string{"measure of house: deny"}) {
		t.Errorf("on record are %q", calls)
	}
}

// TestMCPCallers: tokens, rights, workspaces, Host and Origin count as for every call.
func TestMCPCallers(t *testing.T) {
	t.Parallel()

	tree := storetest.Tree(t, time.Now)
	s := serve(t, Options{Tree: tree, Engine: engine(t, tree, nil), Tokens: []Token{
		token("good", []string{"local"}, rpc.DispatchRight), token("read", []string{"*"}, rpc.ReadRight),
	}})
	for name, test := range map[string]struct{ token, query, connect, list string }{
		"the right one":     {"good", "", "", ""},
		"none":              {"", "", "Unauthorized", ""},
		"a wrong one":       {"bad", "", "Unauthorized", ""},
		"one that may read": {"read", "", "Unauthorized", ""},
		"another workspace": {"good", "?workspace=other", "", `there is no workspace "other"`},
		"a directory":       {"good", "?dir=/etc", "", "dir"},
	} {
		session, err := mcpSession(t, s, test.token, test.query, "")
		if !says(err, test.connect) {
			t.Errorf("%s: connect: %v, want %q", name, err, test.connect)
		}
		if err != nil {
			continue
		}
		if _, err := session.ListTools(t.Context(), nil); !says(err, test.list) {
			t.Errorf("%s: list: %v, want %q", name, err, test.list)
		}
	}
	for _, header := range []string{"Host", "Origin"} {
		req := must(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.addr+mcpPath, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)))(t)
		req.Header.Set("Authorization", "Bearer good")
		req.Header.Set(header, "http://attacker.example")
		if header == "Host" {
			req.Host = "attacker.example"
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("a foreign %s: status %d", header, resp.StatusCode)
		}
	}
}

func says(err error, want string) bool {
	if want == "" {
		return err == nil
	}
	return err != nil && strings.Contains(err.Error(), want)
}

// TestMCPHidden: a client without request_tools sees and calls hidden tools.
func TestMCPHidden(t *testing.T) {
	t.Parallel()

	deep := phases.Tool{Name: "deep", HiddenDomain: "mine"}
	plugin := house()
	plugin.Tools = append(plugin.Tools, sdk.Tool{Tool: deep, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) {
		return &phases.ToolResult{Content: json.RawMessage(`{"metres":3}`)}, nil
	}})
	plugin.Hooks[1].PreTools = func(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
		return sdk.Reply(&phases.ToolBundle{BundleID: "house", Tools: []phases.Tool{measure(), deep}})
	}
	tree := storetest.Tree(t, time.Now)
	s := serve(t, Options{Tree: tree, Engine: engineWith(t, tree, nil, time.Now, plugin)})
	session := must(mcpSession(t, s, "", "", ""))(t)
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 2 || list.Tools[0].Name != "deep" {
		t.Fatalf("%+v, %v", list, err)
	}
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "deep"})
	if err != nil || res.IsError || said(res) != `{"metres":3}` {
		t.Errorf("%+v, %v", res, err)
	}
}
