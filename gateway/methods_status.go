package gateway

import (
	"context"
	"time"

	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/tree"
)

// Status is the result of the method status.
type Status struct {
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at"`
	// UptimeSeconds is how long ago that is.
	UptimeSeconds float64 `json:"uptime_seconds"`
	// Store is where documents and manifests are kept, without passwords.
	Store string `json:"store"`
	// Config is where the configuration in force was read.
	Config string `json:"config"`
	// Reload is the last attempt to read it again; nil if there was none.
	Reload      *Reload `json:"reload"      jsonschema:"the last attempt to read the configuration again; null if there was none"`
	Connections int     `json:"connections"`
	Watchers    int     `json:"watchers"    jsonschema:"how often a connection watches a workspace"`
	// Seq is the place up to which changes have been told; null where the database
	// has not been reached yet.
	Seq *tree.Seq `json:"seq"`
	// Turns are those that are kept for clients.
	Turns TurnsKept `json:"kept_turns"`
	// Overview is how plugins, hooks and phases are. A plugin's row begins with what
	// "grapnel dispatch" prints of it.
	runtime.Overview

	// Trouble is what somebody should look at, the worst first; empty where all is
	// well.
	Trouble []Trouble     `json:"trouble"`
	Stats   runtime.Stats `json:"stats"`
	// Queue is how background work stands.
	Queue runtime.QueueStatus `json:"queue"`
}

// TurnsKept says how kept turns stand.
type TurnsKept struct {
	Open        int     `json:"open"`
	Limit       int     `json:"limit"`
	IdleSeconds float64 `json:"idle_seconds" jsonschema:"without a call for so long a turn is ended"`
	EndedIdle   int     `json:"ended_idle"   jsonschema:"how many have been ended for that"`
}

// status is a snapshot.
func (t *turnTable) status() TurnsKept {
	t.mu.Lock()
	defer t.mu.Unlock()
	return TurnsKept{Open: len(t.open), Limit: t.most, IdleSeconds: t.idle.Seconds(), EndedIdle: t.idled}
}

// statusMethods: what plugins say of their failures is for operators.
func (g *Gateway) statusMethods() []rpc.Method {
	return []rpc.Method{
		method("status", rpc.AdminRight, "Says how the gateway is: its plugins and hooks, what is in trouble and why, counters and connections.", (*anyone).asked,
			func(ctx context.Context, _ call[anyone]) (Status, error) { return g.status(ctx), nil }),
	}
}

// status is a snapshot.
func (g *Gateway) status(ctx context.Context) Status {
	s := Status{
		Version: g.opts.Version, StartedAt: g.started.UTC(), UptimeSeconds: g.opts.Now().Sub(g.started).Seconds(),
		Store: g.opts.StoreName, Config: *g.config.Load(), Reload: g.lastReload.Load(), Connections: int(g.open.Load()), Watchers: g.hub.watchers(), Turns: g.turns.status(), Trouble: []Trouble{},
		Overview: runtime.Overview{Plugins: []runtime.PluginHealth{}, Hooks: []runtime.HookRow{}, Phases: []runtime.PhaseRow{}},
	}
	if place, known := g.hub.progress(); known {
		s.Seq = &place
	}
	if g.opts.Engine != nil {
		s.Overview = g.overview()
		s.Trouble = troubles(&s.Overview)
		s.Stats = g.opts.Engine.Stats()
		s.Queue = g.queue(ctx)
	}
	return s
}

// overview is the engine's, with the reloads that it was not asked for.
func (g *Gateway) overview() runtime.Overview {
	o := g.opts.Engine.Overview()
	o.ReloadsRefused += g.refused.Load()
	return o
}
