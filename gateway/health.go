package gateway

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/tree"
)

// readyTime is how long the tree may take to show that it is there.
const readyTime = 2 * time.Second

// healthy says that the process answers.
func healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n") // nobody is left to be told
}

// readiness is what /readyz answers.
type readiness struct {
	Ready bool `json:"ready"`
	// Tree and Engine are "ok", or say in a word what is the matter.
	Tree   string `json:"tree"`
	Engine string `json:"engine"`
}

// ready says whether calls are likely to succeed: 200, or 503. It says no more than
// that: everybody may ask.
func (g *Gateway) ready(w http.ResponseWriter, r *http.Request) {
	answer := readiness{Tree: g.treeState(r.Context()), Engine: g.engineState()}
	answer.Ready = answer.Tree == "ok" && answer.Engine != "stopping"
	w.Header().Set("Content-Type", "application/json")
	if !answer.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if text, err := json.Marshal(answer); err == nil { // it always encodes
		_, _ = w.Write(append(text, '\n')) // nobody is left to be told
	}
}

// treeState reads the least that there is to read.
func (g *Gateway) treeState(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	if _, err := g.opts.Tree.Changes(ctx, newest, 1); err != nil {
		g.opts.Logger.Warn("the tree is out of reach", "error", err)
		return "unavailable"
	}
	return "ok"
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
