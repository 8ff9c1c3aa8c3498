package agentsdoc

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/settings"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/watch"
	"github.com/grapnelhq/grapnel/sdk"
)

// invalidateTime bounds how long the watcher waits for the host.
const invalidateTime = time.Second

// docs is the plugin under one configuration. It is safe for concurrent use;
// close ends it.
type docs struct {
	view     chain.FS
	settings settings.Settings
	options  chain.Options
	// sum tells configurations apart: what was said under another is not gone on
	// with.
	sum  string
	host phases.Host
	// instance is the operator's name for the plugin.
	instance string
	// keeps says that the host keeps the plugin's state.
	keeps bool
	// reloaded says that another configuration was in force before, in this
	// process: sessions begin a new epoch.
	reloaded bool

	sessions sessions
	watcher  *watch.Watcher
}

func newDocs(with powers, s settings.Settings, c *phases.Configuration) *docs {
	d := &docs{
		view: with.view, settings: s, options: s.Options, sum: sumOf(s), host: c.Host,
		instance: cmp.Or(c.Instance, "agentsdoc"),
		keeps:    c.Host != nil && slices.Contains(c.Services, stateService),
	}
	d.watcher = watch.New(watch.Options{Changed: d.noticed, Remote: with.remote})
	d.sessions.dropped = func(s *session) { d.watcher.Forget(s.key.text()) }
	return d
}

// sumOf is the hash of settings.
func sumOf(s settings.Settings) string {
	data, err := json.Marshal(s) //nolint:musttag // for comparison within this process
	if err != nil {
		return "" // of plain data; then all are alike
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// close ends the watch and waits for it.
func (d *docs) close() { d.watcher.Close() }

// noticed is told by the watcher whose files may have changed.
func (d *docs) noticed(ids []string) {
	for _, id := range ids {
		if s := d.sessions.known(id); s != nil {
			s.dirty.Store(true)
		}
	}
	if d.host == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), invalidateTime)
	defer cancel()
	// A host that does not hear has nothing in memory either: it is gone.
	_ = d.host.Invalidate(ctx, phases.Invalidation{Tags: []string{tagChanged}})
}

// passing makes the host ask again next time: what is being answered must not be
// taken from memory.
func passing(ctx context.Context, call *sdk.Call) {
	if call.Host != nil {
		_ = call.Host.Invalidate(ctx, phases.Invalidation{Subscriptions: []string{call.Subscription}}) // as above
	}
}

// observe begins to watch what was looked at for a session, or to look at it
// again each turn where nobody can watch. What changed in between is noticed.
func (d *docs) observe(s *session, seen watch.Seen) {
	s.seen, s.polled = seen, false
	if s.key.session == "" || len(seen) == 0 {
		return // a turn is over before anything changes
	}
	s.polled = true
	if id := s.key.text(); d.settings.Watch && d.sessions.known(id) == s {
		err := d.watcher.Watch(id, seen)
		if s.polled = err != nil; s.polled {
			s.remark(codeWatchDegraded, phases.SeverityInfo, "files are looked at again in each turn: "+err.Error())
		}
		if d.sessions.known(id) == nil { // forgotten meanwhile: nobody else would end it
			d.watcher.Forget(id)
		}
	}
	if seen.Changed(d.view) {
		s.dirty.Store(true)
	}
}

// stale reports whether the files of a session may be other ones by now, and
// takes note of it.
func (d *docs) stale(s *session) bool {
	if s.dirty.Swap(false) {
		return true
	}
	return s.polled && s.seen.Changed(d.view)
}

// relevant is what was seen, as far as a change of it matters to a chain.
func relevant(found *chain.Chain, seen watch.Seen) watch.Seen {
	if !found.RootFound {
		return seen
	}
	return seen.Below(found.Root, found.Options.Markers)
}
