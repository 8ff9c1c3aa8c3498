// Package adk makes Grapnel's plugins take part in the runs of the Agent Development Kit for Go, as one of its plugins:
//
//	guard, err := grapnel.New(grapnel.Options{Engine: eng, Where: where})
//	r, err := runner.New(runner.Config{AppName: "app", Agent: root, SessionService: sessions, PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{guard}}})
//
// One run is one turn, whose agents are the agents of the turn: the user's message is judged, each request to a model gets
// the compiled prompt as its system instruction and the tools of plugins, each call of a tool goes through the plugins, and
// what models have used is reported. The turn ends with the run, however that ends.
//
// The first callback of ADK's plugins that answers ends the chain: list Grapnel's plugin first, or others can keep it
// from judging a call.
package adk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/grapnelhq/grapnel/internal/framework"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// Options are what a host decides. Engine and Where are needed.
type Options struct {
	Engine *runtime.Engine
	// Where gives the context of the turn of a run. Without an agent's id it has the name of the agent that begins. Without
	// a turn's id it has one that begins with the invocation's, which alone is not enough: a run that goes on with a
	// person's answer is another turn of the same invocation.
	Where func(ctx agent.InvocationContext) phases.Context
	// Loop has what a prompt is compiled from, whom to ask, and how long results may be. The user's message, tools and
	// instructions are taken from ADK; an agent's own instruction becomes the section "app_instructions".
	Loop loop.Options
}

// New returns the plugin. It may serve any number of runs at the same time. A message or a prompt that is refused ends the
// run with a [*loop.Refused] as its error.
func New(o Options) (*plugin.Plugin, error) {
	if o.Engine == nil || o.Where == nil {
		return nil, errors.New("grapnel: Options need Engine and Where")
	}
	g := &grapnel{options: o, runs: map[string]*run{}}
	return plugin.New(plugin.Config{
		Name:                 "grapnel",
		BeforeRunCallback:    g.beforeRun,
		AfterRunCallback:     g.afterRun,
		OnEventCallback:      g.onEvent,
		BeforeModelCallback:  g.beforeModel,
		AfterModelCallback:   g.afterModel,
		OnModelErrorCallback: g.onModelError,
		BeforeToolCallback:   g.beforeTool,
		AfterToolCallback:    g.afterTool,
	})
}

type grapnel struct {
	options Options

	mu   sync.Mutex
	runs map[string]*run // by the invocation's id
}

// run is one run of an invocation.
type run struct {
	began agent.InvocationContext
	first *framework.Turn // nil if it was refused

	mu     sync.Mutex
	agents map[string]*speaker
	calls  map[agent.Context]checked // those under way: ids of calls need not be unique
	last   error                     // why the run has not answered if it ends now
	answer string
}

// speaker is an agent of a run, in one branch of it.
type speaker struct {
	*framework.Turn

	// Of its last round, guarded by the run:
	heard   bool // the model has said something
	used    phases.Usage
	changes []manifest.RequestChange
	failed  error
}

var (
	errNoRun       = errors.New("grapnel: this invocation did not begin with Grapnel's plugin")
	errTwice       = errors.New("grapnel: this invocation runs already")
	errLive        = errors.New("grapnel: live runs are not supported, because no plugin of ADK's sees what they send")
	errNoAnswer    = errors.New("the run ended before it had an answer")
	errNoArguments = errors.New("grapnel: a plugin rewrites the arguments of this call, and ADK has none to be rewritten")
	errOpen        = fmt.Errorf("the run ended with open calls, or its reader stopped: %w", context.Canceled)
)

func (g *grapnel) beforeRun(ctx agent.InvocationContext) (*genai.Content, error) {
	if ctx.RunConfig() == nil {
		return nil, errLive
	}
	r := &run{began: ctx, agents: map[string]*speaker{}, calls: map[agent.Context]checked{}, last: errNoAnswer}
	g.mu.Lock()
	if g.runs[ctx.InvocationID()] != nil {
		g.mu.Unlock()
		return nil, errTwice
	}
	g.runs[ctx.InvocationID()] = r // until afterRun, which ADK calls from here on
	g.mu.Unlock()
	where := g.options.Where(ctx)
	where.AgentID, where.TurnID = cmp.Or(where.AgentID, ctx.Agent().Name()), cmp.Or(where.TurnID, turnID(ctx))
	o := g.options.Loop
	o.Input.ToolCalling = true
	t, err := framework.Begin(ctx, g.options.Engine, where, o, textOf(ctx.UserContent()))
	if err != nil {
		return nil, err // content would not be shown: ADK repeats the user's message instead
	}
	r.first, r.agents[key(ctx.Agent().Name(), ctx.Branch())] = t, &speaker{Turn: t}
	return nil, nil //nolint:nilnil // ADK's word for going on
}

func turnID(ctx agent.InvocationContext) string {
	if slices.ContainsFunc(partsOf(ctx.UserContent()), func(p *genai.Part) bool { return p.FunctionResponse != nil }) {
		return fmt.Sprintf("%s/%d", ctx.InvocationID(), ctx.Session().Events().Len())
	}
	return ctx.InvocationID()
}

