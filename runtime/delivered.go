package runtime

import (
	"strings"
	"sync"

	"github.com/grapnelhq/grapnel/phases"
)

// maxDelivered bounds the sessions whose delivered reminders are remembered.
const maxDelivered = 4096

// delivered remembers which reminders were delivered, so that one with a dedupe
// key is delivered once per session and epoch. Without a session there is no
// epoch to remember: only repetitions within the call are left away, which the
// merge has done already. The oldest sessions are forgotten first.
type delivered struct {
	mu       sync.Mutex
	sessions map[string]*deliveredKeys
	order    []string
}

type deliveredKeys struct {
	epoch int
	keys  map[string]bool
}

// keep returns the reminders that were not delivered yet, and notes them.
func (d *delivered) keep(c phases.Context, reminders []phases.MergedReminder) []phases.MergedReminder {
	if c.SessionID == "" || len(reminders) == 0 {
		return reminders
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := d.session(c)
	kept := make([]phases.MergedReminder, 0, len(reminders))
	for _, r := range reminders {
		if r.DedupeKey != "" {
			// A key says nothing about other plugins' reminders.
			plugin, _, _ := strings.Cut(r.Owner, ".")
			key := plugin + "\x00" + r.DedupeKey
			if seen.keys[key] {
				continue
			}
			seen.keys[key] = true
		}
		kept = append(kept, r)
	}
	return kept
}

// session returns the keys of the context's session and epoch.
func (d *delivered) session(c phases.Context) *deliveredKeys {
	id := c.WorkspaceID + "\x00" + c.SessionID
	if d.sessions == nil {
		d.sessions = map[string]*deliveredKeys{}
	}
	s := d.sessions[id]
	if s == nil {
		if len(d.order) >= maxDelivered {
			delete(d.sessions, d.order[0])
			d.order = d.order[1:]
		}
		s = &deliveredKeys{epoch: c.Epoch, keys: map[string]bool{}}
		d.sessions[id] = s
		d.order = append(d.order, id)
	}
	if s.epoch != c.Epoch {
		s.epoch, s.keys = c.Epoch, map[string]bool{}
	}
	return s
}
