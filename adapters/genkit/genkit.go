// Package genkit makes Grapnel's plugins take part in the generations of [Genkit for Go], as a middleware. Put it first:
//
//	resp, err := genkit.Generate(ctx, g,
//		ai.WithPrompt("What is in the service directory?"),
//		ai.WithTools(listFiles),
//		ai.WithUse(grapnel.New(grapnel.Options{Engine: eng, Where: where})))
//
// One Generate is one turn: its user message is judged, each request to the model gets the compiled prompt as its system
// message and the tools of plugins, each call of a tool goes through the plugins, and what the model has used is reported.
// A Generate inside of a tool belongs to the turn of the one around it, as another agent.
//
// [Genkit for Go]: https://pkg.go.dev/github.com/firebase/genkit/go
package genkit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/core/api"

	"github.com/grapnelhq/grapnel/internal/framework"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// Options are what a host decides. Engine and Where are needed.
type Options struct {
	Engine *runtime.Engine
	// Where gives the context of a turn that begins; its turn id must be a new one.
	Where func(ctx context.Context) phases.Context
	// Agent is the agent's id: of the turn that begins, and of this middleware's part in a turn around it.
	Agent string
	// WithoutTools says that the model cannot call tools: none of plugins' are offered.
	WithoutTools bool
	// Loop has what a prompt is compiled from, whom to ask, and how long results may be; a Generate inside of a tool has
	// that of the turn around it. The user's message, tools and instructions are taken from the request, and so are model
	// and provider where they are empty; its system messages become the section "app_instructions". Of Tools only
	// names and Paths matter. With [loop.ErrNotYet] of Ask the call of a tool of Genkit's is an interrupt, which has who
	// asks ("by") and why ("reason"). Ask is asked again when it is restarted, with a context of [ai.IsToolResumed].
	Loop loop.Options
}

// New returns the middleware. It may serve any number of generations at the same time. It stands first in [ai.WithUse], so
// that it sees all of a request, and others see it as it is sent. An error of Generate that a plugin has decided on is a
// [*loop.Refused], one of the model's a [*loop.ProviderError].
func New(o Options) ai.Middleware {
	return ai.MiddlewareFunc(func(context.Context) (*ai.Hooks, error) {
		if o.Engine == nil || o.Where == nil {
			return nil, errors.New("grapnel: Options.Engine and Options.Where are needed")
		}
		g := &generation{options: o}
		h := &ai.Hooks{WrapGenerate: g.wrapGenerate, WrapModel: g.wrapModel, WrapTool: g.wrapTool}
		if !o.WithoutTools {
			h.Tools = []ai.Tool{&door{Tool: unused(doorName), generation: g}}
		}
		return h, nil
	})
}

// generation is one Generate.
type generation struct {
	options Options
	// registry is where Genkit looks for the tools of this generation.
	registry api.Registry
	// model is the model's name.
	model string
	turn  *framework.Turn
	// first says that the turn is this generation's, and not one around it.
	first bool
	// further are the rounds that plugins wanted at the end, of which Genkit does not know.
	further []further
	// own are Genkit's tools of this round; nil before the first, in which Genkit restarts those that were interrupted.
	own map[string]*ai.ToolDefinition
	// stopped says that the reader of the stream wants no more.
	stopped atomic.Bool
}

// further is a round more: what the model said, why the turn goes on, and how many messages of Genkit's stand in front.
type further struct {
	behind int
	said   []*ai.Message
}

// door is how a generation gets its registry: Genkit wants the tools of a middleware before it shows the request, and
// registers them for this generation alone. What is called is then known only when the model has answered (generation.answer).
type door struct {
	ai.Tool

	generation *generation
}

const doorName = "grapnel"

func (d *door) Register(r api.Registry) { d.generation.registry = r }

// unused is a tool that wrapTool answers in Genkit's place.
func unused(name string) ai.Tool {
	return ai.NewMultipartTool(name, "", func(*ai.ToolContext, any) (*ai.MultipartToolResponse, error) {
		return nil, errors.New("grapnel: the tool is called in a turn only")
	})
}

