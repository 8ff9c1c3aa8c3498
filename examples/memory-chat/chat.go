package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

const (
	workspace = "demo"
	maxRounds = 4 // bounds the requests of one turn: a model may call tools for ever
)

type chat struct {
	engine *runtime.Engine
	events *events
}

// hold runs the turns of a talk. Their ids must be unique: a turn that is run again adds nothing to the memory.
func (c *chat) hold(ctx context.Context, t talk, thread string) error {
	for i, l := range t.lines {
		with := phases.Context{
			WorkspaceID: workspace, ThreadID: thread, TurnID: strconv.Itoa(i + 1),
			Mode: cmp.Or(l.mode, phases.ModeAgent), Actor: phases.Actor{Kind: "user", ID: "ada"},
		}
		if err := c.turn(ctx, with, l); err != nil {
			return fmt.Errorf("%s, turn %d: %w", t.name, i+1, err)
		}
	}
	return nil
}

// turn is the host's loop: begin, ask the model until it calls no more tools, end. The memory reads the turn after its
// end.
func (c *chat) turn(ctx context.Context, with phases.Context, l line) error {
	fmt.Printf("user:   %s\n", l.text)
	in := runtime.CompileInput{UserText: l.text, ToolCalling: true}
	if len(l.plan) > 0 {
		plan, err := json.Marshal(map[string]any{"queries": l.plan})
		if err != nil {
			return err
		}
		in.RecallPlan = plan // memory searches once more
	}
	t, err := loop.Begin(ctx, c.engine, with, loop.Options{Input: in})
	if err != nil {
		return err
	}
	answer, err := c.answer(ctx, t, l)
	if err == nil {
		fmt.Printf("model:  %s\n", answer)
	}
	err = t.Done(ctx, answer, err)
	// The next turn of a script comes at once; a host with a user does not wait.
	waited := c.engine.WaitBackground(ctx)
	shown := c.events.show()
	fmt.Println()
	return errors.Join(err, waited, shown)
}

func (c *chat) answer(ctx context.Context, t *loop.Turn, l line) (string, error) {
	v := view{message: l.text}
	for round := range maxRounds {
		p, err := t.Prompt(ctx)
		if err != nil {
			return "", err
		}
		if round == 0 {
			showPolicy(p.Manifest.Policies)
			showRecall(p.Manifest)
		}
		v.prompt, v.tools = p.FullText, nil
		for _, tool := range p.Tools {
			v.tools = append(v.tools, tool.Name)
		}
		said, err := model(v)
		if err := errors.Join(err, t.Used(ctx, phases.Usage{})); err != nil || said.tool == "" {
			return said.text, err
		}
		fmt.Printf("calls:  %s %s\n", said.tool, said.arguments)
		res, err := t.Tool(ctx, loop.Call{ID: strconv.Itoa(round), Tool: said.tool, Arguments: said.arguments})
		if err != nil {
			return "", err
		}
		v.results = append(v.results, result{tool: said.tool, text: res.Text, failed: res.IsError})
	}
	return "", errors.New("the model does not stop calling tools")
}

// talk is some turns of one thread, in one run of the engine and its plugins.
type talk struct {
	name  string
	lines []line
}

type line struct {
	text string
	mode phases.Mode
	// plan are the queries of the host's own plan for what to recall. A real host
	// lets a small model make one when the user's words alone find too little.
	plan []string
}

// script is the user's side of the example: ten turns in two talks.
func script() []talk {
	return []talk{
		{"monday", []line{
			{text: "Where do I live?"},
			{text: "I live in Lisbon. I prefer tabs over spaces."},
			{text: "Remember that our database is PostgreSQL 17."},
			{text: "Remember that my password is hunter2-Tr0ub4dor."},
			{text: "I am allergic to peanuts. Don't save this."},
		}},
		{"tuesday", []line{
			{text: "Help me with my talk.", plan: []string{"which database do we use", "where does the user live"}},
			{text: "I moved. I live in Porto now."},
			{text: "Don't use memory for this: where do I live?"},
			{text: "Forget that I prefer tabs."},
			{text: "Where do I live?", mode: phases.ModeChat},
		}},
	}
}
