// Package replay sends what was recorded of plugins to them again, without the host
// and the model that they had, and compares the answers.
//
// [Read] sorts a record into parts, each of one plugin under one configuration. The caller starts an engine with that
// plugin, whose host calls the part's [Host] answers from the record, and [Part.Play] makes the calls, one after
// another in the recorded order. It knows neither files nor flags, and starts nothing itself.
//
// # What is compared
//
// The answers as they came, before anything was checked, merged or cut: as canonical JSON, so that the order of
// members does not matter, while the order of contributions does. Of an error its code and the plugin's own word
// count; messages hold numbers of processes and times. Times are shown and never compared. Where the recorded caller
// had gone before an answer came, there is nothing to compare with.
//
// # What a plugin must do its part for
//
// The same answer twice needs the same question: the recorded clock and ids are sent again, but a plugin that looks
// at its own clock, at files, or into a database of its own, answers by what is there now.
//
// Stability: internal.
package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/grapnelhq/grapnel/internal/cli/record"
	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// Engine plays a part; a *runtime.Engine is one.
type Engine interface {
	Replay(ctx context.Context, x *runtime.Exchange) (*runtime.Exchange, error)
}

var _ Engine = (*runtime.Engine)(nil)

// Outcome is how an answer compares with the recorded one.
type Outcome string

// The outcomes.
const (
	// Same is the same answer, or the same failure.
	Same Outcome = "same"
	// Differs is another answer, an answer in place of a failure, or another failure.
	Differs Outcome = "differs"
	// Failed is a failure in place of an answer.
	Failed Outcome = "failed"
	// Skipped was sent, and cannot be compared.
	Skipped Outcome = "skipped"
)

// Outcomes lists the outcomes.
func Outcomes() []Outcome { return []Outcome{Same, Differs, Failed, Skipped} }

// Run is one call that was played.
type Run struct {
	Run          int     `json:"run"          jsonschema:"counts from 1"`
	Line         int     `json:"line"         jsonschema:"the line of the record"`
	Plugin       string  `json:"plugin"`
	Subscription string  `json:"subscription" jsonschema:"the hook's full id, or PLUGIN.TOOL"`
	Outcome      Outcome `json:"outcome"`
	Recorded     Answer  `json:"recorded"     jsonschema:"what was recorded"`
	Now          Answer  `json:"now"          jsonschema:"what came now"`
	// Differences are bounded by maxDifferences.
	Differences []Difference `json:"differences" jsonschema:"where the answers differ; the first of them"`
	Unrecorded  []string     `json:"unrecorded"  jsonschema:"host calls that the record has no answer to; they were answered unavailable"`
}

// Answer is the short form of an answer.
type Answer struct {
	MS         float64  `json:"ms"`
	Code       string   `json:"code"        jsonschema:"why there is no answer; empty if there is one"`
	PluginCode string   `json:"plugin_code"`
	Message    string   `json:"message"     jsonschema:"the failure in words; not compared"`
	Hashes     []string `json:"hashes"      jsonschema:"hashes of the contributions, or of a tool's content"`
}

// Play sends the part's calls to the engine, one after another, and reports each run,
// numbered from first. It fails only if the engine cannot play at all, or ctx ends.
func (p *Part) Play(ctx context.Context, eng Engine, first int, tell func(*Run)) error {
	for i := range p.calls {
		c := &p.calls[i]
		p.Host.begin(c.asked)
		now, err := eng.Replay(ctx, c.exchange)
		unrecorded := p.Host.end()
		if err != nil {
			return err
		}
		run := compare(c.exchange, now)
		run.Run, run.Line, run.Unrecorded = first+i, c.line, append([]string{}, unrecorded...)
		tell(run)
	}
	return nil
}

