package runtime

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// hostRun is a host call that leaves a row in the ledger. It belongs to the
// goroutine that answers the call.
type hostRun struct {
	in *instance
	// at is the call of the plugin in whose course it was made; nil for one that a
	// plugin makes on its own account, which belongs to no ledger and is told only.
	at  *site
	row phases.Run
	// span is its place in the host's trace.
	span span
}

// newHostRun is the row of a host call before anything happened.
func newHostRun(ctx context.Context, in *instance, method string, params json.RawMessage) *hostRun {
	r := &hostRun{in: in, row: phases.Run{
		Subscription: in.declared.Name + "/" + method, Hook: method, Plugin: in.declared.Name, Phase: phases.PhaseHostCall, Stage: phases.StageHost,
		BytesIn: len(params), Contributions: []string{}, Cut: []phases.Cut{},
	}}
	if d := in.description(); d != nil {
		r.row.PluginVersion = d.Version
	}
	if c := chainOf(ctx); c != nil {
		r.at = &c.site
		r.row.Subscription = c.subscription + "/" + method
		r.row.Generation, r.row.Incarnation = c.generation, c.incarnation
	}
	return r
}

// settle writes down what became of the call and tells of it. A call that was not
// made leaves one row for each reason, however often it is repeated: a plugin
// cannot fill the ledger with refusals.
func (r *hostRun) settle(ctx context.Context, result json.RawMessage, err error) {
	r.row.BytesOut, r.row.State = len(result), phases.StateSucceeded
	var failure *phases.Error
	if err != nil {
		failure = wire.ToPlugin(err)
		c := call{run: &r.row}
		c.fail(failure)
	}
	if r.at != nil && !r.at.scope.hostCalled(&r.row) {
		return
	}
	told := r.row
	r.in.engine.tell(ctx, &r.span, &told, failure)
}

// hostCalled puts a host call into the ledger. It reports false for one that was
// refused like another one before it.
func (s *scope) hostCalled(run *phases.Run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if run.Attempts == 0 && slices.ContainsFunc(s.ledger.runs, func(o phases.Run) bool {
		return o.Phase == phases.PhaseHostCall && o.Attempts == 0 && o.Subscription == run.Subscription && o.Code == run.Code
	}) {
		return false
	}
	s.ledger.addRuns(*run)
	return true
}
