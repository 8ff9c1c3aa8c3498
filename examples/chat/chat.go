package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/runtime"
)

// maxRounds bounds the requests of one turn: a model may call tools for ever.
const maxRounds = 8

type chat struct {
	options

	engine *runtime.Engine
	model  model
	count  func(string) int
	tokens *history.Estimator // learns from each usage what the model's provider charges
	past   []history.Entry
}

// session holds the whole conversation. Hidden tools that were requested stay available for the session.
func (c *chat) session(ctx context.Context) error {
	at := phases.Context{WorkspaceID: "demo", ThreadID: "chat", SessionID: "one", Mode: phases.ModeAgent, Dir: c.dir}
	sess, err := c.engine.StartSession(ctx, at, "startup")
	if err != nil {
		return err
	}
	for i, message := range c.messages {
		turn := at
		turn.TurnID = strconv.Itoa(i + 1)
		if err = c.turn(ctx, turn, message); err != nil {
			break
		}
	}
	_, ended := sess.End(ctx, "done")
	return errors.Join(err, ended)
}

// turn is the host's loop: begin, ask the model until it calls no more tools, end.
func (c *chat) turn(ctx context.Context, with phases.Context, message string) error {
	t, err := c.engine.BeginTurn(ctx, with)
	if err != nil {
		return err
	}
	said := []history.Entry{{TurnID: with.TurnID, Role: history.RoleUser, Text: message}}
	end := &phases.PostTurnInput{Status: phases.TurnSucceeded, UserText: phases.NewPreview(message, phases.MaxTurnText)}
	for round := 0; err == nil; round++ {
		if round == maxRounds {
			err = errors.New("the model does not stop calling tools")
			break
		}
		var reply history.Entry
		if reply, err = c.ask(ctx, t, said, &end.Usage); err != nil {
			break
		}
		said = append(said, reply)
		if len(reply.Calls) == 0 {
			break
		}
		said = append(said, c.answer(ctx, t, reply.Calls))
	}
	if err != nil {
		end.Status, end.Error = phases.TurnFailed, phases.NewPreview(err.Error(), phases.MaxTurnError)
	} else {
		answer := said[len(said)-1].Text
		fmt.Printf("user:  %s\nmodel: %s\n", message, answer)
		end.AssistantText = phases.NewPreview(answer, phases.MaxTurnText)
		c.past = append(c.past, said...)
	}
	_, ended := t.End(ctx, end) // always, or its configuration is never dropped
	return errors.Join(err, ended)
}

// ask is one round: compile the prompt, choose what fits of the past, send both, and report changes and usage.
func (c *chat) ask(ctx context.Context, t *runtime.Turn, said []history.Entry, sum *phases.Usage) (history.Entry, error) {
	provider, name := c.model.provider, c.model.name
	done, err := t.Compile(ctx, runtime.CompileInput{
		UserText: said[0].Text, Provider: provider, Model: name, ToolCalling: true,
		Order: compiler.Order(c.order),
	})
	if err != nil {
		return history.Entry{}, err
	}
	window, err := history.Select(
		history.Input{Entries: c.past, Fixed: fixed(done.Prompt), Tools: done.Tools, Turn: said},
		history.Settings{ContextTokens: c.context, ReserveTokens: c.reserve, Scale: c.tokens.Scale()}, c.count)
	if err != nil {
		return history.Entry{}, err
	}
	if len(window.Dropped) > 0 {
		fmt.Printf("       (%d entries of the past do not fit; compaction: %s)\n", len(window.Dropped), window.Compaction)
	}
	got, err := c.model.ask(ctx, providers.Request{
		Model: name, MaxTokens: c.reserve, Prompt: *done.Prompt, Sections: done.Manifest.Sections, Tools: done.Tools,
		History: window, Turn: said, AfterConversation: strings.Split(c.behind, ","),
	})
	if err != nil {
		return history.Entry{}, err
	}
	*sum = add(*sum, got.usage)
	c.tokens.Report(window, got.usage.InputTokens)
	got.entry.TurnID = said[0].TurnID
	return got.entry, errors.Join(t.ReportRequest(got.changes), t.ReportUsage(ctx, got.usage))
}

func fixed(p *compiler.Prompt) []string {
	texts := []string{p.FullText}
	for _, m := range slices.Concat(p.SystemMessages, p.UserMessages) {
		texts = append(texts, m.Text)
	}
	return texts
}

func add(a, b phases.Usage) phases.Usage {
	return phases.Usage{
		InputTokens: a.InputTokens + b.InputTokens, OutputTokens: a.OutputTokens + b.OutputTokens,
		CacheReadTokens: a.CacheReadTokens + b.CacheReadTokens, CacheWriteTokens: a.CacheWriteTokens + b.CacheWriteTokens,
	}
}

func (c *chat) answer(ctx context.Context, t *runtime.Turn, calls []history.Call) history.Entry {
	e := history.Entry{TurnID: t.Context().TurnID, Role: history.RoleTool}
	for _, call := range calls {
		fmt.Printf("       (calls %s %s)\n", call.Tool, call.Arguments)
		e.Results = append(e.Results, callTool(ctx, t, call))
	}
	return e
}

// callTool lets the plugins check a call, makes it, and lets them check the result.
func callTool(ctx context.Context, t *runtime.Turn, call history.Call) history.Result {
	result := func(text string, isError bool) history.Result {
		return history.Result{CallID: call.ID, Tool: call.Tool, Text: text, IsError: isError}
	}
	checked, err := t.ToolPreCall(ctx, &phases.ToolPreCallInput{Tool: call.Tool, Arguments: call.Arguments})
	if err != nil {
		return result("the call could not be checked: "+err.Error(), true)
	}
	if d := checked.Decision; d != nil && d.Verdict != phases.VerdictAllow {
		return result("the call is not allowed here", true) // there is nobody to ask
	}
	if in, ok := checked.Rewritten.(*phases.ToolPreCallInput); ok {
		call.Arguments = in.Arguments
	}
	res, err := t.CallTool(ctx, phases.ToolCall{Tool: call.Tool, Arguments: call.Arguments, IdempotencyKey: call.ID})
	if err != nil {
		return result(err.Error(), true)
	}
	text, outcome := string(res.Content), "ok"
	if res.IsError {
		outcome = "error"
	}
	seen, err := t.ToolPostCall(ctx, &phases.ToolPostCallInput{
		Tool: call.Tool, Arguments: call.Arguments, Result: phases.NewPreview(text, phases.MaxTurnText), Outcome: outcome,
	})
	if err != nil {
		return result("the answer could not be checked: "+err.Error(), true)
	}
	if in, ok := seen.Rewritten.(*phases.ToolPostCallInput); ok && !in.Result.Truncated {
		text = in.Result.Text
	}
	return result(text, res.IsError)
}
