package gateway

import (
	"context"
	"time"

	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/phases"
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
	Store       string `json:"store"`
	Connections int    `json:"connections"`
	Watchers    int    `json:"watchers"    jsonschema:"how often a connection watches a workspace"`
	// Seq is the place up to which changes have been told; null where the database
	// has not been reached yet.
	Seq *tree.Seq `json:"seq"`
	// Plugins are the rows that "grapnel dispatch" prints too.
	Plugins []phases.PluginRow `json:"plugins"`
	Stats   runtime.Stats      `json:"stats"`
}

// statusMethods: what plugins say of their failures is for operators.
func (g *Gateway) statusMethods() []rpc.Method {
	return []rpc.Method{
		method("status", rpc.AdminRight, "Says how the gateway is: its plugins, counters and connections.", (*anyone).asked,
			func(context.Context, call[anyone]) (Status, error) { return g.status(), nil }),
	}
}

// status is a snapshot.
func (g *Gateway) status() Status {
	s := Status{
		Version: g.opts.Version, StartedAt: g.started.UTC(), UptimeSeconds: g.opts.Now().Sub(g.started).Seconds(),
		Store: g.opts.StoreName, Connections: int(g.open.Load()), Watchers: g.hub.watchers(), Plugins: []phases.PluginRow{},
	}
	if place, known := g.hub.progress(); known {
		s.Seq = &place
	}
	if g.opts.Engine != nil {
		s.Plugins = append(s.Plugins, g.opts.Engine.Plugins()...)
		s.Stats = g.opts.Engine.Stats()
	}
	return s
}
