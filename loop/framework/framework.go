// Package framework is what the adapters of agent frameworks share. A framework makes its requests itself, again for each
// round, with a system prompt, a conversation and tools of its own; an adapter turns each of them into one that a host of
// package loop would send.
//
// Stability: experimental until 1.0.
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

// InstructionsID is the section of what a framework has as its own system prompt.
const InstructionsID = "app_instructions"

// Turn is a turn, or an agent's part in it. Rounds of one agent must not run concurrently.
type Turn struct {
	*loop.Turn

	options loop.Options
	prompt  *loop.Prompt
	said    []said
}

// said is a reminder of a prompt, with how many messages of the conversation stand in front of it.
type said struct {
	behind int
	text   string
}

// Begin is [loop.Begin] for the user's message. Tools of the options are the framework's to call, and offered only where
// it has them in a request: of each, its name and Paths matter here.
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

// Compile makes the prompt of a round from what the framework has in its request: its system prompt, which becomes a
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

// Call makes a call of a tool that the framework runs, as the plugins agree to it. The error of run is passed on, as a
// framework has it; the plugins see it as the result. If it is pending, the call is yet to be made, such as when a person
// has been asked, and no result of it is seen: the call is judged again when it is made again.
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
// changes, beside those that are passed. An error says that the turn has ended: what a sink does not keep is an event of
// the engine's, and no reason to fail a run.
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

// End is [loop.Turn.Done] for a framework whose runs cannot be made to go on. Plugins judge the end of a turn that has
// succeeded (turn.pre_end) all the same; a deny changes nothing, and is a diagnostic of the turn (deny_ignored).
func End(ctx context.Context, t *loop.Turn, text string, err error) error {
	if err == nil {
		_, _ = t.GoOn(ctx, text) // the turn ends whatever becomes of it
	}
	return t.Done(ctx, text, err)
}

// System returns the parts of a system prompt in order: the stable part, the dynamic part, and system messages. Some
// frameworks put parts together without anything in between, so that each begins with what separates it from the last.
func System(p *loop.Prompt) []string {
	parts := []string{p.StableText, p.FullText[len(p.StableText):]}
	for _, m := range p.SystemMessages {
		parts = append(parts, "\n\n"+m.Text)
	}
	return slices.DeleteFunc(parts, func(part string) bool { return part == "" })
}

// Text is [System] for frameworks whose system prompt is one text. It begins with the prompt's FullText.
func Text(p *loop.Prompt) string { return strings.Join(System(p), "") }

// Place puts what a prompt has for the conversation into it: user messages in front, and the reminders of this and
// earlier prompts of the turn, each where it stood first. talk should begin with what it was in the round before; where it
// is shorter, it has the later ones at its end. message makes a user's message of a text. Call it once a prompt.
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

// Tools are all tools that any plugin has, hidden ones and [phases.RequestTools] among them: for frameworks that want to
// know what may be called before there is a prompt. Offer those of the prompt alone.
func Tools(eng *runtime.Engine) []phases.Tool {
	list := []phases.Tool{{Name: phases.RequestTools}}
	for _, d := range eng.Descriptions() {
		list = append(list, d.Tools...)
	}
	return list
}
