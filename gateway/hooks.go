package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/rpc"
)

// hookPath is where hooks of agents post their payloads: hookPath + HOST, with ?event=EVENT for the event that the hook is
// installed for, and ?workspace=ID for another workspace than local.
const hookPath = "/hook/"

const hookWorkspace = "local"

type (
	hookParams struct {
		Host      string          `json:"host"                   jsonschema:"the agent: amp, claude-code, codex, copilot, cursor, gemini, opencode or vscode"`
		Workspace string          `json:"workspace_id,omitempty" jsonschema:"where its sessions are threads; local if absent, which is made if it is missing"`
		Event     string          `json:"event,omitempty"        jsonschema:"the event that the hook is installed for; a payload that names another one is refused"`
		Payload   json.RawMessage `json:"payload"                jsonschema:"what the agent gave its hook"`
		Actor     string          `json:"actor,omitempty"`
	}
	hookResult struct {
		Answer json.RawMessage `json:"answer" jsonschema:"what the agent takes for an answer; null where there is nothing to say"`
	}
)

func (g *Gateway) hookMethods() []rpc.Method {
	event := method(group{}, "hook/event", rpc.DispatchRight,
		"Runs the phases that an event of an agent's hook stands for, and returns the answer that this agent takes; see docs/BRIDGES.md. POST /hook/HOST does the same for agents that call a server.",
		g.hookEvent)
	event.Foreign = "payload"
	return []rpc.Method{event}
}

func (g *Gateway) hookEvent(ctx context.Context, c call[hookParams]) (hookResult, error) {
	p := &c.params
	if g.bridge == nil {
		return hookResult{}, errNoEngine
	}
	e, err := agents.Decode(p.Host, p.Payload)
	if err != nil {
		return hookResult{}, &rpc.Error{Code: rpc.CodeInvalid, Message: err.Error(), Err: err}
	}
	if p.Event != "" && p.Event != e.Name {
		return hookResult{}, &rpc.Error{
			Code: rpc.CodeInvalid, Data: map[string]any{"decides": e.Step.Decides()},
			Message: fmt.Sprintf("the hook is installed for %s of %s, and the payload names the event %s: correct the line that calls the hook, or run grapnel install %[2]s", p.Event, p.Host, e.Name),
		}
	}
	if e.Unknown {
		g.unknownEvent(ctx, c, e)
	}
	if e.Step == agent.StepNone {
		return hookResult{Answer: agents.Encode(&e, &agent.Outcome{})}, nil // some agents want an answer all the same
	}
	if e.Step == agent.StepConfig && g.opts.ConfigChange != nil {
		e.Refused = g.opts.ConfigChange(&e)
	}
	where, err := g.completeContext(ctx, c.Caller, "payload", e.Place(cmp.Or(p.Workspace, hookWorkspace)))
	if err != nil {
		return hookResult{}, err
	}
	if g.opts.HasTools != nil {
		e.Tools = func() bool { return g.opts.HasTools(&e) }
	}
	g.awaitPlugins(ctx)
	out, err := g.bridge.Handle(ctx, where, &e)
	if err != nil {
		return hookResult{}, engineError(err)
	}
	return hookResult{Answer: agents.Encode(&e, &out)}, nil
}

const mostUnknown = 256

// unknownEvents are the names that were said to be unknown.
type unknownEvents struct {
	sync.Mutex

	names []string
}

// unknownEvent leaves a line in the log, and one in the session's record, for each name that an agent's contract lacks.
func (g *Gateway) unknownEvent(ctx context.Context, c call[hookParams], e agent.Event) {
	name := e.Host + " " + e.Name
	g.unknown.Lock()
	said := slices.Contains(g.unknown.names, name) || len(g.unknown.names) == mostUnknown
	if !said {
		g.unknown.names = append(g.unknown.names, name)
	}
	g.unknown.Unlock()
	if said {
		return
	}
	g.opts.Logger.Warn("an agent's event is unknown: no plugin sees it; see docs/BRIDGES.md for those that are known", slog.String("agent", e.Host), slog.String("event", e.Name))
	if e.SessionID == "" {
		return
	}
	e.Step = agent.StepNote
	where, err := g.completeContext(ctx, c.Caller, "payload", e.Place(cmp.Or(c.params.Workspace, hookWorkspace)))
	if err == nil {
		_, err = g.bridge.Handle(ctx, where, &e)
	}
	if err != nil {
		g.opts.Logger.Warn("an unknown event is not on record", slog.String("event", e.Name), slog.Any("error", err))
	}
}

