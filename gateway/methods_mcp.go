package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/bridge"
	"github.com/grapnelhq/grapnel/internal/mcpserver"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
)

// mcpPath is where clients of the Model Context Protocol connect (Streamable HTTP), with ?workspace=ID, &thread=ID and
// &dir=PATH for another place than the thread mcp of the workspace local, without a directory.
const mcpPath = "/mcp"

const mcpThread = "mcp"

type (
	mcpToolsParams struct {
		mcpserver.Place

		Actor string `json:"actor,omitempty"`
	}
	mcpCallParams struct {
		mcpserver.ToolCall

		Actor string `json:"actor,omitempty"`
	}
)

func (g *Gateway) mcpMethods() []rpc.Method {
	of := group{home: true}
	return []rpc.Method{
		method(of, mcpserver.MethodTools, rpc.DispatchRight,
			"Lists the tools of plugins for a client that has no turns, such as one of the Model Context Protocol: a turn begins, is judged (turn.pre_policy), has its tools brought, and ends. It is recorded only if something was not allowed, was rewritten, failed or was audited.",
			g.mcpTools),
		method(of, mcpserver.MethodCall, rpc.DispatchRight,
			"Makes one call of a plugin's tool, as tool/call does, in a turn of its own, which is judged before and ends with the call.",
			g.mcpCall),
	}
}

func (g *Gateway) mcpTools(ctx context.Context, c call[mcpToolsParams]) (*mcpserver.Tools, error) {
	list := &mcpserver.Tools{Tools: []phases.Tool{}}
	err := g.ownTurn(ctx, c.Caller, c.params.Place, bridge.Prompt{}, func(t *loop.Turn, out *phases.Outcome) error {
		t.OnlyLooks() // nobody has the thread, and an agent asks with each start
		for i := range out.Merged.Tools {
			list.Tools = append(list.Tools, out.Merged.Tools[i].Definition)
		}
		slices.SortFunc(list.Tools, func(a, b phases.Tool) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
	return list, err
}

func (g *Gateway) mcpCall(ctx context.Context, c call[mcpCallParams]) (*calledTool, error) {
	p := &c.params
	call, err := (&toolParams{Tool: p.Tool, Arguments: p.Arguments}).call()
	if err != nil {
		return nil, err
	}
	var done *calledTool
	for prompts := g.prompts(p.Place); done == nil && err == nil; prompts = prompts[1:] {
		err = g.ownTurn(ctx, c.Caller, p.Place, prompts[0], func(t *loop.Turn, out *phases.Outcome) (err error) {
			offered := slices.ContainsFunc(out.Merged.Tools, func(m phases.MergedTool) bool { return m.Name == call.Tool })
			if offered && len(prompts) > 1 {
				t.OnlyLooks()
				return nil
			}
			if done, err = runTool(ctx, t, call); err == nil && !offered && prompts[0].Text != "" && len(out.Diagnostics) == 0 {
				done.Text += "; what the user asks for now may have taken it away: do not try again in this turn"
			}
			return err
		})
	}
	return done, err
}

// prompts returns the prompts under way of the agents that work where a call is made, or of all if none does there: a call
// does not say which agent makes it, so what one of the users does not want is not done. It returns an empty one for none.
func (g *Gateway) prompts(at mcpserver.Place) []bridge.Prompt {
	if g.bridge == nil {
		return []bridge.Prompt{{}}
	}
	dir, _, _ := g.inRoots(at.Dir) // ownTurn says what is wrong with it
	all := g.bridge.Prompts(at.WorkspaceID)
	near := slices.DeleteFunc(slices.Clone(all), func(p bridge.Prompt) bool { return !below(p.Dir, dir) && !below(dir, p.Dir) })
	switch {
	case len(near) > 0:
		all = near
	case len(all) == 0:
		return []bridge.Prompt{{}}
	}
	for i := range all[1:] { // no decision refers to the prompt of an agent that may be another
		all[0].Ref, all[i+1].Ref = nil, nil
	}
	return all
}

// ownTurn begins a turn for a user's prompt, has it judged and its tools brought, and ends it after work. What has happened is
// on record when it returns.
func (g *Gateway) ownTurn(ctx context.Context, c *rpc.Caller, at mcpserver.Place, of bridge.Prompt, work func(t *loop.Turn, out *phases.Outcome) error) error {
	where, err := g.completeTurn(ctx, c, phases.Context{
		WorkspaceID: at.WorkspaceID, ThreadID: cmp.Or(at.ThreadID, mcpThread), TurnID: rand.Text(), Mode: phases.ModeAgent, Dir: at.Dir,
	})
	if err != nil {
		return err
	}
	g.awaitPlugins(ctx)
	begun, err := g.opts.Engine.BeginTurn(ctx, where)
	if err != nil {
		return engineError(err)
	}
	begun.Under(of.Ref)
	t := loop.Wrap(begun, loop.Options{Ask: answered})
	err = func() error {
		if err := judged(t.Dispatch(ctx, &phases.PrePolicyInput{UserText: phases.T(of.Text)})); err != nil {
			return err
		}
		out, err := t.Dispatch(ctx, &phases.PreToolsInput{ToolCalling: true})
		if err != nil {
			return engineError(err)
		}
		for i := range out.Merged.Tools {
			if d := out.Merged.Tools[i].Definition.HiddenDomain; d != "" {
				t.RequestTools(d)
			}
		}
		return work(t, out)
	}()
	_, ended := t.End(ctx, &phases.PostTurnInput{Status: endOf(err)})
	return cmp.Or(err, ended)
}

// judged is the error of a turn that a plugin denied, or that failed closed.
func judged(out *phases.Outcome, err error) error {
	if err != nil {
		return engineError(err)
	}
	if d := out.Decision; d != nil && d.Verdict != phases.VerdictAllow {
		why := string(d.Verdict)
		for _, r := range d.Reasons {
			why = r.Subscription + ": " + r.Reason
		}
		why = (&agent.Outcome{Reason: why, DecisionRef: out.DecisionRef}).Referring()
		return rpc.Errorf(rpc.CodeInvalid, "the turn was refused: %s", why)
	}
	return nil
}

func endOf(err error) phases.TurnStatus {
	if err != nil {
		return phases.TurnFailed
	}
	return phases.TurnSucceeded
}

// serveMCP answers clients of the protocol by calls of this gateway's own methods, made with the client's request: its
// token, limits and rights count for each.
func (g *Gateway) serveMCP() http.Handler {
	return mcpserver.Handler(g.opts.Version, func(r *http.Request) (mcpserver.Place, mcpserver.Call) {
		q := r.URL.Query()
		at := mcpserver.Place{WorkspaceID: q.Get("workspace"), ThreadID: q.Get("thread"), Dir: q.Get("dir")}
		return at, func(ctx context.Context, method string, params, result any) error {
			return g.callSelf(ctx, r, method, params, result)
		}
	})
}

// callSelf makes a call with the credentials of a request.
func (g *Gateway) callSelf(ctx context.Context, r *http.Request, method string, params, result any) error {
	body, err := json.Marshal(selfCall(method, params))
	if err != nil {
		return err
	}
	answer := g.self(ctx, r, bytes.NewReader(body), int64(len(body)))
	var reply struct {
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	switch err := json.Unmarshal(answer.body.Bytes(), &reply); {
	case err != nil:
		return fmt.Errorf("the gateway could not answer: %w", err)
	case reply.Error != nil:
		return errors.New(reply.Error.Message)
	}
	return json.Unmarshal(reply.Result, result)
}