// afterRun ends the turn, whatever ended the run. ADK does not say what that was.
func (g *grapnel) afterRun(ctx agent.InvocationContext) {
	g.mu.Lock()
	r := g.runs[ctx.InvocationID()]
	if r == nil || r.began != ctx {
		g.mu.Unlock()
		return
	}
	delete(g.runs, ctx.InvocationID())
	g.mu.Unlock()
	if r.first == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var failed, asked error
	for _, name := range slices.Sorted(maps.Keys(r.agents)) {
		s := r.agents[name]
		s.report(context.WithoutCancel(ctx))
		if errors.Is(s.failed, errNoAnswer) {
			asked = s.failed
		} else {
			failed = cmp.Or(failed, s.failed)
		}
	}
	_ = framework.End(ctx, r.first.Turn, r.answer, cmp.Or(failed, ctx.Err(), r.last, asked)) // ADK has nobody to return an error to
}

// report tells what became of the last round, once.
func (s *speaker) report(ctx context.Context) {
	if s.heard {
		_ = s.Used(ctx, s.used, s.changes...) // the engine says so; a run does not fail by it
	}
	s.heard, s.used, s.changes = false, phases.Usage{}, nil
}

// onEvent notes how the run would end behind an event.
func (g *grapnel) onEvent(ctx agent.InvocationContext, e *session.Event) (*session.Event, error) {
	r := g.of(ctx.InvocationID())
	if r == nil || e == nil || e.Content == nil && e.Output == nil {
		return nil, nil //nolint:nilnil // ADK's word for going on
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch calls := slices.ContainsFunc(partsOf(e.Content), func(p *genai.Part) bool { return p.FunctionCall != nil }); {
	case calls, e.Partial:
		r.last = errOpen
	case !e.IsFinalResponse():
		r.last = errNoAnswer
	default:
		r.last, r.answer = nil, cmp.Or(textOf(e.Content), r.answer)
	}
	if s := r.agents[key(e.Author, e.Branch)]; s != nil && !e.Partial && errors.Is(s.failed, errNoAnswer) {
		s.failed = nil // somebody has answered in the model's place
	}
	return nil, nil //nolint:nilnil // ADK's word for going on
}

func (g *grapnel) of(invocation string) *run {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.runs[invocation]
}

func key(agent, branch string) string { return agent + "\x00" + branch }

// speaker returns the agent of a callback in its run, whose lock is held then.
func (g *grapnel) speaker(ctx agent.Context) (*run, *speaker, error) {
	r := g.of(ctx.InvocationID())
	if r == nil || r.first == nil {
		return nil, nil, errNoRun
	}
	r.mu.Lock()
	id := key(ctx.AgentName(), ctx.Branch())
	if r.agents[id] == nil {
		t, err := r.first.ForAgent(ctx.AgentName())
		if err != nil {
			r.mu.Unlock()
			return nil, nil, err
		}
		r.agents[id] = &speaker{Turn: t}
	}
	return r, r.agents[id], nil
}

func (g *grapnel) beforeModel(ctx agent.Context, rq *model.LLMRequest) (*model.LLMResponse, error) {
	r, s, err := g.speaker(ctx)
	if err != nil {
		return nil, err
	}
	s.report(ctx)
	r.mu.Unlock()
	if rq.Config == nil {
		rq.Config = &genai.GenerateContentConfig{}
	}
	own, tools, others := declared(rq.Config.Tools)
	s.Input.ExistingTools = slices.Sorted(maps.Keys(rq.Tools))
	p, err := s.Compile(ctx, textOf(rq.Config.SystemInstruction), tools)
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.failed = cmp.Or(err, errNoAnswer); err != nil {
		return nil, err
	}
	rq.Config.SystemInstruction = genai.NewContentFromText(framework.Text(p), genai.RoleUser)
	rq.Contents = framework.Place(s.Turn, p, rq.Contents, func(text string) *genai.Content { return genai.NewContentFromText(text, genai.RoleUser) })
	s.changes = s.offer(rq, p.Tools, own, others)
	return nil, nil //nolint:nilnil // ADK's word for going on
}

func (g *grapnel) afterModel(ctx agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
	r, s, err := g.speaker(ctx)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	if s.heard = true; resp == nil {
		return nil, nil //nolint:nilnil // ADK's word for going on
	}
	if u := resp.UsageMetadata; u != nil { // those of pieces count up
		s.used = phases.Usage{
			InputTokens:  int(u.PromptTokenCount + u.ToolUsePromptTokenCount),
			OutputTokens: int(u.CandidatesTokenCount + u.ThoughtsTokenCount), CacheReadTokens: int(u.CachedContentTokenCount),
		}
	}
	for _, part := range partsOf(resp.Content) {
		if c := part.FunctionCall; c != nil && c.Args == nil {
			c.Args = map[string]any{} // for beforeTool to rewrite
		}
	}
	switch {
	case resp.Partial:
	case resp.Content == nil && resp.ErrorCode != "":
		s.failed = &loop.ProviderError{Err: fmt.Errorf("%s: %s", resp.ErrorCode, resp.ErrorMessage)}
	default:
		s.failed = nil
	}
	return nil, nil //nolint:nilnil // ADK's word for going on
}

func (g *grapnel) onModelError(ctx agent.Context, _ *model.LLMRequest, failed error) (*model.LLMResponse, error) {
	if r, s, err := g.speaker(ctx); err == nil {
		defer r.mu.Unlock()
		s.heard, s.failed = true, &loop.ProviderError{Err: failed}
	}
	return nil, nil //nolint:nilnil // ADK's word for the error itself
}
