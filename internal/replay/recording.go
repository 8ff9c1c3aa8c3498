package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/record"
	"github.com/grapnelhq/grapnel/runtime"
)

// Filter narrows a record. Empty fields do not.
type Filter struct {
	Plugin       string
	Subscription string
}

// Recording is what of a record can be played.
type Recording struct {
	// Parts are in the order of their first exchanges.
	Parts []*Part
	// LeftOut exchanges are missing in the file, for the reason Why; Unfinished
	// lines are cut off.
	LeftOut    int
	Why        string
	Unfinished int
}

// Part is what one plugin was asked under one configuration.
type Part struct {
	// Plugin is the operator's name, and Own the plugin's own.
	Plugin, Own string
	// Version and SHA256 are those that were recorded.
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

// recorded is one call.
type recorded struct {
	line     int
	exchange *runtime.Exchange
	// asked are its host calls, which are among the Host's.
	asked []*answer
}

// errEmpty is for a record without calls.
var errEmpty = errors.New("nothing is recorded in it: no plugin was called")

// Read reads a record. A filter that nothing passes is an error, which names the
// nearest.
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

// FilterError says that nothing passes a filter.
type FilterError struct{ message string }

// Error implements error.
func (e *FilterError) Error() string { return e.message }

// start names one start of a plugin over all sessions.
type start struct {
	session string
	number  uint64
}

// sorter sorts the entries of a record.
type sorter struct {
	filter Filter
	out    *Recording
	parts  map[string]*Part
	// started are the last configurations of each start.
	started map[start]*runtime.Exchange
	// hosts are by plugin: what one process has asked may be asked by another.
	hosts map[string]*Host
	// plugins and subscriptions are those of all calls.
	plugins, subscriptions []string
}

// add sorts one entry in.
func (s *sorter) add(e *record.Entry) error {
	x := e.Exchange
	if x == nil {
		s.out.LeftOut += e.LeftOut
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

// part finds the part of a call, or makes it.
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

// check refuses what leaves nothing to play.
func (s *sorter) check() error {
	f := s.filter
	switch {
	case len(s.plugins) == 0:
		return errEmpty
	case len(s.out.Parts) > 0:
		return nil
	case f.Plugin != "" && !slices.Contains(s.plugins, f.Plugin):
		return &FilterError{fmt.Sprintf("no call of a plugin %q is in the record%s", f.Plugin, phases.DidYouMean(f.Plugin, distinct(s.plugins)))}
	}
	return &FilterError{fmt.Sprintf("no call of %q is in the record%s", f.Subscription, phases.DidYouMean(f.Subscription, distinct(s.subscriptions)))}
}

// distinct sorts words and drops repeated ones.
func distinct(words []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(words)))
}
