package runtime

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/background"
	"github.com/grapnelhq/grapnel/internal/engine/bounded"
	"github.com/grapnelhq/grapnel/internal/engine/keeper"
	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/internal/engine/plan"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/engine/sessions"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/phases"
)

// dispatcher runs phases.
type dispatcher struct {
	invoker

	table      *phases.Table
	background *background.Work
	// facts bounds the deriving of facts, which looks at files.
	facts *bounded.Func
	// sessions caches what is remembered from turn to turn.
	sessions *sessions.Cache
	// keeper calls the sink; nil without one.
	keeper *keeper.Keeper
	// runs numbers the runs whose answers are cached.
	runs atomic.Uint64
	// spare holds finished dispatches for reuse.
	spare sync.Pool
}

type request struct {
	context phases.Context
	input   phases.Input
	// state is what the turn has gathered so far; never nil.
	state *turnstate.State
	// prompt is the last one of the turn's agent; nil for none.
	prompt *phases.DecisionRef
	// key is the base of the idempotency keys of its calls; empty for none.
	key string
	// callID is the host's id of the tool call; empty for others.
	callID string
}

// dispatch is the one path that every phase takes. It is reused: nothing that outlives Engine.dispatch may point into
// it. Hooks of one layer write to their own call only.
type dispatch struct {
	course

	// The rest is memory for the next one.

	calls []call
	sent  []*call
	// others are the calls of a layer that have goroutines.
	others sync.WaitGroup
	// replies are the calls for merging.
	replies []merge.Reply
	scratch merge.Scratch
}

// course is what belongs to one dispatch alone.
type course struct {
	engine *dispatcher
	gen    *generation
	phase  *plannedPhase
	rq     request

	phaseBudget
	view

	// runs are the rows of the ledger; each call writes its own.
	runs []phases.Run
	// failed is why the phase failed closed.
	failed *phases.Error
	// sets are the turn's policies and contexts.
	sets merge.State
	// merged is the result of the last of so many merges.
	merged merge.Result
	merges int
}

type phaseBudget struct {
	start    time.Time
	deadline time.Time
	granted  time.Duration
	// chars is the text budget that the turn has left; negative for none.
	chars int
}

// view is what the hooks of the next stage see.
type view struct {
	// policies and contexts are the turn's, for validators with those of this phase.
	policies []phases.PolicyEntry
	contexts []phases.ContextEntry
	// input is the request's with the applied rewrites.
	input   phases.Input
	applied []phases.MergedRewrite
	// facts are those of the call; nil until somebody needs them. stale says that they are of other arguments than the
	// input has, and informed is the input with them; nil until they are derived for it.
	facts    *phases.Facts
	stale    bool
	informed phases.Input
	// keys are shared by the calls that look for cached answers.
	keys sharedKeys
}

type call struct {
	reply
	cacheSlot

	dispatch *dispatch
	sub      *plan.Subscription
	hook     *hook
	run      *phases.Run
	// settled says that the state is final.
	settled bool
	failure *phases.Error
	// judged are the rewrites in the input that the hook was asked about.
	judged []phases.MergedRewrite
	mark   failMark
	// span is the call's place in the host's trace.
	span span
	// once, if set, runs right before the plugin is called; see background.Attempt.
	once func(ctx context.Context) *phases.Error
	// asked and answer are the last message and its answer.
	asked   phases.Dispatch
	pending pool.Pending
	answer  phases.Result
	// sent is the invocation of a call that was sent and waits for its answer.
	sent *invocation
}

// reply is what is left of an answer once it has been admitted, or recalled.
type reply struct {
	entries []merge.Entry
	space   [1]merge.Entry // for entries
	dropped []merge.Drop
	notes   []phases.Diagnostic
	// declined says that the hook was called and does not apply to its input.
	declined bool
}

// cacheSlot says where an answer is to be cached; the key is empty for none.
type cacheSlot struct {
	key   string
	epoch uint64
}

type sharedKeys struct{ policies, contexts string }

func (d *dispatch) callOf(subscription string) *call {
	for i := range d.calls {
		if d.calls[i].sub.ID == subscription {
			return &d.calls[i]
		}
	}
	return nil
}

// fail settles a call with a failure; the policy is applied later, in plan order.
func (c *call) fail(err *phases.Error) {
	c.failure, c.settled = err, true
	if err.Visibility != c.sub.Visibility { // several calls may share one error
		own := *err
		own.Visibility, c.failure = c.sub.Visibility, &own
	}
	failRun(c.run, err)
	if err.Code == phases.CauseCancelled {
		c.failure = nil
	}
}

type fallbackUse string

const (
	fallbackNone    fallbackUse = "none"
	fallbackUsed    fallbackUse = "used"
	fallbackRefused fallbackUse = "refused"
)

type failMark struct {
	// row is its place in the call's notes, from 1; 0 without one.
	row int
	use fallbackUse
	// fallback is how many contributions the fallback has added.
	fallback int
}

// advance shows the next stage what earlier ones have brought.
func (d *dispatch) advance() {
	if d.merges > 0 {
		d.policies, d.contexts, d.keys = d.merged.Policies, d.merged.Contexts, sharedKeys{}
	}
}

// textBudget is how many characters of a plugin's text will be kept at most; 1 stands for none, since 0 does not bound.
func (d *dispatch) textBudget(c *call) int {
	return min(cmp.Or(max(0, c.sub.Budget.Chars), merge.DefaultSectionChars), max(1, d.chars))
}
