// Package framework has what the adapters of agent frameworks share. A framework makes its own request for each
// round, with its own system prompt, conversation and tools; an adapter turns each request into one that a host of
// package loop would send.
//
// Stability: internal.
package framework

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// InstructionsID is the section with the framework's own system prompt.
const InstructionsID = "app_instructions"

// Turn is a turn, or one agent's part in it. Rounds of one agent must not run concurrently.
type Turn struct {
	*loop.Turn

	options loop.Options
	prompt  *loop.Prompt
	said    []said
}

// said is a reminder of a prompt, with the number of messages of the conversation before it.
type said struct {
	behind int
	text   string
}

// Begin is [loop.Begin] for the user's message. The framework calls the Tools of the options, and they are offered only
// if it has them in a request: only their names and Paths matter here.
func Begin(ctx context.Context, eng *runtime.Engine, where phases.Context, o loop.Options, message string) (*Turn, error) {
	o.Input.UserText = message
	t, err := loop.Begin(ctx, eng, where, o)
	if err != nil {
		return nil, err
	}
	t.Input.ToolCalling = o.Input.ToolCalling
	return &Turn{Turn: t, options: o}, nil
}

// ForAgent returns the same turn for another agent, with the same options.
func (t *Turn) ForAgent(id string) (*Turn, error) {
	other, err := t.Turn.ForAgent(id, t.options)
	if err != nil {
		return nil, err
	}
	other.Input.ToolCalling = t.options.Input.ToolCalling
	return &Turn{Turn: other, options: t.options}, nil
}

// Compile makes the prompt of a round from the framework's request: its system prompt, which becomes a
// section, and its own tools.
func (t *Turn) Compile(ctx context.Context, instructions string, own []phases.Tool) (*loop.Prompt, error) {
	in := &t.options.Input
	t.Input.HostTools, t.Input.Custom = slices.Concat(in.HostTools, own), slices.Clone(in.Custom)
	if instructions != "" {
		t.Input.Custom = append(t.Input.Custom, compiler.CustomSection{SectionID: InstructionsID, Title: "Instructions", Stability: phases.StabilityStable, Text: instructions})
	}
	p, err := t.Prompt(ctx)
	t.prompt = p
	return p, err
}

// Call makes a call of a tool that the framework runs, with the arguments that the plugins agreed to. It returns the error
// of run unchanged; the plugins see it as the result. If the error is pending, the call was not made yet, for example
// because a person is being asked: plugins see no result, and judge the call again at the next attempt.
func (t *Turn) Call(ctx context.Context, c loop.Call, run func(loop.Call) (text string, err error), pending func(error) bool) (loop.Result, error) {
	var failed error
	r, err := t.RunTool(ctx, c, func(_ context.Context, c loop.Call) (text string, isError bool, err error) {
		if text, failed = run(c); failed != nil && pending(failed) {
			return "", true, loop.ErrNotYet
		}
		return text, false, failed
	})
	if errors.Is(err, loop.ErrNotYet) {
		return loop.Result{}, failed
	}
	return r, errors.Join(err, failed)
}

// Used is [loop.Turn.Used] for the last prompt, with [System] as its system prompt: system messages that moved into it are
// changes, besides the ones passed in. An error means that the turn has ended. If a sink does not keep the usage, that is
// an event of the engine, and no reason to fail a run.
func (t *Turn) Used(ctx context.Context, u phases.Usage, changes ...manifest.RequestChange) error {
	if t.prompt != nil {
		for _, m := range t.prompt.SystemMessages {
			changes = append(changes, manifest.RequestChange{
				Kind: manifest.RequestPlacement, ID: m.SectionID, Manifest: string(phases.PlacementSystemMessage), Sent: string(phases.PlacementSystem),
			})
		}
	}
	if err := t.Turn.Used(ctx, u, changes...); errors.Is(err, runtime.ErrTurnEnded) || errors.Is(err, runtime.ErrClosed) {
		return err
	}
	return nil
}

// End is [loop.Turn.Done] for a framework that cannot make a run go on. Plugins still judge the end of a turn that has
// succeeded (turn.pre_end); a deny changes nothing, and is a diagnostic of the turn (deny_ignored).
func End(ctx context.Context, t *loop.Turn, text string, err error) error {
	if err == nil {
		_, _ = t.GoOn(ctx, text) // the turn ends whatever becomes of it
	}
	return t.Done(ctx, text, err)
}

// System returns the parts of a system prompt in order: the stable part, the dynamic part, and system messages. Some
// frameworks join parts without a separator, so each part begins with its own.
func System(p *loop.Prompt) []string {
	parts := []string{p.StableText, p.FullText[len(p.StableText):]}
	for _, m := range p.SystemMessages {
		parts = append(parts, "\n\n"+m.Text)
	}
	return slices.DeleteFunc(parts, func(part string) bool { return part == "" })
}

// Text is [System] for frameworks whose system prompt is one text. It begins with the prompt's FullText.
func Text(p *loop.Prompt) string { return strings.Join(System(p), "") }

// Place adds a prompt's messages to the conversation: user messages at the beginning, and the reminders of this and
// earlier prompts of the turn, each at its first position. talk should begin with the talk of the previous round; if it
// is shorter, later reminders come at its end. message makes a user message from a text. Call it once a prompt.
func Place[M any](t *Turn, p *loop.Prompt, talk []M, message func(text string) M) []M {
	for i := range t.said {
		t.said[i].behind = min(t.said[i].behind, len(talk))
	}
	for _, text := range p.Reminders {
		t.said = append(t.said, said{len(talk), text})
	}
	var out []M
	for _, m := range p.UserMessages {
		out = append(out, message(m.Text))
	}
	rest := t.said
	for i := range len(talk) + 1 {
		for len(rest) > 0 && rest[0].behind <= i {
			out, rest = append(out, message(rest[0].text)), rest[1:]
		}
		if i < len(talk) {
			out = append(out, talk[i])
		}
	}
	return out
}

// Tools returns the tools of all plugins, including hidden ones and [phases.RequestTools], for frameworks that need
// to know all callable tools before there is a prompt. Offer only those of the prompt.
func Tools(eng *runtime.Engine) []phases.Tool {
	list := []phases.Tool{{Name: phases.RequestTools}}
	for _, d := range eng.Descriptions() {
		list = append(list, d.Tools...)
	}
	return list
}
