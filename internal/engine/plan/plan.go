package plan

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/cond"
	"github.com/grapnelhq/grapnel/phases"
)

// Codes of diagnostics.
const (
	codeTimeoutLowered = "timeout_lowered" // a hook wanted more time than its phase has
	// codeSoftMissing: a hook is ordered after or before one whose plugin never described itself.
	codeSoftMissing = "dependency_absent"
)

// Plugin is one declared plugin: its description and the operator's configuration.
type Plugin struct {
	// Name is the operator's name for it, the first part of its subscription ids.
	Name string
	// Description is nil until the plugin described itself. It should have passed [phases.ValidateDescription].
	Description *phases.Description
	// Refused is a description that no plan accepts. The plugin is down, and its hooks that decide fail by their
	// policy. Ignored beside a Description.
	Refused *phases.Description
	Grants  phases.Grants
	// Overrides are the operator's changes, by full subscription id.
	Overrides map[string]phases.Override
	// Command says that the plugin is a program, which may be down: a fail-closed override must state its phase.
	Command bool
	// FailsOpen says that the operator lets deciding phases go on without the plugin until its hooks are known.
	FailsOpen bool
}

// anyHook begins the name of a hook that stands for all hooks that an undescribed plugin may have in a phase.
const anyHook = "any:"

// Budget is the operator's configuration of one phase.
type Budget struct {
	// Time of 0 means the phase's default. Queue phases have none.
	Time time.Duration
	// Require names subscriptions that must have completed.
	Require []string
}

// Options is what a plan depends on besides the plugins.
type Options struct {
	// Table is the table of phases; nil means the standard one.
	Table   *phases.Table
	Budgets map[phases.Phase]Budget
	// Services are the words that grants of host services may use; nil means any.
	Services []string
}

// Plan says for each phase of a table which hooks run, and in which order. It is immutable and safe for concurrent
// use. It shares memory with the descriptions and overrides that it was built from.
type Plan struct {
	phases []*Phase
	byName map[phases.Phase]*Phase
	byID   map[string]*Subscription
}

// Phase returns the plan of a phase; nil for one that is not in the table.
func (p *Plan) Phase(name phases.Phase) *Phase { return p.byName[name] }

// Phases returns all phases in table order. The caller must not change it.
func (p *Plan) Phases() []*Phase { return p.phases }

// Subscription returns an expected subscription by its full id, on or off, or nil.
func (p *Plan) Subscription(id string) *Subscription { return p.byID[id] }

// Phase is the plan of one phase.
type Phase struct {
	Row phases.Row
	// Budget is the time of one dispatch; zero in queue phases.
	Budget time.Duration
	// Require are the ids of subscriptions that must complete, sorted.
	Require []string
	// Stages are those that have something to run.
	Stages []Stage
	// Off are the subscriptions that do not run, in plan order.
	Off []Off
	// Expected is every subscription of the phase in plan order, including those that are off or whose plugins are
	// down.
	Expected []*Subscription
}

// Running are the ids of the subscriptions that a dispatch of the phase runs, if their conditions allow.
func (p *Phase) Running() []string {
	var ids []string
	for _, s := range p.Stages {
		for _, sub := range slices.Concat(s.Layers...) {
			ids = append(ids, sub.ID)
		}
	}
	return ids
}

// Stage is what runs between two points of a phase.
type Stage struct {
	Role phases.Role
	// Layers run one after another. The members of a layer run at the same time, but in the transform stage one by
	// one: each sees the rewrites of those before it.
	Layers [][]*Subscription
	// FailClosed says that a subscription of the stage may fail the phase, so that earlier stages must leave it time.
	FailClosed bool
}

// Off is a subscription that is expected and does not run.
type Off struct {
	Subscription *Subscription
	// Reason is one of the Reason constants.
	Reason string
}

// The reasons why a subscription is off.
const (
	ReasonOperator        = "operator"                 // the operator's file says "enabled: false"
	ReasonNotGranted      = phases.CodeNotGranted      // it declares a kind that its plugin may not contribute
	ReasonNeedsNotGranted = phases.CodeNeedsNotGranted // it decides, and its plugin may not see what it needs
)

// Subscription is one hook as it is in force.
type Subscription struct {
	// Hook is the proposal with overrides and defaults applied: Role, Timeout, OnFailure.Default and Visibility are
	// set.
	phases.Hook

	// ID is PLUGIN.HOOK, unique in the plan.
	ID string
	// Plugin is the operator's name; PluginVersion is from the description.
	Plugin        string
	PluginVersion string
	Grants        *phases.Grants
	// Condition is the compiled When; nil means always.
	Condition *cond.Condition
	// Withheld is what its plugin may not see of the phase's input and of the sets, sorted; nil in a host's own
	// phase, whose fields are unknown.
	Withheld []string

	// Stage is the role; Layer counts from 0 inside the stage; Index is the position in the phase's Expected.
	Stage phases.Role
	Layer int
	Index int

	// ProposedTimeout is the plugin's, or the default; Timeout is the effective one.
	ProposedTimeout time.Duration
	// Facts says that it is sent the facts of calls: see [phases.Facts].
	Facts bool
	// Undescribed says that its plugin has not described itself.
	Undescribed bool
	// FailClosed says that some failure of it fails the phase.
	FailClosed bool
}

