package gateway

import (
	"context"
	"time"

	"github.com/grapnelhq/grapnel/runtime"
)

// queueTime bounds the question how background work stands: who asks how the gateway
// is wants an answer most when the database is away.
const queueTime = 2 * time.Second

// queue is how background work stands.
func (g *Gateway) queue(ctx context.Context) runtime.QueueStatus {
	ctx, cancel := context.WithTimeout(ctx, queueTime)
	defer cancel()
	return g.opts.Engine.Queue(ctx)
}

// queue sends how background work stands. What is not known is not sent.
func (s sender) queue(q *runtime.QueueStatus) {
	if q.Error != "" {
		return
	}
	const name, help = "grapnel_queue_jobs", "Background work by its state, of all engines that share the queue."
	s.gauge(name, help, float64(q.Waiting), label{"state", "waiting"})
	s.gauge(name, help, float64(q.Scheduled), label{"state", "scheduled"})
	s.gauge(name, help, float64(q.Running), label{"state", "running"})
	s.gauge(name, help, float64(q.Dead), label{"state", "dead"})
	s.gauge("grapnel_queue_oldest_seconds", "For how long the oldest job that waits has been due.", q.OldestSeconds)
}
