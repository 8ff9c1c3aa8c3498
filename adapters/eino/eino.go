// Package eino makes Grapnel's plugins take part in the runs of eino's chat model agents, as one of their handlers:
//
//	guard := grapnel.New(grapnel.Options{Engine: eng, Where: where})
//	root, err := adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{…, Handlers: []adk.ChatModelAgentMiddleware{guard.For("root")}})
//	runner := adk.NewRunner(ctx, adk.RunnerConfig{Agent: guard.Wrap(root)})
//
// One run of the wrapped agent is one turn, whose agents are the handlers' ids: the user's message is judged, each round of
// an agent gets the compiled prompt as its system message and the tools of plugins, each call of a tool goes through the
// plugins, and what models have used is reported. An agent without the wrapping around it has no turn, and fails: eino
// does not notify a handler of a run that failed, so that its turn would not end.
package eino

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/eino-contrib/jsonschema"

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
	// Loop has what a prompt is compiled from, whom to ask, and how long results may be. The user's message, tools and
	// instructions are taken from eino; an agent's own instruction becomes the section "app_instructions".
	Loop loop.Options
}

// Grapnel makes the handlers and wrappings of agents. It may serve any number of runs at the same time.
type Grapnel struct{ options Options }

// New returns a Grapnel.
func New(o Options) *Grapnel { return &Grapnel{o} }

// For returns the handler of an agent; the id is the agent's in conditions and records. List it first, so that other
// handlers see calls as they are made.
func (g *Grapnel) For(agent string) adk.ChatModelAgentMiddleware {
	return &handler{grapnel: g, agent: agent}
}

// run is one run of a wrapped agent; the context of its agents has it under runKey.
type run struct {
	*framework.Turn

	answer atomic.Pointer[string] // of the model that answered last; nil if it wants calls made
	asking atomic.Int32           // the models that have not answered
}

// speaker is an agent's part in a run; the context of its model and tools has it under speakerKey.
type speaker struct {
	*framework.Turn

	run     *run
	plugins map[string]bool // the names of plugins' tools
}

type runKey struct{}

type speakerKey struct{}

// speakerOf returns what BeforeAgent has put into the context of an agent.
func speakerOf(ctx context.Context) *speaker {
	s, _ := ctx.Value(speakerKey{}).(*speaker)
	return s
}

var errNoRun = errors.New("the agent runs without Grapnel: give adk.NewRunner the agent that Grapnel.Wrap returns")

// Wrap returns an agent whose runs are turns. It can be resumed if the agent can. Inside of a turn it takes part in that.
func (g *Grapnel) Wrap(agent adk.Agent) adk.Agent { return &wrapped{agent, g} }

type wrapped struct {
	adk.Agent

	grapnel *Grapnel
}

func (w *wrapped) Run(ctx context.Context, in *adk.AgentInput, o ...adk.AgentRunOption) *adk.AsyncIterator[*adk.AgentEvent] {
	text := ""
	for _, m := range in.Messages {
		if m.Role == schema.User {
			text = m.Content
			for _, part := range m.UserInputMultiContent {
				text += part.Text //nolint:perfsprint // there is one, or two
			}
		}
	}
	return w.grapnel.turn(ctx, text, func(ctx context.Context) *adk.AsyncIterator[*adk.AgentEvent] { return w.Agent.Run(ctx, in, o...) })
}

// Resume implements adk.ResumableAgent. It is a turn of its own, without a message.
func (w *wrapped) Resume(ctx context.Context, info *adk.ResumeInfo, o ...adk.AgentRunOption) *adk.AsyncIterator[*adk.AgentEvent] {
	r, ok := w.Agent.(adk.ResumableAgent)
	if !ok {
		return failed(fmt.Errorf("the agent %q cannot be resumed", w.Name(ctx)))
	}
	return w.grapnel.turn(ctx, "", func(ctx context.Context) *adk.AsyncIterator[*adk.AgentEvent] { return r.Resume(ctx, info, o...) })
}