// serveHook makes a call of hook/event of a request whose body is the payload. It answers 200 with the agent's answer, or
// with nothing, and else with the error as a text, which an agent takes for a failed hook.
func (g *Gateway) serveHook(w http.ResponseWriter, r *http.Request) {
	call, err := json.Marshal(selfCall("hook/event", map[string]string{
		"host": r.PathValue("host"), "event": r.URL.Query().Get("event"), "workspace_id": r.URL.Query().Get("workspace"),
	}))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body := bufio.NewReader(r.Body)
	if mark, _ := body.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = body.Discard(len(byteOrderMark)) // they are there
	}
	open := bytes.TrimSuffix(call, []byte("}}")) // of the params and the call
	if e := r.URL.Query().Get("event"); agents.IsRequest(r.PathValue("host"), e) {
		r = r.WithContext(rpc.WithBody(r.Context(), mostRequest))
	}
	g.self(r.Context(), r, io.MultiReader(bytes.NewReader(open), strings.NewReader(`,"payload":`), body, strings.NewReader("}}")), -1).writeHook(w)
}

// mostRequest is how many bytes the record of a request to a model may have.
const mostRequest = 8 << 20

const byteOrderMark = "\ufeff"

// selfCall is a call that the gateway makes of itself. The params are the last member.
func selfCall(method string, params any) any {
	return struct {
		JSONRPC string `json:"jsonrpc"`
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", 1, method, params}
}

// self answers a call as /rpc does, with the credentials of a request, until ctx or the request ends.
func (g *Gateway) self(ctx context.Context, r *http.Request, call io.Reader, length int64) *captured {
	within, cancel := context.WithCancel(r.Context()) // it knows the socket
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	inner := r.Clone(within) //nolint:contextcheck // that of the request, which ends with ctx
	inner.Method, inner.URL, inner.Body, inner.ContentLength = http.MethodPost, &url.URL{Path: "/rpc"}, io.NopCloser(call), length
	inner.Header.Set("Content-Type", "application/json")
	inner.Header.Del("Content-Length")
	answer := &captured{header: http.Header{}}
	g.rpc.Handler().ServeHTTP(answer, inner)
	return answer
}

// captured is an answer of JSON-RPC.
type captured struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (c *captured) Header() http.Header { return c.header }

func (c *captured) WriteHeader(status int) { c.status = cmp.Or(c.status, status) }

func (c *captured) Write(p []byte) (int, error) {
	c.status = cmp.Or(c.status, http.StatusOK)
	return c.body.Write(p)
}

// writeHook answers an agent.
func (c *captured) writeHook(w http.ResponseWriter) {
	var reply struct {
		Result *hookResult `json:"result"`
		Error  *struct {
			Message string `json:"message"`
			Data    struct {
				Decides bool `json:"decides"`
			} `json:"data"`
		} `json:"error"`
	}
	err := json.Unmarshal(c.body.Bytes(), &reply)
	switch {
	case err == nil && reply.Error != nil && reply.Error.Data.Decides:
		http.Error(w, reply.Error.Message, http.StatusConflict)
	case err == nil && reply.Error != nil && c.status == http.StatusOK:
		http.Error(w, reply.Error.Message, http.StatusUnprocessableEntity)
	case err == nil && reply.Error != nil:
		http.Error(w, reply.Error.Message, c.status)
	case err != nil || reply.Result == nil:
		http.Error(w, "the gateway could not answer", http.StatusInternalServerError)
	case len(reply.Result.Answer) == 0 || string(reply.Result.Answer) == "null":
		w.WriteHeader(http.StatusOK)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(reply.Result.Answer))) // grapnel-hook knows by it that nothing is missing
		_, _ = w.Write(reply.Result.Answer)                                      // the agent has gone
	}
}