// answer makes Genkit hand over the calls of tools that it does not know: those of plugins, and those that do not exist.
func (g *generation) answer(calls []*ai.Part) {
	for _, p := range calls {
		if name := p.ToolRequest.Name; name != "" && g.registry != nil && ai.LookupTool(g.registry, name) == nil {
			unused(name).Register(g.registry)
		}
	}
}

// turnKey finds the turn around a generation.
type turnKey struct{}

func (g *generation) wrapGenerate(ctx context.Context, p *ai.GenerateParams, next ai.GenerateNext) (resp *ai.ModelResponse, err error) {
	if g.turn != nil { // a later round, inside the first
		return next(ctx, p)
	}
	o := g.options.Loop
	o.Input.ToolCalling = !g.options.WithoutTools
	if g.model = p.Options.Model; o.Input.Model == "" && o.Input.Provider == "" {
		o.Input.Provider, o.Input.Model = api.ParseName(g.model)
	}
	if around, ok := ctx.Value(turnKey{}).(*framework.Turn); ok {
		if g.turn, err = around.ForAgent(g.options.Agent); err != nil {
			return nil, err
		}
		in := &g.turn.Input
		in.Model, in.Provider, in.ToolCalling = o.Input.Model, o.Input.Provider, o.Input.ToolCalling
		return next(ctx, p)
	}
	g.first = true
	where := g.options.Where(ctx)
	where.AgentID = cmp.Or(g.options.Agent, where.AgentID)
	if g.turn, err = framework.Begin(ctx, g.options.Engine, where, o, lastUserText(p.Request.Messages)); err != nil {
		return nil, err
	}
	ended := errors.New("the generation panicked") // until it has returned
	defer func() {
		if done := g.turn.Done(ctx, resp.Text(), ended); err == nil && ended == nil {
			err = done
		}
	}()
	resp, err = next(ctx, p)
	ended = g.ending(ctx, resp, err)
	return resp, err
}

// ending is what a generation ended with, for the status of the turn.
func (g *generation) ending(ctx context.Context, resp *ai.ModelResponse, err error) error {
	switch {
	case err != nil && (g.stopped.Load() || errors.Is(ctx.Err(), context.Canceled)):
		return fmt.Errorf("%w: %w", context.Canceled, err)
	case err == nil && resp.FinishReason == ai.FinishReasonInterrupted:
		return context.Canceled // it may be resumed by another one
	}
	return err
}

// wrapModel makes the rounds that a plugin wants before the end (turn.pre_end) in one of Genkit's, which knows no others.
func (g *generation) wrapModel(ctx context.Context, p *ai.ModelParams, next ai.ModelNext) (*ai.ModelResponse, error) {
	system, talk := split(p.Request.Messages)
	for {
		resp, err := g.round(ctx, p, next, system, g.whole(talk))
		if err != nil || !g.first || resp.Message == nil || len(resp.ToolRequests()) > 0 {
			return resp, err
		}
		reason, err := g.turn.GoOn(ctx, resp.Text())
		if err != nil || reason == "" {
			return resp, err
		}
		g.further = append(g.further, further{len(talk), []*ai.Message{resp.Message, reminder(reason)}})
	}
}

// whole is a conversation of Genkit's with the rounds that it does not know.
func (g *generation) whole(talk []*ai.Message) []*ai.Message {
	for _, f := range slices.Backward(g.further) {
		talk = slices.Insert(slices.Clone(talk), min(f.behind, len(talk)), f.said...)
	}
	return talk
}

// round is one request to the model.
func (g *generation) round(ctx context.Context, p *ai.ModelParams, next ai.ModelNext, system, talk []*ai.Message) (*ai.ModelResponse, error) {
	texts, parts := partsOf(system)
	prompt, err := g.turn.Compile(ctx, strings.Join(texts, "\n\n"), g.takeTools(p.Request.Tools))
	if err != nil {
		return nil, err
	}
	for _, text := range slices.Backward(framework.System(prompt)) {
		parts = slices.Insert(parts, 0, ai.NewTextPart(text))
	}
	talk = framework.Place(g.turn, prompt, talk, reminder)
	sent := *p.Request
	sent.Tools, sent.Messages = g.toolsOf(prompt), talk
	if len(parts) > 0 {
		sent.Messages = append([]*ai.Message{ai.NewSystemMessage(parts...)}, talk...)
	}
	resp, err := next(ctx, &ai.ModelParams{Request: &sent, Callback: g.streamed(p.Callback)})
	if err != nil {
		return nil, &loop.ProviderError{Err: err}
	}
	if resp.Request != nil { // for History: what was said, and not the prompt it was sent with
		said := *resp.Request
		said.Messages = slices.Concat(system, talk[len(prompt.UserMessages):])
		resp.Request = &said
	}
	g.answer(resp.ToolRequests())
	return resp, g.turn.Used(ctx, usageOf(cmp.Or(resp.Usage, new(ai.GenerationUsage)), g.model))
}

