package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/tree"
)

// Times of the database's state.
const (
	// readyTime is how long the database may take to show that it can be written.
	readyTime = 2 * time.Second
	// readyFor is how long what it has shown is answered: asking costs a transaction,
	// and everybody may ask.
	readyFor = time.Second
)

// healthy says that the process answers.
func healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n") // nobody is left to be told
}

// readiness is what /readyz answers.
type readiness struct {
	Ready bool `json:"ready"`
	// Database and Engine are "ok", or say in a word what the matter is.
	Database string `json:"database"`
	Engine   string `json:"engine"`
	// Remedy says what can be done about the database; empty where it is well.
	Remedy string `json:"remedy,omitempty"`
}

// ready says whether calls are likely to succeed: 200, or 503. It names no file and
// no server: everybody may ask.
func (g *Gateway) ready(w http.ResponseWriter, r *http.Request) {
	answer := g.readiness(r.Context())
	w.Header().Set("Content-Type", "application/json")
	if !answer.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if text, err := json.Marshal(answer); err == nil { // it always encodes
		_, _ = w.Write(append(text, '\n')) // nobody is left to be told
	}
}

// readiness is the gateway's now, but for the database's, which is of the last
// second.
func (g *Gateway) readiness(ctx context.Context) readiness {
	answer := readiness{Database: "ok", Engine: g.engineState()}
	if err := g.database.state(ctx, g); err != nil {
		answer.Database, answer.Remedy = "unavailable", "look at the gateway's log"
		if e, ok := errors.AsType[*store.Error](err); ok && e.Remedy != "" {
			answer.Database, answer.Remedy = string(e.Code), e.Remedy
		}
	}
	answer.Ready = answer.Database == "ok" && answer.Engine != "stopping"
	return answer
}

// probe is how the database was when it was last asked. Of those who want to know at
// once one asks, and the others wait for the answer.
type probe struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// state is the database's. A caller who goes away does not end the question: the
// answer is everybody's.
func (p *probe) state(ctx context.Context, g *Gateway) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := g.opts.Now()
	if since := now.Sub(p.at); !p.at.IsZero() && since >= 0 && since < readyFor {
		return p.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTime)
	defer cancel()
	was := p.err
	p.err = g.askDatabase(ctx)
	p.at = g.opts.Now()
	if p.err != nil && was == nil {
		g.opts.Logger.Error("the database is not well", "error", p.err)
	} else if p.err == nil && was != nil {
		g.opts.Logger.Info("the database is well again")
	}
	return p.err
}

// askDatabase writes, if it can, and reads the least that there is.
func (g *Gateway) askDatabase(ctx context.Context) error {
	if g.opts.Probe != nil {
		if err := g.opts.Probe(ctx); err != nil {
			return err
		}
	}
	_, err := g.opts.Tree.Changes(ctx, newest, 1)
	return err
}

// engineState asks nothing that could take time. A plugin that is down does not
// make the gateway unready: what depends on it says so itself.
func (g *Gateway) engineState() string {
	if g.opts.Engine == nil {
		return "none"
	}
	ending := func(row phases.PluginRow) bool {
		return row.State == phases.PluginDraining || row.State == phases.PluginStopped
	}
	if slices.ContainsFunc(g.opts.Engine.Plugins(), ending) {
		return "stopping"
	}
	return "ok"
}

// newest is a place that no log of changes reaches: who asks for changes behind it
// learns the newest place.
const newest = tree.Seq(math.MaxInt64)
