// Package mcp is the MCP plugin: it brings the tools of servers of the Model Context Protocol into turns, so that
// they pass the policies, records and grants that all tools pass.
//
// The hook "tools" offers a tool bundle a server, with the tools that the operator granted under the names NAME__TOOL.
// Each has a hash of its name, description and schema. A definition that is not the one that was accepted, or seen
// first, is withheld: a server cannot change what a model is told of a tool that people have come to trust. What was
// accepted stands in the operator's configuration, what was seen first in the host's state; a server, which runs in this
// plugin's sandbox, can write neither. The hook "instructions" writes the servers' instructions as sections, where wanted.
//
// A call is made with the server's own name of the tool. Failures of servers are answers for the model, not failures of
// the plugin. Package mcpclient keeps the connections.
//
// Stability: experimental until 1.0.
package mcp

import (
	"context"
	_ "embed" // for the schema
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/mcp/internal/mcpclient"
	"github.com/grapnelhq/grapnel/sdk"
)

const (
	separator   = "__"
	maxToolName = 64 // what all providers take
	toolsTool   = "mcp_tools"
	cacheTag    = "servers"
	startTime   = 5 * time.Second  // how long a configuration waits for its servers
	cacheTime   = 10 * time.Minute // answers are invalidated earlier when a server changes
	priority    = 300
	maxChars    = 4000 // of one server's instructions
)

// configSchema is the JSON Schema of [config].
//
//go:embed schema.json
var configSchema []byte

// New returns the plugin.
func New() *sdk.Plugin {
	p := &plugin{servers: map[string]*server{}}
	return &sdk.Plugin{
		Name: "mcp", Version: "0.1.0", Doc: "Brings tools of MCP servers into turns.",
		ConfigSchema: configSchema, OnConfigure: p.configure, OnClose: p.close,
	}
}

// plugin owns the servers, which outlive a configuration that still has them.
type plugin struct {
	host    atomic.Pointer[phases.Host] // of the configuration in force
	mu      sync.Mutex
	servers map[string]*server
}

// server is a connection under one configuration.
type server struct {
	*mcpclient.Server

	cfg    *serverConfig
	policy policy
	// judging is held by whoever compares a listing; last is the newest result.
	judging chan struct{}
	last    *verdict
	seen    map[string]string // what is remembered while the process runs
}

// view is the plugin under one configuration.
type view struct {
	config  *config
	names   []string // of the servers, sorted
	servers map[string]*server
}

func (p *plugin) configure(ctx context.Context, c *phases.Configuration) (sdk.Setup, error) {
	cfg, err := parseConfig(c.Config)
	if err != nil {
		return sdk.Setup{}, err
	}
	p.host.Store(&c.Host)
	v := &view{config: cfg, names: slices.Sorted(maps.Keys(cfg.Servers)), servers: map[string]*server{}}
	p.mu.Lock()
	old := p.servers
	p.servers = map[string]*server{}
	for name, want := range cfg.Servers {
		s := old[name]
		if s != nil && s.policy == cfg.policy && reflect.DeepEqual(s.cfg, want) {
			delete(old, name)
		} else {
			s = &server{Server: mcpclient.Start(want.client(name), p.changed), cfg: want, policy: cfg.policy, judging: make(chan struct{}, 1)} //nolint:contextcheck // it outlives the call
		}
		p.servers[name], v.servers[name] = s, s
	}
	p.mu.Unlock()
	closeAll(ctx, old)
	waiting, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for _, s := range v.servers {
		s.Ready(waiting)
	}
	tools := phases.Tool{Name: toolsTool, Description: "Lists what the servers offer, with the hashes to accept."} // to operators: no bundle has it
	return sdk.Setup{Hooks: v.hooks(), Tools: []sdk.Tool{{Tool: tools, Call: v.list}}, AnyTool: v.call}, nil
}

// changed makes the host ask again. Servers change in no call; an answer that stays cached is at most cacheTime old.
func (p *plugin) changed() {
	if host := *p.host.Load(); host != nil {
		ctx, cancel := context.WithTimeout(context.Background(), startTime)
		defer cancel()
		_ = host.Invalidate(ctx, phases.Invalidation{Tags: []string{cacheTag}})
	}
}

func (p *plugin) close(ctx context.Context) error {
	p.mu.Lock()
	old := p.servers
	p.servers = map[string]*server{}
	p.mu.Unlock()
	closeAll(ctx, old)
	return nil
}

func closeAll(ctx context.Context, list map[string]*server) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for _, s := range list {
		s.Stop() // they end at the same time
	}
	for _, s := range list {
		_ = s.Close(ctx) // the host ends what is left
	}
}

// hooks are the subscriptions. None of them fails a phase.
func (v *view) hooks() []sdk.Hook {
	hooks := []sdk.Hook{{
		Name: "tools", Doc: "offers the servers' tools", Kinds: []phases.Kind{phases.KindToolBundle}, Needs: []string{phases.NeedsNothing},
		Cache: &phases.Cache{TTL: phases.Duration(cacheTime), Tags: []string{cacheTag}}, PreTools: v.offer,
	}}
	if slices.ContainsFunc(v.names, func(name string) bool { return v.config.Servers[name].Instructions }) {
		hooks = append(hooks, sdk.Hook{
			Name: "instructions", Doc: "writes the servers' instructions", Kinds: []phases.Kind{phases.KindPromptSection}, Needs: []string{phases.NeedsNothing}, Priority: priority,
			Cache: &phases.Cache{TTL: phases.Duration(cacheTime), Tags: []string{cacheTag}}, PrePromptCompile: v.instruct,
		})
	}
	for i := range hooks {
		hooks[i].Idempotent, hooks[i].Visibility = true, phases.VisibilityUserAudit
	}
	hooks[0].Visibility = phases.VisibilityUserVisible // whoever calls a tool learns why it is not there
	return hooks
}

