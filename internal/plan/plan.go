package plan

import (
	"time"

	"github.com/grapnelhq/grapnel/internal/cond"
	"github.com/grapnelhq/grapnel/phases"
)

// Plugin is one declared plugin: what it says of itself and what the operator
// says about it.
type Plugin struct {
	// Name is the operator's name for it, the first part of its subscription
	// ids.
	Name string
	// Description is what it described; nil as long as it never did. It should
	// have passed [phases.ValidateDescription].
	Description *phases.Description
	// Refused is what the plugin described and no plan would take. Of its hooks those
	// that decide are expected all the same: the plugin is down, and they fail by
	// their policy, which closes unless the operator says otherwise. Nil where there
	// is none; ignored beside a Description.
	Refused *phases.Description
	Grants  phases.Grants
	// Overrides are the operator's changes, by full subscription id.
	Overrides map[string]phases.Override
	// Command says that the plugin is a program of the operator's choice, which
	// may be down when it matters. A fail-closed override must then state its
	// phase, also while the plugin is up.
	Command bool
}

// Budget is what the operator says about one phase.
type Budget struct {
	// Time of 0 means the phase's default. Queue phases have none.
	Time time.Duration
	// Require names subscriptions that must have completed.
	Require []string
}

// Options is what a plan depends on besides the plugins.
type Options struct {
	// Table is the phases that there are; nil means the standard ones.
	Table   *phases.Table
	Budgets map[phases.Phase]Budget
}

// Plan says for each phase of a table which hooks run, and in which order. It
// does not change, is safe for concurrent use, and shares memory with the
// descriptions and overrides that it was built from: nobody may change those
// any more.
type Plan struct {
	phases []*Phase
	byName map[phases.Phase]*Phase
	byID   map[string]*Subscription
}

// Phase returns the plan of a phase; never nil for a phase of the table, nil
// for any other.
func (p *Plan) Phase(name phases.Phase) *Phase { return p.byName[name] }

// Phases returns all phases in table order. The caller must not change it.
func (p *Plan) Phases() []*Phase { return p.phases }

// Subscription returns an expected subscription by its full id, on or off; nil
// if there is none.
func (p *Plan) Subscription(id string) *Subscription { return p.byID[id] }

// Phase is the plan of one phase.
type Phase struct {
	Row phases.Row
	// Budget is the time of one dispatch, by the operator's word or the
	// phase's default. Zero in queue phases.
	Budget time.Duration
	// Require are the ids of subscriptions that must have completed, sorted.
	// Each of them is in Expected.
	Require []string
	// Stages are those that have something to run, in the order of
	// [phases.Roles].
	Stages []Stage
	// Off are the subscriptions that do not run, in plan order.
	Off []Off
	// Expected is every subscription of the phase in plan order, those that
	// are off and those of plugins that are down included. A subscription's
	// Index is its place here.
	Expected []*Subscription
}

// Stage is what runs between two points of a phase.
type Stage struct {
	Role phases.Role
	// Layers run one after another. The members of a layer run at the same
	// time, but for the transform stage: there each sees what those before it
	// did, so they run one by one, in this order.
	Layers [][]*Subscription
	// FailClosed says that one of the stage's subscriptions may fail the phase,
	// so that earlier stages must leave it time.
	FailClosed bool
}

// Off is a subscription that is expected and does not run.
type Off struct {
	Subscription *Subscription
	// Reason is a word for the ledger: one of the Reason constants.
	Reason string
}

// The reasons why a subscription is off.
const (
	// ReasonOperator: the operator's file says "enabled: false".
	ReasonOperator = "operator"
	// ReasonNotGranted: it declares a kind that its plugin may not contribute.
	ReasonNotGranted = phases.CodeNotGranted
	// ReasonNeedsNotGranted: it decides, and its plugin may not see what it needs.
	ReasonNeedsNotGranted = phases.CodeNeedsNotGranted
)

// Subscription is one hook as it is in force.
type Subscription struct {
	// Hook is the proposal with the operator's overrides and with defaults
	// filled in: Role, Timeout, OnFailure.Default and Visibility are never
	// empty. Of a subscription that is Undescribed only what the operator wrote
	// is known.
	phases.Hook

	// ID is PLUGIN.HOOK, unique in the plan.
	ID string
	// Plugin is the operator's name; PluginVersion is the plugin's own word.
	Plugin        string
	PluginVersion string
	Grants        *phases.Grants
	// Condition is the compiled When; nil means always.
	Condition *cond.Condition
	// Withheld is what its plugin may not see of the phase's input and of the sets,
	// sorted; nil in a phase of the host's own, whose fields nobody knows.
	Withheld []string

	// Stage is the role; Layer counts from 0 inside the stage; Index is the
	// position in the phase's Expected.
	Stage phases.Role
	Layer int
	Index int

	// ProposedTimeout is what the plugin wanted, or the default if it did not
	// say. Timeout is what it gets.
	ProposedTimeout time.Duration
	// Undescribed says that the operator expects it and that its plugin never
	// described itself.
	Undescribed bool
	// FailClosed says that some failure of it fails the phase.
	FailClosed bool
}
