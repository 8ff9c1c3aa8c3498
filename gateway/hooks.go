package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/grapnelhq/grapnel/bridge"
	"github.com/grapnelhq/grapnel/internal/rpc"
)

// HookPath is where hooks of agents post their payloads: HookPath + HOST, with ?workspace=ID for another workspace than
// local.
const HookPath = "/hook/"

const hookWorkspace = "local"

type (
	hookParams struct {
		Host      string          `json:"host"                   jsonschema:"the agent: amp, claude-code, codex, copilot, cursor, gemini, opencode or vscode"`
		Workspace string          `json:"workspace_id,omitempty" jsonschema:"where its sessions are threads; local if absent, which is made if it is missing"`
		Payload   json.RawMessage `json:"payload"                jsonschema:"what the agent gave its hook"`
		Actor     string          `json:"actor,omitempty"`
	}
	hookResult struct {
		Answer json.RawMessage `json:"answer" jsonschema:"what the agent takes for an answer; null where there is nothing to say"`
	}
)

func (g *Gateway) hookMethods() []rpc.Method {
	event := method("hook/event", rpc.DispatchRight,
		"Runs the phases that an event of an agent's hook stands for, and returns the answer that this agent takes; see docs/BRIDGES.md. POST /hook/HOST does the same for agents that call a server.",
		g.hookEvent)
	event.Foreign = "payload"
	return []rpc.Method{event}
}

func (g *Gateway) hookEvent(ctx context.Context, c call[hookParams]) (hookResult, error) {
	p := &c.params
	if g.bridge == nil {
		return hookResult{}, errNoEngine()
	}
	e, err := bridge.Decode(p.Host, p.Payload)
	if err != nil {
		return hookResult{}, &rpc.Error{Code: rpc.CodeInvalid, Message: err.Error(), Err: err}
	}
	if e.Step == bridge.StepNone {
		answer, err := bridge.Encode(&e, &bridge.Outcome{}) // some hosts want one all the same
		return hookResult{Answer: answer}, err
	}
	if e.Step == bridge.StepConfig && g.opts.ConfigChange != nil {
		e.Refused = g.opts.ConfigChange(&e)
	}
	where, err := g.completeContext(ctx, c.Caller, "payload", e.Place(cmp.Or(p.Workspace, hookWorkspace)))
	if err != nil {
		return hookResult{}, err
	}
	if (e.Step == bridge.StepPrompt || e.Step == bridge.StepSubagent) && g.opts.HasTools != nil {
		e.Tools = g.opts.HasTools(&e)
	}
	g.awaitPlugins(ctx)
	out, err := g.bridge.Handle(ctx, where, &e)
	if err != nil {
		return hookResult{}, engineError(err)
	}
	answer, err := bridge.Encode(&e, &out)
	return hookResult{Answer: answer}, err
}

// serveHook makes a call of hook/event of a request whose body is the payload. It answers 200 with the agent's answer, or
// with nothing, and else with the error as a text, which an agent takes for a failed hook.
func (g *Gateway) serveHook(w http.ResponseWriter, r *http.Request) {
	head, err := json.Marshal(struct {
		JSONRPC string `json:"jsonrpc"`
		ID      int    `json:"id"`
		Method  string `json:"method"`
	}{"2.0", 1, "hook/event"})
	params, err2 := json.Marshal(struct {
		Host      string `json:"host"`
		Workspace string `json:"workspace_id,omitempty"`
	}{r.PathValue("host"), r.URL.Query().Get("workspace")})
	if err := cmp.Or(err, err2); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body := bufio.NewReader(r.Body)
	if mark, _ := body.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = body.Discard(len(byteOrderMark)) // they are there
	}
	before := string(head[:len(head)-1]) + `,"params":` + string(params[:len(params)-1]) + `,"payload":`
	inner := r.Clone(r.Context())
	inner.URL, inner.Body, inner.ContentLength = &url.URL{Path: "/rpc"}, io.NopCloser(io.MultiReader(bytes.NewReader([]byte(before)), body, bytes.NewReader([]byte("}}")))), -1
	inner.Header.Set("Content-Type", "application/json")
	inner.Header.Del("Content-Length")
	answer := captured{header: http.Header{}}
	g.rpc.Handler().ServeHTTP(&answer, inner)
	answer.writeHook(w)
}

const byteOrderMark = "\ufeff"

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
		} `json:"error"`
	}
	err := json.Unmarshal(c.body.Bytes(), &reply)
	switch {
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
