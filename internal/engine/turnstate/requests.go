package turnstate

import (
	"fmt"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// maxFact bounds a value that is kept of what a host said, in bytes.
const maxFact = 4 << 10

// maxChanges bounds the changes that are kept of one request.
const maxChanges = 256

// AddRequest adds what a request of the prompt with the manifest had different from it, for the next record.
func (s *State) AddRequest(manifestID string, changes []manifest.RequestChange) error {
	r := manifest.Request{ManifestID: manifestID, Omitted: max(0, len(changes)-maxChanges)}
	size := 64
	for _, c := range changes[:len(changes)-r.Omitted] {
		for _, word := range []*string{&c.ID, &c.Manifest, &c.Sent} {
			*word = text.Head(text.Repair(*word), phases.MaxIDBytes)
			size += 16 + len(*word)
		}
		r.Changes = append(r.Changes, c)
	}
	if err := r.Check(); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if full := s.ledger.admit(); full != nil {
		return full
	}
	s.requests = append(s.requests, r)
	s.ledger.bytes += size
	return nil
}

// AddHostEvent adds something that the host said of itself, for the next record.
func (s *State) AddHostEvent(e manifest.HostEvent) error {
	e.Facts = append([]manifest.HostFact{}, e.Facts...)
	size := 64
	bound := func(most int, words ...*string) {
		for _, word := range words {
			*word = text.Head(text.Repair(*word), most)
			size += 16 + len(*word)
		}
	}
	bound(phases.MaxIDBytes, &e.Event, &e.CallID)
	bound(maxFact, &e.Refused)
	for i := range e.Facts {
		bound(phases.MaxIDBytes, &e.Facts[i].Name)
		bound(maxFact, &e.Facts[i].Value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if full := s.ledger.admit(); full != nil {
		return full
	}
	s.host = append(s.host, e)
	s.ledger.bytes += size
	return nil
}