// Times are quantiles of what calls took, in milliseconds.
type Times struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// TimesOf returns the quantiles of some times by nearest rank; zero for none.
func TimesOf(ms []float64) Times {
	if len(ms) == 0 {
		return Times{}
	}
	sorted := slices.Sorted(slices.Values(ms))
	at := func(percent int) float64 { return sorted[max(0, (len(sorted)*percent+99)/100-1)] }
	return Times{at(50), at(99)}
}

// Host answers a plugin's host calls from the record. It is safe for concurrent use.
type Host struct {
	mu      sync.Mutex
	known   map[question][]*answer // all recorded calls by question, in the recorded order
	now     []*answer              // those of the call that is being played; unknown are its other questions
	unknown []string
}

var _ phases.Host = (*Host)(nil)

type question struct{ method, params string }

// answer is one recorded call; used says that it has been given.
type answer struct {
	asked question
	call  runtime.HostCall
	used  bool
}

func newHost() *Host { return &Host{known: map[question][]*answer{}} }

func ask(service, method string, params json.RawMessage) question {
	canonical, err := digest.JSON(nil, params)
	if err != nil {
		canonical = params // nothing, or what is not JSON: as it is
	}
	return question{service + "." + method, string(canonical)}
}

func (h *Host) learn(calls []runtime.HostCall) []*answer {
	var list []*answer
	for _, c := range calls {
		a := &answer{asked: ask(c.Service, c.Method, c.Params), call: c}
		h.known[a.asked] = append(h.known[a.asked], a)
		list = append(list, a)
	}
	return list
}

// begin sets the recorded calls of the next exchange.
func (h *Host) begin(asked []*answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now, h.unknown = asked, nil
}

// end returns what was asked since begin and is not in the record.
func (h *Host) end() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	unknown := h.unknown
	h.now, h.unknown = nil, nil
	slices.Sort(unknown) // concurrent calls come in any order
	return slices.Compact(unknown)
}

// Call implements phases.Host. A question that was asked several times gets the answers in the recorded order: first
// those of the call that is being played, then others, at last the last one again.
func (h *Host) Call(_ context.Context, service, method string, params json.RawMessage) (json.RawMessage, error) {
	q := ask(service, method, params)
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.next(q)
	if a == nil {
		h.unknown = append(h.unknown, q.method)
		return nil, phases.Errorf(phases.CauseUnavailable, "the record has no answer of %s to these parameters, and a replay has no host to ask", q.method)
	}
	a.used = true
	if a.call.Err != nil {
		failed := *a.call.Err
		return nil, &failed
	}
	return slices.Clone(a.call.Result), nil
}

