package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/handover"
	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
	"github.com/grapnelhq/grapnel/plugins/memory/recall"
	"github.com/grapnelhq/grapnel/sdk"
)

// The ids of the contexts that are handed on.
const (
	recallID       = "recall"
	activeRecallID = "active_recall"
)

// around is about what the section writes around a memory: "- (workspace, instruction) ".
const around = 28

// Bounds of a recall plan.
const (
	maxPlan      = 16 << 10 // bytes
	maxPlanQuery = 1_000    // bytes
)

// limits bound what one recall brings.
func limits() recall.Limits { return recall.Limits{Around: around} }

// recall is the handler of the hook "recall".
func (m *memory) recall(ctx context.Context, call *sdk.Call, in *phases.PrePromptContextInput) ([]phases.Contribution, error) {
	p, _ := turnPolicy(call.Policies)
	if !p.Recall.Allowed() || in.UserText.Value == "" {
		return nil, nil // a text that is withheld was remarked on by the hook "policy"
	}
	var picked recall.Selection
	err := m.db.use(ctx, func(s *itemstore.Store) error {
		found, err := s.Recall(ctx, m.view(&call.Context), recall.Read(in.UserText.Value), m.clock(&call.Context))
		picked = recall.Pick(found.Ranked, limits())
		return err
	})
	if err != nil {
		return nil, failure(err)
	}
	return handOn(recallID, "memory_recalled", picked, nil)
}

// activeRecall is the handler of the hook "active_recall".
func (m *memory) activeRecall(ctx context.Context, call *sdk.Call, in *phases.PostPreflightInput) ([]phases.Contribution, error) {
	p, _ := turnPolicy(call.Policies)
	if !p.ActiveRecall.Allowed() {
		return nil, nil
	}
	queries, notes := m.queries(call, in)
	if len(queries) == 0 {
		return remarks(notes), nil
	}
	var answers [][]recall.Scored
	err := m.db.use(ctx, func(s *itemstore.Store) error {
		for _, q := range queries {
			found, err := s.Recall(ctx, m.view(&call.Context), recall.Read(q), m.clock(&call.Context))
			if err != nil {
				return err
			}
			answers = append(answers, found.Ranked)
		}
		return nil
	})
	if err != nil {
		return nil, failure(err)
	}
	parcel, more := received(call, recallID)
	return handOn(activeRecallID, "memory_actively_recalled", recall.Active(answers, parcel.Recalled(), limits()), append(notes, more...))
}

// queries are those of the host's plan, or of the user's text if there is no plan that
// can be read.
func (m *memory) queries(call *sdk.Call, in *phases.PostPreflightInput) ([]string, []phases.Diagnostic) {
	var notes []phases.Diagnostic
	switch plan := bytes.TrimSpace(in.RecallPlan); {
	case slices.Contains(call.Withheld, "recall_plan"):
		notes = append(notes, remark("recall_plan_withheld", phases.SeverityWarning, "the host's recall plan is withheld (grants.see: recall_plan)"))
	case len(plan) > 0 && !bytes.Equal(plan, []byte("null")):
		queries, err := parsePlan(plan)
		if err == nil {
			return queries, nil
		}
		notes = append(notes, phases.Diagnostic{Code: "recall_plan_invalid", Severity: phases.SeverityWarning, Message: "the host's recall plan: " + err.Error()})
	}
	return recall.Split(in.UserText.Value), notes
}

// parsePlan reads a host's recall plan, {"queries": ["…"]}, strictly. Of many queries
// the first [recall.MaxQueries] count.
func parsePlan(data []byte) ([]string, error) {
	if len(data) > maxPlan {
		return nil, fmt.Errorf("more than %d bytes", maxPlan)
	}
	var plan struct {
		Queries []string `json:"queries"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&plan); err != nil {
		return nil, fmt.Errorf(`want {"queries": ["…"]}: %s`, strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	var queries []string
	for i, q := range plan.Queries {
		q = strings.TrimSpace(q)
		switch {
		case len(q) > maxPlanQuery:
			return nil, fmt.Errorf("query %d has more than %d bytes", i, maxPlanQuery)
		case q != "" && len(queries) < recall.MaxQueries:
			queries = append(queries, q)
		}
	}
	return queries, nil
}

// handOn is the answer of a recall: what was selected, for later hooks only, and an
// audit of it without any text.
func handOn(id, event string, s recall.Selection, notes []phases.Diagnostic) ([]phases.Contribution, error) {
	if len(s.Items) == 0 {
		return remarks(notes), nil
	}
	parcel := handover.Of(s)
	content, err := parcel.Encode()
	if err != nil {
		return nil, err
	}
	details, err := json.Marshal(auditOf(parcel))
	if err != nil {
		return nil, err
	}
	hidden := false
	c := &phases.PromptContext{
		Common: phases.Common{ContributionID: id, Domain: domain, Diagnostics: notes}, Content: content, Render: &hidden,
	}
	for _, item := range parcel.Items {
		c.SourceRefs = append(c.SourceRefs, phases.SourceRef{Kind: "memory", ID: item.ID, Label: item.Scope + " " + item.Category})
	}
	return sdk.Reply(c, &phases.Audit{Common: phases.Common{ContributionID: id + "_audit", Domain: domain}, EventKind: event, Details: details, SafeForUser: true})
}

// recalledAudit is what the audit trail has of a recall.
type recalledAudit struct {
	Items []recalledItem `json:"items"`
	Left  int            `json:"left,omitempty"`
}

// recalledItem is one memory of it.
type recalledItem struct {
	ID     string  `json:"id"`
	Score  float64 `json:"score"`
	Pinned bool    `json:"pinned,omitempty"`
}

func auditOf(p handover.Parcel) recalledAudit {
	a := recalledAudit{Left: p.Left}
	for _, i := range p.Items {
		a.Items = append(a.Items, recalledItem{i.ID, i.Score, i.Pinned})
	}
	return a
}

// received returns what a hook of this plugin has handed on under an id. What cannot be
// read, such as a text that the turn's limits have cut, is nothing and a remark.
func received(call *sdk.Call, id string) (handover.Parcel, []phases.Diagnostic) {
	for i := range call.Contexts {
		c := &call.Contexts[i]
		if c.Domain != domain || c.ContributionID != id || c.Render || !siblings(c.Owner, call.Subscription) {
			continue
		}
		parcel, err := handover.Decode(c.Content)
		if err != nil {
			return handover.Parcel{}, []phases.Diagnostic{remark("recall_unreadable", phases.SeverityWarning,
				"what "+c.Owner+" recalled did not arrive whole, for want of room among the turn's contexts, and is left out")}
		}
		return parcel, nil
	}
	return handover.Parcel{}, nil
}
