// Package mcpserver serves plugins' tools, and nothing else, over the Model Context Protocol, for agents that accept tools
// no other way. It knows only the protocol. [Call] leads to the gateway's methods mcp/tools and mcp/call, in this process
// or over a connection; they decide what a caller may see and do, and what is recorded.
//
// It keeps no sessions: each request is independent, as in the protocol of 2026-07-28; older clients do not notice.
//
// Stability: internal.
package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/grapnelhq/grapnel/phases"
)

// The gateway's methods for tools.
const (
	MethodTools = "mcp/tools"
	MethodCall  = "mcp/call"
)

// Call calls a method of the gateway.
type Call func(ctx context.Context, method string, params, result any) error

// Place says where the calls of a client belong.
type Place struct {
	WorkspaceID string `json:"workspace_id,omitempty" jsonschema:"local if absent, which is made if it is missing"`
	ThreadID    string `json:"thread_id,omitempty"    jsonschema:"mcp if absent"`
	Dir         string `json:"dir,omitempty"          jsonschema:"the working directory, which must lie below one of the gateway's roots"`
}

// ToolCall are the params of mcp/call.
type ToolCall struct {
	Place

	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// Tools is the result of mcp/tools.
type Tools struct {
	Tools []phases.Tool `json:"tools" jsonschema:"by name, those of hidden domains too: a client of this kind has its own ways to keep them from a prompt"`
}

// called has the needed fields of the result of mcp/call.
type called struct {
	Text    string `json:"text"`
	IsError bool   `json:"is_error"`
	Refused *struct {
		Text string `json:"text"`
	} `json:"refused"`
	DecisionRef *phases.DecisionRef `json:"decision_ref"`
}

// New returns a server for clients in one place.
func New(version string, at Place, call Call) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "grapnel", Title: "Grapnel", Version: version}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch p := req.GetParams().(type) {
			case *mcp.ListToolsParams:
				return list(ctx, at, call)
			case *mcp.CallToolParamsRaw:
				return run(ctx, at, p, call)
			default:
				return next(ctx, method, req)
			}
		}
	})
	return s
}

func list(ctx context.Context, at Place, call Call) (mcp.Result, error) {
	var got Tools
	if err := call(ctx, MethodTools, at, &got); err != nil {
		return nil, err
	}
	res := &mcp.ListToolsResult{
		// The tools are those of one caller, and another turn may have others. The SDK fills in what is missing for its
		// own handlers only, and Claude Code refuses a list whose scope is empty.
		Cacheable: mcp.Cacheable{CacheScope: "private"},
		Tools:     make([]*mcp.Tool, 0, len(got.Tools)),
	}
	for i := range got.Tools {
		t := &got.Tools[i]
		schema := t.InputSchema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		res.Tools = append(res.Tools, &mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: schema})
	}
	return res, nil
}

// run makes one call. A refusal is a result that the model reads.
func run(ctx context.Context, at Place, p *mcp.CallToolParamsRaw, call Call) (mcp.Result, error) {
	var got called
	if err := call(ctx, MethodCall, ToolCall{Place: at, Tool: p.Name, Arguments: p.Arguments}, &got); err != nil {
		return nil, err
	}
	if got.Refused != nil {
		got.Text, got.IsError = got.Refused.Text, true
	}
	res := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: got.Text}}, IsError: got.IsError}
	if got.DecisionRef != nil {
		res.Meta = mcp.Meta{"io.grapnel/decision_ref": got.DecisionRef}
	}
	return res, nil
}

const (
	maxBody   = 1 << 20
	writeTime = 5 * time.Minute // for the call and its answer
)

// Handler serves Streamable HTTP. of returns the place of a request's calls, and the function that makes them. The caller
// must have checked Host, Origin and token.
func Handler(version string, of func(r *http.Request) (Place, Call)) http.Handler {
	inner := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		at, call := of(r)
		return New(version, at, call)
	}, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, DisableLocalhostProtection: true, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // a server without deadlines has its own
		inner.ServeHTTP(w, r)
	})
}
