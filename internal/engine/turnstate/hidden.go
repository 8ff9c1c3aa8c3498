package turnstate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/phases"
)

// Hidden tools. A plugin hides a tool in a domain, to keep its definition out of each
// prompt. Until the domain is requested, the tool can be neither seen nor called. A model
// requests domains with request_tools, the host with CompileInput.RequestedDomains.
//
// A request holds for the turn; a model's also for the following turns of the same session
// and epoch. A new epoch means that the conversation was summarised, and with it what the
// model knew of these tools. A turn keeps what it has, even over a compaction.

const (
	maxListed   = 20
	maxWarnings = 3
	maxWarning  = 500 // characters
)

// Tools are the tools that plugins have brought into the turn, hidden ones included.
func (s *State) Tools() []phases.MergedTool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allTools()
}

// allTools is Tools for callers that hold the lock.
func (s *State) allTools() []phases.MergedTool {
	var all []phases.MergedTool
	for i := range s.brought {
		all = append(all, s.brought[i].tools...)
	}
	return all
}

// Loaded is what request_tools answers.
type Loaded struct {
	Loaded []LoadedDomain `json:"loaded"`
	// Errors tell the model what was wrong with its call.
	Errors []string `json:"errors,omitempty"`
	// StillHidden are the domains that are left.
	StillHidden []string `json:"still_hidden"`
}

// LoadedDomain is a domain whose tools are available now.
type LoadedDomain struct {
	Domain string       `json:"domain"`
	Tools  []loadedTool `json:"tools"`
}

type loadedTool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// OffersRequest reports whether the model was offered request_tools.
func (s *State) OffersRequest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offered
}

// Load makes the tools of the named domains available and returns what is available now.
func (s *State) Load(names []string) Loaded {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := Loaded{Loaded: []LoadedDomain{}, StillHidden: []string{}}
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
		case !slices.ContainsFunc(a.Loaded, func(l LoadedDomain) bool { return l.Domain == name }):
			slices.SortFunc(tools, func(x, y loadedTool) int { return strings.Compare(x.Name, y.Name) })
			a.Loaded = append(a.Loaded, LoadedDomain{name, tools})
			s.request(name)
		}
	}
	for _, d := range slices.Sorted(maps.Keys(domains)) {
		if !s.requested[d] {
			a.StillHidden = append(a.StillHidden, d)
		}
	}
	return a
}

func unknownDomain(name string, domains map[string][]loadedTool) string {
	known := slices.Sorted(maps.Keys(domains))
	for _, d := range known {
		if slices.ContainsFunc(domains[d], func(t loadedTool) bool { return t.Name == name }) {
			return fmt.Sprintf("%.80q is a tool of the domain %q: name the domain", name, d)
		}
	}
	hint := suggest.DidYouMean(name, known)
	switch {
	case hint != "":
	case len(known) == 0:
		hint = "; there are none in this turn any more"
	default:
		hint = "; there are " + strings.Join(known[:min(len(known), maxListed)], ", ")
	}
	return fmt.Sprintf("there is no hidden domain %.80q%s", name, hint)
}

// Ask notes that hidden domains were requested.
func (s *State) Ask(domains []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range domains {
		s.request(d)
	}
}

func (s *State) request(domain string) {
	if s.requested == nil {
		s.requested = map[string]bool{}
	}
	s.requested[domain] = true
}

// RefusedTool is the error of a call that the turn does not allow. The model sees it, too.
func RefusedTool(format string, args ...any) *phases.Error {
	return phases.Errorf(phases.CauseForbidden, format, args...)
}

// Callable returns the plugin that brought a tool into the turn, and why the tool cannot be called, if it cannot.
func (s *State) Callable(name string) (owner string, refused *phases.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var known []string
	for i := range s.brought {
		for j := range s.brought[i].tools {
			t := &s.brought[i].tools[j]
			if t.Name != name {
				known = append(known, t.Name)
				continue
			}
			if d := t.Definition.HiddenDomain; d != "" && !s.requested[d] {
				return t.Owner, RefusedTool("the tool %q is hidden: call %s with its domain %q first", name, phases.RequestTools, d)
			}
			return t.Owner, nil
		}
	}
	return "", RefusedTool("no plugin has brought a tool %.80q into this turn%s%s", name, suggest.DidYouMean(name, known), s.whyNoTool())
}

// whyNoTool is what plugins warned of when they brought their tools, such as a server that is down.
func (s *State) whyNoTool() string {
	var said []string
	for i := range s.brought {
		if s.brought[i].phase != phases.PreTools {
			continue
		}
		for _, d := range s.brought[i].warnings {
			said = append(said, d.Plugin+": "+text.Head(d.For(phases.AudienceUser).Message, maxWarning))
		}
	}
	if len(said) == 0 {
		return ": only what turn.pre_tool_materialization brought can be called"
	}
	return "; plugins that bring tools report: " + strings.Join(said[:min(len(said), maxWarnings)], "; ")
}

// warnings are the diagnostics of a phase from warnings on.
func warnings(out *phases.Outcome) (list []phases.Diagnostic) {
	for _, d := range out.Diagnostics {
		if d.Severity != phases.SeverityInfo {
			list = append(list, d)
		}
	}
	return list
}

// Offer notes what a prompt offers the model. Once offered, request_tools is answered to the end of the turn.
func (s *State) Offer(offered []phases.MergedTool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offered = s.offered || slices.ContainsFunc(offered, func(t phases.MergedTool) bool {
		return t.Name == phases.RequestTools && t.Owner == phases.OwnerBuiltin
	})
}

// Requested are the requested hidden domains, sorted.
func (s *State) Requested() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.requested))
}
