package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/recent"
	"github.com/grapnelhq/grapnel/phases"
)

// Hidden tools. A plugin hides a tool in a domain, so that its definition is not in
// each prompt. Until the domain is asked for, the tool is named in the section
// hidden_tool_domains and can be neither seen nor called. A model asks with
// request_tools, which the engine answers; the host may ask for it, in
// CompileInput.Prompt.RequestedDomains.
//
// What was asked for holds for the turn. What a model asked for holds for the
// following turns of the same session and epoch, too. With a new epoch the conversation in which it was asked for
// has been summarised away, and with it what the model knew of these tools: they
// are hidden again, and the prompt is as small as at the beginning. A turn keeps
// what it has, also over a compaction in the middle of it: the model is about to
// use it. The domains are kept, not the tools: what the plugin does not bring any
// more is not there, asked for or not.

// The bounds of what is asked for.
const (
	// maxRequested is how many domains one call may name, and maxRequest how long
	// its arguments may be, in bytes.
	maxRequested = 64
	maxRequest   = 64 << 10
	// maxAsked is how many domains a session remembers.
	maxAsked = 256
	// maxListed is how many domains an answer lists that was asked for another one.
	maxListed = 20
)

// requestAnswer is what request_tools answers.
type requestAnswer struct {
	Loaded []loadedDomain `json:"loaded"`
	// Errors tell the model what was wrong with its call.
	Errors []string `json:"errors,omitempty"`
	// StillHidden are the domains that are left.
	StillHidden []string `json:"still_hidden"`
}

// loadedDomain is one domain that is there now.
type loadedDomain struct {
	Domain string       `json:"domain"`
	Tools  []loadedTool `json:"tools"`
}

// loadedTool is one of its tools. The schema is in the next prompt's tools.
type loadedTool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// answerEncoder is the plan of a type: immutable and safe for concurrent use.
//
//nolint:gochecknoglobals // an immutable table
var answerEncoder = digest.EncoderOf[requestAnswer]()

// requestTools answers a call of request_tools. What a model got wrong is told to
// the model (IsError), and what it got right beside that is done.
func (t *Turn) requestTools(ctx context.Context, call phases.ToolCall) (*phases.ToolResult, error) {
	begin := time.Now()
	if !t.scope.offersRequest() {
		return nil, t.refuseTool(ctx, phases.OwnerBuiltin, call.Tool,
			refusedTool("%s was not offered in this turn: nothing is hidden, or the prompt does not list it", phases.RequestTools))
	}
	var a requestAnswer
	names, err := requestedDomains(call.Arguments)
	if err == nil {
		a = t.scope.load(names)
		t.engine.memory.ask(t.context, a.Loaded)
	} else {
		a = t.scope.load(nil)
		a.Errors = []string{err.Error()}
	}
	content, err := answerEncoder.Append(nil, &a)
	if err != nil {
		return nil, t.refuseTool(ctx, phases.OwnerBuiltin, call.Tool, phases.Errorf(phases.CauseInternal, "the answer of %s: %w", call.Tool, err))
	}
	res := &phases.ToolResult{Content: content, IsError: len(a.Errors) > 0}
	run := newToolRun(t.gen, phases.OwnerBuiltin, call.Tool)
	run.Attempts, run.DurationMS = 1, millis(time.Since(begin))
	t.engine.settleTool(ctx, nil, &run, res, nil)
	t.scope.called(run, nil)
	return res, nil
}

// requestedDomains reads the arguments. The error is for the model.
func requestedDomains(arguments json.RawMessage) ([]string, error) {
	var args struct {
		Domains []string `json:"domains"`
	}
	if len(arguments) > maxRequest {
		return nil, fmt.Errorf("the argument has %d bytes; at most %d", len(arguments), maxRequest)
	}
	if err := phases.CheckJSON(arguments, phases.MaxJSONDepth); err != nil {
		return nil, fmt.Errorf("the argument %w", err)
	}
	if err := json.Unmarshal(arguments, &args); err != nil {
		return nil, errors.New(`the argument is not of the form {"domains": ["NAME"]}`)
	}
	switch n := len(args.Domains); {
	case n == 0:
		return nil, errors.New(`"domains" names no domain`)
	case n > maxRequested:
		return nil, fmt.Errorf(`"domains" names %d domains; at most %d at a time`, n, maxRequested)
	}
	return args.Domains, nil
}

