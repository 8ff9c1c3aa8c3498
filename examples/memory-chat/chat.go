package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

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

// turn is the host's loop: begin, gather, ask the model until it calls no more tools,
// end. The memory reads the turn after its end.
func (c *chat) turn(ctx context.Context, with phases.Context, l line) error {
	t, err := c.engine.BeginTurn(ctx, with)
	if err != nil {
		return err
	}
	fmt.Printf("user:   %s\n", l.text)
	end := &phases.PostTurnInput{Status: phases.TurnSucceeded, UserText: phases.NewPreview(l.text, phases.MaxTurnText)}
	answer, err := c.answer(ctx, t, l, end)
	if err != nil {
		end.Status, end.Error = phases.TurnFailed, phases.NewPreview(err.Error(), phases.MaxTurnError)
	} else {
		end.AssistantText = phases.NewPreview(answer, phases.MaxTurnText)
		fmt.Printf("model:  %s\n", answer)
	}
	_, ended := t.End(ctx, end) // always, or its configuration is never dropped
	// The next turn of a script comes at once; a host with a user does not wait.
	waited := c.engine.WaitBackground(ctx)
	shown := c.events.show()
	fmt.Println()
	return errors.Join(err, ended, waited, shown)
}

// answer gathers what the prompt is made of, and gets one answer. It notes the calls of tools for the turn's end.
func (c *chat) answer(ctx context.Context, t *runtime.Turn, l line, end *phases.PostTurnInput) (string, error) {
	if err := c.gather(ctx, t, l); err != nil {
		return "", err
	}
	v := view{message: l.text}
	for round := range maxRounds {
		done, err := t.Compile(ctx, runtime.CompileInput{UserText: l.text, ToolCalling: true})
		if err != nil {
			return "", err
		}
		if round == 0 {
			showRecall(done.Manifest)
		}
		v.prompt, v.tools = done.Prompt.FullText, nil
		for _, tool := range done.Tools {
			v.tools = append(v.tools, tool.Name)
		}
		said, err := model(v)
		if err != nil || said.tool == "" {
			return said.text, err
		}
		res := callTool(ctx, t, said)
		v.results = append(v.results, res)
		end.ToolEvents = append(end.ToolEvents, res.event())
	}
	return "", errors.New("the model does not stop calling tools")
}

// gather runs the phases ahead of the compiler. With a plan of the host, memory searches once more.
func (c *chat) gather(ctx context.Context, t *runtime.Turn, l line) error {
	policy, err := t.PrePolicy(ctx, &phases.PrePolicyInput{UserText: phases.T(l.text)})
	if err != nil {
		return err
	}
	showPolicy(policy.Merged.Policies)
	if _, err := t.PrePromptContext(ctx, &phases.PrePromptContextInput{UserText: phases.T(l.text)}); err != nil {
		return err
	}
	if len(l.plan) > 0 {
		plan, err := json.Marshal(map[string]any{"queries": l.plan})
		if err != nil {
			return err
		}
		if _, err := t.PostPreflight(ctx, &phases.PostPreflightInput{UserText: phases.T(l.text), RecallPlan: plan}); err != nil {
			return err
		}
	}
	_, err = t.PreTools(ctx, &phases.PreToolsInput{ToolCalling: true})
	return err
}

func (r result) event() phases.ToolEvent {
	outcome := "ok"
	if r.failed {
		outcome = "error"
	}
	return phases.ToolEvent{Tool: r.tool, Outcome: outcome}
}

func callTool(ctx context.Context, t *runtime.Turn, r reply) result {
	fmt.Printf("calls:  %s %s\n", r.tool, r.arguments)
	res, err := t.CallTool(ctx, phases.ToolCall{Tool: r.tool, Arguments: r.arguments})
	if err != nil {
		return result{tool: r.tool, text: err.Error(), failed: true}
	}
	return result{tool: r.tool, text: string(res.Content), failed: res.IsError}
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
