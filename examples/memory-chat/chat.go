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
	// workspace is whose memory it is.
	workspace = "demo"
	// maxRounds bounds the requests of one turn: a model may call tools for ever.
	maxRounds = 4
)

// chat holds one talk.
type chat struct {
	engine *runtime.Engine
	events *events
}

// hold runs the turns of a talk. A turn's ids must be its own: one that is seen again
// is taken for the same turn, run twice, and adds nothing to the memory.
func (c *chat) hold(ctx context.Context, t talk, thread string) error {
	for i, l := range t.lines {
		with := phases.Turn{
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
// end. What is to be remembered of the turn is read out of it after its end.
func (c *chat) turn(ctx context.Context, with phases.Turn, l line) error {
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
	// Only so that the next turn of a script, which comes at once, finds what this one
	// said. A host with a person before it does not wait.
	waited := c.engine.WaitBackground(ctx)
	shown := c.events.show()
	fmt.Println()
	return errors.Join(err, ended, waited, shown)
}

// answer gathers what the prompt is made of, and brings about one answer. The tools
// that were called are noted at the turn's end, for those who read the turn.
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

// gather runs the phases ahead of the compiler. The second one with a plan is where
// memory looks once more, for what the host's planner asks for.
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

// event is a call as the end of the turn reports it.
func (r result) event() phases.ToolEvent {
	outcome := "ok"
	if r.failed {
		outcome = "error"
	}
	return phases.ToolEvent{Tool: r.tool, Outcome: outcome}
}

// callTool makes the call that the model asks for. What goes wrong is told to the
// model: it may know better the next time.
func callTool(ctx context.Context, t *runtime.Turn, r reply) result {
	fmt.Printf("calls:  %s %s\n", r.tool, r.arguments)
	res, err := t.CallTool(ctx, phases.ToolCall{Tool: r.tool, Arguments: r.arguments})
	if err != nil {
		return result{tool: r.tool, text: err.Error(), failed: true}
	}
	return result{tool: r.tool, text: string(res.Content), failed: res.IsError}
}