func (h *Host) next(q question) *answer {
	fresh := func(a *answer) bool { return !a.used && a.asked == q }
	if i := slices.IndexFunc(h.now, fresh); i >= 0 {
		return h.now[i]
	}
	all := h.known[q]
	if i := slices.IndexFunc(all, fresh); i >= 0 {
		return all[i]
	}
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// Invalidate implements phases.Host: a replay has no cache.
func (h *Host) Invalidate(context.Context, phases.Invalidation) error { return nil }

// Filter narrows a record. Empty fields do not.
type Filter struct {
	Plugin       string
	Subscription string
}

// Recording is what can be played of a record.
type Recording struct {
	// Parts are in the order of their first exchanges.
	Parts []*Part
	// Omitted exchanges are missing in the file, for the reason Why; Unfinished lines are cut off.
	Omitted    int
	Why        string
	Unfinished int
}

// Part is the calls of one plugin under one configuration.
type Part struct {
	// Plugin is the operator's name, and Own the plugin's own.
	Plugin, Own string
	// Version and SHA256 are the recorded ones.
	Version, SHA256 string
	// Configuration is never nil.
	Configuration *runtime.ExchangeConfiguration
	// Phases are those of its hooks.
	Phases []phases.Phase
	// Host answers its host calls.
	Host *Host

	calls []recorded
}

// Len is how many calls it has.
func (p *Part) Len() int { return len(p.calls) }

type recorded struct {
	line     int
	exchange *runtime.Exchange
	asked    []*answer // its host calls
}

var errEmpty = errors.New("nothing is recorded in it: no plugin was called")

// Read reads a record. A filter without matches is an error, which names the nearest.
func Read(r io.Reader, f Filter) (*Recording, error) {
	s := sorter{filter: f, out: &Recording{}, parts: map[string]*Part{}, started: map[start]*runtime.Exchange{}, hosts: map[string]*Host{}}
	in := record.NewReader(r)
	for {
		entry, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := s.add(entry); err != nil {
			return nil, fmt.Errorf("line %d: %w", entry.Line, err)
		}
	}
	s.out.Unfinished = in.Unfinished()
	return s.out, s.check()
}

// FilterError says that nothing matches a filter.
type FilterError struct{ message string }

// Error implements error.
func (e *FilterError) Error() string { return e.message }

// start names one start of a plugin over all sessions.
type start struct {
	session string
	number  uint64
}

type sorter struct {
	filter  Filter
	out     *Recording
	parts   map[string]*Part
	started map[start]*runtime.Exchange // the last configurations of each start
	hosts   map[string]*Host            // by plugin, for all of its processes
	// plugins and subscriptions are those of all calls.
	plugins, subscriptions []string
}

func (s *sorter) add(e *record.Entry) error {
	x := e.Exchange
	if x == nil {
		s.out.Omitted += e.Omitted
		s.out.Why = e.Why
		return nil
	}
	at := start{e.Session, x.Start}
	if x.Kind == runtime.ExchangeConfigure {
		if x.Err == nil && x.Configuration != nil {
			s.started[at] = x
		}
		return nil
	}
	host := s.hosts[x.Plugin]
	if host == nil {
		host = newHost()
		s.hosts[x.Plugin] = host
	}
	asked := host.learn(x.HostCalls)
	if x.Kind == runtime.ExchangeHost {
		return nil
	}
	s.plugins, s.subscriptions = append(s.plugins, x.Plugin), append(s.subscriptions, x.Subscription)
	if s.filter.Plugin != "" && x.Plugin != s.filter.Plugin || s.filter.Subscription != "" && x.Subscription != s.filter.Subscription {
		return nil
	}
	part, err := s.part(x, s.started[at], host)
	if err == nil {
		part.calls = append(part.calls, recorded{e.Line, x, asked})
	}
	return err
}

func (s *sorter) part(x, configured *runtime.Exchange, host *Host) (*Part, error) {
	p := &Part{
		Plugin: x.Plugin, Own: x.Plugin, Version: x.Version, SHA256: x.SHA256, Host: host,
		Configuration: &runtime.ExchangeConfiguration{Instance: x.Plugin},
	}
	if configured != nil {
		p.Configuration = configured.Configuration
		if d := configured.Description; d != nil {
			p.Own = d.Name
			for i := range d.Hooks {
				p.Phases = append(p.Phases, d.Hooks[i].Phase)
			}
		}
	}
	key, err := json.Marshal([]any{x.Plugin, p.Configuration})
	if err != nil {
		return nil, err
	}
	if known := s.parts[string(key)]; known != nil {
		return known, nil
	}
	s.parts[string(key)] = p
	s.out.Parts = append(s.out.Parts, p)
	return p, nil
}

func (s *sorter) check() error {
	f := s.filter
	switch {
	case len(s.plugins) == 0:
		return errEmpty
	case len(s.out.Parts) > 0:
		return nil
	case f.Plugin != "" && !slices.Contains(s.plugins, f.Plugin):
		return &FilterError{fmt.Sprintf("no call of a plugin %q is in the record%s", f.Plugin, suggest.DidYouMean(f.Plugin, distinct(s.plugins)))}
	}
	return &FilterError{fmt.Sprintf("no call of %q is in the record%s", f.Subscription, suggest.DidYouMean(f.Subscription, distinct(s.subscriptions)))}
}

func distinct(words []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(words)))
}