// failed is a run that only has an error.
func failed(err error) *adk.AsyncIterator[*adk.AgentEvent] {
	events, out := adk.NewAsyncIteratorPair[*adk.AgentEvent]()
	out.Send(&adk.AgentEvent{Err: err})
	out.Close()
	return events
}

// turn passes on the events of a run, and ends its turn when they end. Events are not bounded, so that a reader who reads
// no more holds up nothing.
func (g *Grapnel) turn(ctx context.Context, text string, agent func(ctx context.Context) *adk.AsyncIterator[*adk.AgentEvent]) *adk.AsyncIterator[*adk.AgentEvent] {
	if _, inside := ctx.Value(runKey{}).(*run); inside {
		return agent(ctx)
	}
	o := g.options.Loop
	o.Input.ToolCalling = true
	t, err := framework.Begin(ctx, g.options.Engine, g.options.Where(ctx), o, text)
	if err != nil {
		return failed(err)
	}
	events, out := adk.NewAsyncIteratorPair[*adk.AgentEvent]()
	r := &run{Turn: t}
	var in *adk.AsyncIterator[*adk.AgentEvent]
	defer func() {
		if in == nil {
			_ = t.Done(ctx, "", errors.New("the agent panicked")) // and the panic goes on
		}
	}()
	in = agent(context.WithValue(ctx, runKey{}, r))
	go func() {
		defer out.Close()
		var ended error // of the first agent that failed, whatever others do beside it
		for e, ok := in.Next(); ok; e, ok = in.Next() {
			_, cancelled := errors.AsType[*adk.CancelError](e.Err)
			if ended = cmp.Or(ended, e.Err); cancelled || e.Action != nil && e.Action.Interrupted != nil {
				ended = fmt.Errorf("the run was interrupted, and may be resumed: %w", context.Canceled)
			}
			out.Send(e)
		}
		answer := r.answer.Load()
		switch {
		case ended == nil && answer == nil:
			ended = context.Cause(ctx)
		case ended != nil && r.asking.Load() > 0:
			ended = &loop.ProviderError{Err: ended}
		}
		_ = framework.End(ctx, t.Turn, *cmp.Or(answer, new(string)), ended) // the events have what ended it
	}()
	return events
}

type handler struct {
	*adk.BaseChatModelAgentMiddleware

	grapnel *Grapnel
	agent   string
}

// BeforeAgent makes the tools of plugins known: all that any has, since no prompt is compiled yet. A request lists those of
// its prompt.
func (h *handler) BeforeAgent(ctx context.Context, c *adk.ChatModelAgentContext) (context.Context, *adk.ChatModelAgentContext, error) {
	r, ok := ctx.Value(runKey{}).(*run)
	if !ok {
		return ctx, c, errNoRun
	}
	t, err := r.ForAgent(h.agent)
	if err != nil {
		return ctx, c, err
	}
	var names []string
	for _, own := range c.Tools {
		info, err := own.Info(ctx)
		if err != nil {
			return ctx, c, err
		}
		names = append(names, info.Name)
	}
	s := &speaker{Turn: t, run: r, plugins: map[string]bool{}}
	for _, t := range framework.Tools(h.grapnel.options.Engine) {
		if slices.Contains(names, t.Name) {
			continue // the host's has the name
		}
		s.plugins[t.Name] = true
		c.Tools = append(c.Tools, utils.NewTool(infoOf(&t), never))
	}
	return context.WithValue(ctx, speakerKey{}, s), c, nil
}

// never stands for a plugin's tool. The handler answers its calls.
func never(context.Context, any) (string, error) { return "", errNoRun }

func infoOf(t *phases.Tool) *schema.ToolInfo {
	return &schema.ToolInfo{Name: t.Name, Desc: t.Description, ParamsOneOf: schema.NewParamsOneOfByJSONSchema(schemaOf(t.InputSchema))}
}

// schemaOf is a plugin's schema as eino has schemas; as plain JSON where eino does not understand it.
func schemaOf(raw json.RawMessage) *jsonschema.Schema {
	plain, s := &jsonschema.Schema{}, &jsonschema.Schema{}
	if json.Unmarshal(raw, &plain.Extras) != nil || len(plain.Extras) == 0 {
		return &jsonschema.Schema{Type: "object"}
	}
	understood := func() bool {
		defer func() { _ = recover() }() // from a type that is null
		return json.Unmarshal(raw, s) == nil
	}
	if understood() {
		return s
	}
	return plain
}

