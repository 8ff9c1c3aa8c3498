package plan

import (
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

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

// View shows a plan: one phase, or all in table order for "". A phase that the
// table does not have gives an empty list. Lists are never nil.
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