// judge compares what a server lists now, once for each listing.
func (v *view) judge(ctx context.Context, host phases.Host, name string) (*verdict, error) {
	s := v.servers[name]
	select {
	case s.judging <- struct{}{}:
		defer func() { <-s.judging }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	l := s.Listing()
	if s.last != nil && s.last.of == l {
		return s.last, nil
	}
	kept := memory{host}
	seen, err := kept.get(ctx, name)
	for tool, first := range s.seen { // of this process, where the host keeps nothing
		if seen == nil {
			seen = map[string]string{}
		}
		if seen[tool] == "" {
			seen[tool] = first
		}
	}
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	result, now := judge(name, v.config, l, seen)
	if now != nil {
		s.seen = now
		if err == nil {
			err = kept.put(ctx, name, now)
		}
	}
	if err != nil && v.config.Unknown == remember && len(l.Tools) > 0 {
		result.warn(name, codeNotRemembered, fmt.Sprintf(
			"first definitions are remembered only as long as this process runs: %v. Grant host: [state], or accept the hashes", err))
	}
	s.last = result
	return result, nil
}

// offer is the handler of the hook "tools". Where nothing can be called, the engine omits the tools.
func (v *view) offer(ctx context.Context, call *sdk.Call, _ *phases.PreToolsInput) ([]phases.Contribution, error) {
	var out []phases.Contribution
	for _, name := range v.names {
		got, err := v.judge(ctx, call.Host, name)
		if err != nil {
			return nil, err
		}
		common := phases.Common{ContributionID: name, Diagnostics: got.diagnostics}
		bundle := &phases.ToolBundle{Common: common, BundleID: "mcp." + name}
		for i := range got.tools {
			if got.tools[i].offered(v.config) {
				bundle.Tools = append(bundle.Tools, got.tools[i].tool)
			}
		}
		switch {
		case len(bundle.Tools) > 0:
			out = append(out, bundle)
		case len(got.diagnostics) > 0:
			out = append(out, &phases.Noop{Common: common})
		}
	}
	return out, nil
}

// instruct is the handler of the hook "instructions".
func (v *view) instruct(ctx context.Context, call *sdk.Call, _ *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
	var out []phases.Contribution
	for _, name := range v.names {
		got, err := v.judge(ctx, call.Host, name)
		if err != nil {
			return nil, err
		}
		if got.instructions == nil || !got.instructions.offered(v.config) {
			continue
		}
		text := sdk.CutText(sdk.CleanText(got.of.Instructions), maxChars)
		out = append(out, &phases.PromptSection{
			Common: phases.Common{ContributionID: name}, SectionID: "mcp_" + name, Title: "Tools of " + name, Content: text, Stability: phases.StabilityDynamic,
			Frame:      &phases.Frame{Open: "The server says about its tools, whose names begin with " + name + separator + ":\n\n<SERVER>", Close: "</SERVER>"},
			SourceRefs: []phases.SourceRef{{Kind: "tool", ID: name, Label: "server " + name}},
		})
	}
	return out, nil
}

// call answers the tools of servers. Only what is offered can be called.
func (v *view) call(ctx context.Context, call *sdk.ToolCall) (*phases.ToolResult, error) {
	name, _, _ := strings.Cut(call.Tool, separator)
	s := v.servers[name]
	if s == nil {
		return nil, sdk.Fail("unknown_tool", fmt.Sprintf("no server offers a tool %q", call.Tool))
	}
	got, err := v.judge(ctx, call.Host, name)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(got.tools, func(j judged) bool { return j.tool.Name == call.Tool })
	switch {
	case i < 0 && len(got.of.Problems) > 0:
		return failed(call.Tool, got.diagnostics[0].Message), nil
	case i < 0:
		return failed(call.Tool, "the server "+name+" does not offer it any more"), nil
	case !got.tools[i].offered(v.config):
		return failed(call.Tool, "its definition is "+string(got.tools[i].status)+", and withheld until the operator accepts it"), nil
	}
	res, err := s.Call(ctx, got.tools[i].own, call.Arguments)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return failed(call.Tool, "server "+name+": "+err.Error()), nil
	}
	out := sdk.Text(res.Text)
	out.IsError = res.IsError
	for _, p := range res.Problems {
		out.Diagnostics = append(out.Diagnostics, problem(name, p.Code, p.Message))
	}
	if most := call.Budget.MaxBytes; most > 0 && len(out.Content) > most {
		return failed(call.Tool, fmt.Sprintf("the result has %d bytes, more than an answer can have here (limits.frame)", len(out.Content))), nil
	}
	return out, nil
}

// failed is the answer of a call that has no result.
func failed(tool, why string) *phases.ToolResult {
	text, _ := sdk.CutLine(why, 1000)
	out := sdk.Text(fmt.Sprintf("the tool %s failed: %s", sdk.PlainName(tool), text))
	out.IsError = true
	out.Diagnostics = []phases.Diagnostic{{Code: "mcp_call_failed", Severity: phases.SeverityWarning, Message: text}}
	return out
}