// Perhaps says that it stands for hooks which its undescribed plugin may have or not, and that judge nothing: it has a row,
// and no failure policy.
func (s *Subscription) Perhaps() bool {
	return strings.HasPrefix(s.Name, anyHook) && !judges(s.Kinds[0])
}

func judges(k phases.Kind) bool { return k == phases.KindDecision || k == phases.KindRewrite }

// Problem is one mistake in the combined plan.
type Problem struct {
	// Plugin is the plugin in whose configuration it lies; "" for the phases' budgets.
	Plugin string
	// Subscription is the id that it is about, if any.
	Subscription string
	// Field is the path of the setting below the plugin's entry, or from the top of the file. For a value that the
	// plugin proposed it is where the operator could override it.
	Field   string
	Message string
	// Err is what the message repeats, if it has a place within the setting.
	Err error
}

// Error gives the place and the message.
func (p Problem) Error() string {
	where := p.Field
	if p.Plugin != "" {
		where = "plugins." + p.Plugin + "." + p.Field
	}
	return where + ": " + p.Message
}

// Problems is all mistakes of a plan; the error of [Build].
type Problems struct {
	// List is sorted and not empty.
	List []Problem
}

// Error gives one problem a paragraph.
func (p *Problems) Error() string {
	lines := make([]string, len(p.List))
	for i, one := range p.List {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Located returns what place makes of each problem, such as an error with its line in a file; another error as it is.
func Located(err error, place func(plugin, field, message string, cause error) error) error {
	problems, ok := errors.AsType[*Problems](err)
	if !ok {
		return err
	}
	var all []error
	for _, p := range problems.List {
		all = append(all, place(p.Plugin, p.Field, p.Message, p.Err))
	}
	return errors.Join(all...)
}

// Unwrap returns the problems one by one.
func (p *Problems) Unwrap() []error {
	errs := make([]error, len(p.List))
	for i, one := range p.List {
		errs[i] = one
	}
	return errs
}

// sorted sorts the problems; nil if there are none.
func sorted(list []Problem) *Problems {
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	return &Problems{List: slices.Compact(list)}
}

// Document is a plan in the JSON shape of "grapnel plan --json".
type Document struct {
	Phases []PhaseView `json:"phases"`
}

// PhaseView is one phase of a Document.
type PhaseView struct {
	Phase    phases.Phase `json:"phase"`
	BudgetMS float64      `json:"budget_ms"`
	Require  []string     `json:"require"`
	Stages   []StageView  `json:"stages"`
	Off      []OffView    `json:"off"`
}

// StageView is one stage of a PhaseView.
type StageView struct {
	Role   phases.Role          `json:"role"`
	Layers [][]SubscriptionView `json:"layers"`
}

// SubscriptionView is one subscription that runs.
type SubscriptionView struct {
	Subscription      string           `json:"subscription"`
	Plugin            string           `json:"plugin"`
	Priority          int              `json:"priority"`
	TimeoutMS         float64          `json:"timeout_ms"`
	ProposedTimeoutMS float64          `json:"proposed_timeout_ms"`
	OnFailure         phases.OnFailure `json:"on_failure"`
	When              string           `json:"when"`
	// Needs is what the hook says it must see, Withheld what its plugin may not.
	Needs    []string `json:"needs"`
	Withheld []string `json:"withheld"`
}

// OffView is one subscription that does not run.
type OffView struct {
	Subscription string `json:"subscription"`
	Reason       string `json:"reason"`
}

// View shows a plan: one phase, or all in table order for "". Lists are never nil.
func View(p *Plan, phase phases.Phase) Document {
	d := Document{Phases: []PhaseView{}}
	for _, ph := range p.Phases() {
		if phase == "" || ph.Row.Phase == phase {
			d.Phases = append(d.Phases, viewPhase(ph))
		}
	}
	return d
}

func viewPhase(ph *Phase) PhaseView {
	v := PhaseView{
		Phase: ph.Row.Phase, BudgetMS: milliseconds(ph.Budget), Require: append([]string{}, ph.Require...),
		Stages: []StageView{}, Off: []OffView{},
	}
	for _, s := range ph.Stages {
		stage := StageView{Role: s.Role, Layers: make([][]SubscriptionView, len(s.Layers))}
		for i, layer := range s.Layers {
			for _, sub := range layer {
				stage.Layers[i] = append(stage.Layers[i], viewSubscription(sub))
			}
		}
		v.Stages = append(v.Stages, stage)
	}
	for _, off := range ph.Off {
		v.Off = append(v.Off, OffView{off.Subscription.ID, off.Reason})
	}
	return v
}

func viewSubscription(s *Subscription) SubscriptionView {
	return SubscriptionView{
		Subscription: s.ID, Plugin: s.Plugin, Priority: s.Priority, When: s.When, OnFailure: s.OnFailure,
		Needs: append([]string{}, s.Needs...), Withheld: append([]string{}, s.Withheld...),
		TimeoutMS: milliseconds(s.Timeout.D()), ProposedTimeoutMS: milliseconds(s.ProposedTimeout),
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