// offersRequest reports whether the model was offered request_tools.
func (s *scope) offersRequest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requestable
}

// load makes the tools of the named domains available and says what is there now.
// Naming one again lists it again.
func (s *scope) load(names []string) requestAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := requestAnswer{Loaded: []loadedDomain{}, StillHidden: []string{}}
	domains := map[string][]loadedTool{}
	for _, t := range s.allTools() {
		if d := t.Definition.HiddenDomain; d != "" {
			domains[d] = append(domains[d], loadedTool{t.Name, t.Definition.Description})
		}
	}
	for _, name := range names {
		tools, known := domains[name]
		switch {
		case !known:
			a.Errors = append(a.Errors, unknownDomain(name, domains))
		case !slices.ContainsFunc(a.Loaded, func(l loadedDomain) bool { return l.Domain == name }):
			slices.SortFunc(tools, func(x, y loadedTool) int { return strings.Compare(x.Name, y.Name) })
			a.Loaded = append(a.Loaded, loadedDomain{name, tools})
			s.askFor(name)
		}
	}
	for _, d := range keys(domains) {
		if !s.asked[d] {
			a.StillHidden = append(a.StillHidden, d)
		}
	}
	return a
}

// unknownDomain tells a model what it may have meant: the domain of the tool that
// it named, the one with the nearest name, or one of those that there are.
func unknownDomain(name string, domains map[string][]loadedTool) string {
	known := keys(domains)
	for _, d := range known {
		if slices.ContainsFunc(domains[d], func(t loadedTool) bool { return t.Name == name }) {
			return fmt.Sprintf("%.80q is a tool of the domain %q: name the domain", name, d)
		}
	}
	hint := phases.DidYouMean(name, known)
	switch {
	case hint != "":
	case len(known) == 0:
		hint = "; there are none in this turn any more"
	default:
		hint = "; there are " + strings.Join(known[:min(len(known), maxListed)], ", ")
	}
	return fmt.Sprintf("there is no hidden domain %.80q%s", name, hint)
}

// ask notes that hidden domains were asked for.
func (s *scope) ask(domains []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range domains {
		s.askFor(d)
	}
}

// askFor is ask for those who hold the lock.
func (s *scope) askFor(domain string) {
	if s.asked == nil {
		s.asked = map[string]bool{}
	}
	s.asked[domain] = true
}

// askedDomains are the domains that were asked for in one epoch of a session.
type askedDomains struct {
	epoch int
	names recent.Map[bool]
}

// ask remembers what was loaded for the following turns of the session and epoch.
// A turn of an older epoch than the one that is remembered asks for itself only.
func (m *memory) ask(c phases.Context, loaded []loadedDomain) {
	if c.SessionID == "" || len(loaded) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id := sessionOf(c)
	a, ok := m.asked.Get(id)
	switch {
	case ok && a.epoch > c.Epoch:
		return
	case !ok || a.epoch < c.Epoch:
		a = &askedDomains{epoch: c.Epoch, names: recent.New[bool](maxAsked)}
		m.asked.Put(c.WorkspaceID, id, a)
	}
	for _, l := range loaded {
		a.names.Put("", l.Domain, true)
	}
}

// askedIn returns what was asked for in the context's session and epoch.
func (m *memory) askedIn(c phases.Context) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.asked.Get(sessionOf(c))
	if !ok || a.epoch != c.Epoch {
		return nil
	}
	return slices.Clone(a.names.Keys(""))
}