// mark is the key of the messages that are of a prompt. That of the system message has the agent's own instruction, for
// a run that is resumed.
const mark = "grapnel_prompt"

// BeforeModelRewriteState puts the compiled prompt and its tools into the state of a round, in the place of those of the
// round before, and its reminders behind the conversation.
func (*handler) BeforeModelRewriteState(ctx context.Context, state *adk.ChatModelAgentState, _ *adk.ModelContext) (context.Context, *adk.ChatModelAgentState, error) {
	s := speakerOf(ctx)
	instructions, talk := conversation(state.Messages)
	own := map[string]*schema.ToolInfo{}
	var tools []phases.Tool
	for _, info := range state.ToolInfos {
		if !s.plugins[info.Name] {
			own[info.Name] = info
			object, err := info.ToJSONSchema()
			raw, broken := json.Marshal(object)
			if err := errors.Join(err, broken); err != nil {
				return ctx, state, fmt.Errorf("the schema of the tool %q: %w", info.Name, err)
			}
			tools = append(tools, phases.Tool{Name: info.Name, Description: info.Desc, InputSchema: raw})
		}
	}
	prompt, err := s.Compile(ctx, instructions, tools)
	if err != nil {
		return ctx, state, err
	}
	infos := make([]*schema.ToolInfo, len(prompt.Tools))
	for i := range prompt.Tools {
		infos[i] = cmp.Or(own[prompt.Tools[i].Name], infoOf(&prompt.Tools[i]))
	}
	messages := []*schema.Message{schema.SystemMessage(framework.Text(prompt))}
	for _, m := range prompt.UserMessages {
		messages = append(messages, schema.UserMessage(m.Text))
	}
	for _, m := range messages {
		m.Extra, instructions = map[string]any{mark: instructions}, ""
	}
	messages = append(messages, talk...)
	for _, text := range prompt.Reminders {
		messages = append(messages, schema.UserMessage(text))
	}
	s.run.asking.Add(1)
	return ctx, &adk.ChatModelAgentState{Messages: messages, ToolInfos: infos, DeferredToolInfos: state.DeferredToolInfos}, nil
}

// conversation is what messages have beside a prompt: the agent's own instruction, and what was said.
func conversation(messages []*schema.Message) (instructions string, talk []*schema.Message) {
	ours := false
	for _, m := range messages {
		if text, is := m.Extra[mark].(string); is {
			instructions, ours = instructions+text, true
		} else if m.Role == schema.System && len(talk) == 0 && !ours {
			instructions = strings.TrimSpace(instructions + "\n\n" + m.Content)
		} else {
			talk = append(talk, m)
		}
	}
	return instructions, talk
}

// AfterModelRewriteState reports what the model has used, also where it streamed.
func (*handler) AfterModelRewriteState(ctx context.Context, state *adk.ChatModelAgentState, _ *adk.ModelContext) (context.Context, *adk.ChatModelAgentState, error) {
	s, last := speakerOf(ctx), state.Messages[len(state.Messages)-1]
	s.run.asking.Add(-1)
	if s.run.answer.Store(nil); len(last.ToolCalls) == 0 {
		s.run.answer.Store(&last.Content)
	}
	var used phases.Usage
	if last.ResponseMeta != nil && last.ResponseMeta.Usage != nil {
		u := last.ResponseMeta.Usage
		used = phases.Usage{InputTokens: u.PromptTokens, OutputTokens: u.CompletionTokens, CacheReadTokens: u.PromptTokenDetails.CachedTokens}
	}
	return ctx, state, s.Used(ctx, used)
}