// streamed notes that the reader of a stream wants no more: such an error is not the model's.
func (g *generation) streamed(read ai.ModelStreamCallback) ai.ModelStreamCallback {
	if read == nil {
		return nil
	}
	return func(ctx context.Context, chunk *ai.ModelResponseChunk) error {
		err := read(ctx, chunk)
		if err != nil {
			g.stopped.Store(true)
		}
		return err
	}
}

// split parts the system messages from the conversation.
func split(messages []*ai.Message) (system, talk []*ai.Message) {
	for _, m := range messages {
		if m.Role == ai.RoleSystem {
			system = append(system, m)
		} else {
			talk = append(talk, m)
		}
	}
	return system, talk
}

// partsOf are the texts of messages, and their other parts.
func partsOf(messages []*ai.Message) (texts []string, others []*ai.Part) {
	for _, m := range messages {
		for _, p := range m.Content {
			if p.IsText() {
				texts = append(texts, p.Text)
			} else {
				others = append(others, p)
			}
		}
	}
	return texts, others
}

// reminderKey marks messages that are not the user's, in histories that come back.
const reminderKey = "grapnel"

func reminder(text string) *ai.Message {
	return ai.NewUserMessageWithMetadata(map[string]any{reminderKey: "reminder"}, ai.NewTextPart(text))
}

// lastUserText is what the user said last, without the documents and formats that Genkit adds as parts with a purpose.
func lastUserText(messages []*ai.Message) string {
	for _, m := range slices.Backward(messages) {
		if m.Role == ai.RoleUser && m.Metadata[reminderKey] == nil {
			said := ai.NewUserMessage(slices.DeleteFunc(slices.Clone(m.Content), func(p *ai.Part) bool { return p.Metadata["purpose"] != nil })...)
			texts, _ := partsOf([]*ai.Message{said})
			return strings.Join(texts, "\n")
		}
	}
	return ""
}

// takeTools notes Genkit's tools of a round.
func (g *generation) takeTools(list []*ai.ToolDefinition) (own []phases.Tool) {
	g.own = map[string]*ai.ToolDefinition{}
	for _, d := range list {
		if d.Name != doorName {
			schema, _ := json.Marshal(d.InputSchema) //nolint:errchkjson // it was read from JSON, or inferred
			g.own[d.Name] = d
			own = append(own, phases.Tool{Name: d.Name, Description: d.Description, InputSchema: schema})
		}
	}
	return own
}

// toolsOf are the tools of a prompt, in its order, Genkit's as they were.
func (g *generation) toolsOf(p *loop.Prompt) (out []*ai.ToolDefinition) {
	for i := range p.Tools {
		t := &p.Tools[i]
		d := g.own[t.Name]
		if d == nil {
			d = &ai.ToolDefinition{Name: t.Name, Description: t.Description}
			if json.Unmarshal(t.InputSchema, &d.InputSchema) != nil { // there is none, or it has a number that Go has not
				d.InputSchema = map[string]any{"type": "object"}
			}
		}
		out = append(out, d)
	}
	return out
}

// usageOf is what a model reported. Genkit's models for Anthropic count what came out of the cache beside the input, and
// some count reasoning beside the output; the total tells.
func usageOf(u *ai.GenerationUsage, model string) phases.Usage {
	in, cached := max(u.InputTokens, 0), max(u.CachedContentTokens, 0)
	out := max(u.OutputTokens, u.TotalTokens-in, 0)
	if cached > in || strings.HasPrefix(model, "anthropic/") || strings.Contains(model, "claude") {
		in += cached
	}
	return phases.Usage{InputTokens: in, OutputTokens: out, CacheReadTokens: cached}
}
