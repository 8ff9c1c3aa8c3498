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
	"github.com/grapnelhq/grapnel/loop"
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
func (c *chat) turn(ctx context.Context, with phases.Context, message string) (err error) {
	t, err := loop.Begin(ctx, c.engine, with, loop.Options{Input: runtime.CompileInput{
		UserText: message, Provider: c.model.provider, Model: c.model.name, ToolCalling: true, Order: compiler.Order(c.order),
	}})
	if err != nil {
		return err
	}
	answer := ""
	defer func() { err = t.Done(ctx, answer, err) }()
	said := []history.Entry{{TurnID: with.TurnID, Role: history.RoleUser, Text: message}}
	for range maxRounds {
		if said, err = c.ask(ctx, t, said); err != nil {
			return err
		}
		reply := said[len(said)-1]
		if len(reply.Calls) == 0 {
			answer = reply.Text
			reason, err := t.GoOn(ctx, answer) // a plugin may want more of the model
			if err != nil {
				return err
			}
			if reason != "" {
				said = append(said, history.Entry{TurnID: with.TurnID, Role: history.RoleUser, Text: reason})
				continue
			}
			fmt.Printf("user:  %s\nmodel: %s\n", message, answer)
			c.past = append(c.past, said...)
			return nil
		}
		results, err := callTools(ctx, t, reply.Calls)
		if err != nil {
			return err
		}
		said = append(said, results)
	}
	return errors.New("the model and the plugins do not stop")
}

// ask is one round: compile the prompt, choose what fits of the past, send both, and report changes and usage. It
// returns what was said in the turn so far, the model's reply last.
func (c *chat) ask(ctx context.Context, t *loop.Turn, said []history.Entry) ([]history.Entry, error) {
	p, err := t.Prompt(ctx)
	if err != nil {
		return nil, err
	}
	for _, text := range p.Reminders {
		said = append(said, history.Entry{TurnID: said[0].TurnID, Role: history.RoleUser, Text: text})
	}
	window, err := history.Select(
		history.Input{Entries: c.past, Fixed: fixed(p.Prompt), Tools: p.Tools, Turn: said},
		history.Settings{ContextTokens: c.context, ReserveTokens: c.reserve, Scale: c.tokens.Scale()}, c.count)
	if err != nil {
		return nil, err
	}
	if len(window.Dropped) > 0 {
		fmt.Printf("       (%d entries of the past do not fit; compaction: %s)\n", len(window.Dropped), window.Compaction)
	}
	got, err := c.model.ask(ctx, providers.Request{
		Model: c.model.name, MaxTokens: c.reserve, Prompt: *p.Prompt, Sections: p.Manifest.Sections, Tools: p.Tools,
		History: window, Turn: said, AfterConversation: strings.Split(c.behind, ","),
	})
	if err != nil {
		return nil, &loop.ProviderError{Err: err}
	}
	c.tokens.Report(window, got.usage.InputTokens)
	got.entry.TurnID = said[0].TurnID
	return append(said, got.entry), t.Used(ctx, got.usage, got.changes...)
}

// callTools makes the calls of a reply. What the plugins refuse is a result, too.
func callTools(ctx context.Context, t *loop.Turn, calls []history.Call) (history.Entry, error) {
	e := history.Entry{TurnID: t.Context().TurnID, Role: history.RoleTool}
	for _, call := range calls {
		fmt.Printf("       (calls %s %s)\n", call.Tool, call.Arguments)
		r, err := t.Tool(ctx, loop.Call{ID: call.ID, Tool: call.Tool, Arguments: call.Arguments})
		if err != nil {
			return e, err
		}
		e.Results = append(e.Results, history.Result{CallID: r.CallID, Tool: r.Tool, Text: r.Text, IsError: r.IsError})
	}
	return e, nil
}

func fixed(p *compiler.Prompt) []string {
	texts := []string{p.FullText}
	for _, m := range slices.Concat(p.SystemMessages, p.UserMessages) {
		texts = append(texts, m.Text)
	}
	return texts
}