// guard makes a call of a tool as the plugins agree to it. run is the framework's. A result that was changed is made of
// its text.
func guard[T any](ctx context.Context, c *adk.ToolContext, arguments string, run func(arguments string) (T, error), read func(T) string, write func(text string) T) (result T, err error) {
	s := speakerOf(ctx)
	call := loop.Call{ID: c.CallID, Tool: c.Name, Arguments: json.RawMessage(arguments)}
	if s.plugins[c.Name] {
		done, err := s.Tool(ctx, call)
		return write(done.Text), err
	}
	done, err := s.Call(ctx, call, func(c loop.Call) (text string, err error) {
		if result, err = run(string(c.Arguments)); err == nil {
			text = read(result)
		}
		return text, err
	}, interrupted)
	if err == nil && done.Changed {
		result = write(done.Text)
	}
	return result, err
}

func interrupted(err error) bool {
	_, is := compose.IsInterruptRerunError(err)
	return is
}

func same(text string) string { return text }

func (*handler) WrapInvokableToolCall(_ context.Context, next adk.InvokableToolCallEndpoint, c *adk.ToolContext) (adk.InvokableToolCallEndpoint, error) {
	return func(ctx context.Context, arguments string, o ...tool.Option) (string, error) {
		return guard(ctx, c, arguments, func(arguments string) (string, error) { return next(ctx, arguments, o...) }, same, same)
	}, nil
}

// WrapStreamableToolCall implements adk.ChatModelAgentMiddleware. A stream is read whole before the plugins see it.
func (*handler) WrapStreamableToolCall(_ context.Context, next adk.StreamableToolCallEndpoint, c *adk.ToolContext) (adk.StreamableToolCallEndpoint, error) {
	return func(ctx context.Context, arguments string, o ...tool.Option) (*schema.StreamReader[string], error) {
		text, err := guard(ctx, c, arguments, func(arguments string) (string, error) {
			s, err := next(ctx, arguments, o...)
			return collect(s, err, func(list []string) (string, error) { return strings.Join(list, ""), nil })
		}, same, same)
		return schema.StreamReaderFromArray([]string{text}), err
	}, nil
}

func (*handler) WrapEnhancedInvokableToolCall(_ context.Context, next adk.EnhancedInvokableToolCallEndpoint, c *adk.ToolContext) (adk.EnhancedInvokableToolCallEndpoint, error) {
	return func(ctx context.Context, in *schema.ToolArgument, o ...tool.Option) (*schema.ToolResult, error) {
		return guard(ctx, c, in.Text, func(arguments string) (*schema.ToolResult, error) {
			return next(ctx, &schema.ToolArgument{Text: arguments}, o...)
		}, textOf, partOf)
	}, nil
}

// WrapEnhancedStreamableToolCall implements adk.ChatModelAgentMiddleware. A stream is read whole before the plugins see it.
func (*handler) WrapEnhancedStreamableToolCall(_ context.Context, next adk.EnhancedStreamableToolCallEndpoint, c *adk.ToolContext) (adk.EnhancedStreamableToolCallEndpoint, error) {
	return func(ctx context.Context, in *schema.ToolArgument, o ...tool.Option) (*schema.StreamReader[*schema.ToolResult], error) {
		r, err := guard(ctx, c, in.Text, func(arguments string) (*schema.ToolResult, error) {
			s, err := next(ctx, &schema.ToolArgument{Text: arguments}, o...)
			return collect(s, err, schema.ConcatToolResults)
		}, textOf, partOf)
		return schema.StreamReaderFromArray([]*schema.ToolResult{r}), err
	}, nil
}

// collect reads a stream to its end.
func collect[T any](s *schema.StreamReader[T], err error, concat func([]T) (T, error)) (whole T, _ error) {
	if err != nil {
		return whole, err
	}
	defer s.Close()
	for list := []T(nil); ; {
		piece, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return concat(list)
		}
		if err != nil {
			return whole, err
		}
		list = append(list, piece)
	}
}

// textOf is what plugins see of a result: its texts.
func textOf(r *schema.ToolResult) string {
	var text strings.Builder
	for _, p := range r.Parts {
		text.WriteString(p.Text)
	}
	return text.String()
}

func partOf(text string) *schema.ToolResult {
	return &schema.ToolResult{Parts: []schema.ToolOutputPart{{Type: schema.ToolPartTypeText, Text: text}}}
}
