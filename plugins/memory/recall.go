package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// The ids of the contexts in which the recalls pass on what they found.
const (
	recallID       = "recall"
	activeRecallID = "active_recall"
)

const (
	// Bounds of a recall plan, in bytes.
	maxPlan      = 16 << 10
	maxPlanQuery = 1_000

	// Bounds of what is decoded from a context.
	maxPassedBytes = 64 << 10
	maxPassedItems = 32
)

func (m *memory) recall(ctx context.Context, call *sdk.Call, in *phases.PrePromptContextInput) ([]phases.Contribution, error) {
	p, _ := turnPolicy(call.Policies)
	if !p.Recall.Allowed() || in.UserText.Value == "" {
		return nil, nil // the hook "policy" reports a withheld text
	}
	ranked, err := m.rank(ctx, call, []string{in.UserText.Value})
	if err != nil {
		return nil, failure(err)
	}
	return passOn(recallID, "memory_recalled", recall.Pick(ranked[0]), nil)
}

func (m *memory) activeRecall(ctx context.Context, call *sdk.Call, in *phases.PostPreflightInput) ([]phases.Contribution, error) {
	p, _ := turnPolicy(call.Policies)
	plan := bytes.TrimSpace(in.RecallPlan)
	switch {
	case !p.ActiveRecall.Allowed():
		return nil, nil
	case slices.Contains(call.Withheld, "recall_plan"):
		return remarks([]phases.Diagnostic{
			remark("recall_plan_withheld", phases.SeverityWarning, "the host's recall plan is withheld (grants.see: recall_plan)"),
		}), nil
	case len(plan) == 0 || bytes.Equal(plan, []byte("null")):
		return nil, nil
	}
	queries, err := parsePlan(plan)
	if err != nil {
		return remarks([]phases.Diagnostic{ //nolint:nilerr // it is reported, and the turn goes on
			{Code: "recall_plan_invalid", Severity: phases.SeverityWarning, Message: "the host's recall plan: " + err.Error()},
		}), nil
	}
	ranked, err := m.rank(ctx, call, queries)
	if err != nil {
		return nil, failure(err)
	}
	already, notes := received(call)
	return passOn(activeRecallID, "memory_actively_recalled", recall.Active(ranked, already.items()), notes)
}

func (m *memory) rank(ctx context.Context, call *sdk.Call, queries []string) (ranked [][]recall.Scored, err error) {
	err = m.db.use(ctx, func(s *itemstore.Store) error {
		for _, q := range queries {
			found, err := s.Recall(ctx, m.view(&call.Context), recall.Read(q), m.clock(&call.Context))
			if err != nil {
				return err
			}
			ranked = append(ranked, found)
		}
		return nil
	})
	return ranked, err
}

// parsePlan reads a host's recall plan, {"queries": ["…"]}, strictly. Only the first [recall.MaxQueries] count.
func parsePlan(data []byte) ([]string, error) {
	if len(data) > maxPlan {
		return nil, fmt.Errorf("more than %d bytes", maxPlan)
	}
	var plan struct {
		Queries []string `json:"queries"`
	}
	if err := sdk.DecodeConfig(data, &plan); err != nil {
		return nil, fmt.Errorf(`want {"queries": ["…"]}: %w`, err)
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

// passOn is the answer of a recall: the selection as a context for later hooks only, and an audit of it without any
// text.
func passOn(id, event string, s recall.Selection, notes []phases.Diagnostic) ([]phases.Contribution, error) {
	if len(s.Items) == 0 {
		return remarks(notes), nil
	}
	content, err := json.Marshal(s) // one line without "<", so that no rule for prompts changes it
	if err != nil {
		return nil, err
	}
	hidden := false
	c := &phases.PromptContext{
		Common: phases.Common{ContributionID: id, Domain: domain, Diagnostics: notes}, Content: string(content), Render: &hidden,
	}
	type item struct {
		ID     string  `json:"id"`
		Score  float64 `json:"score"`
		Pinned bool    `json:"pinned,omitempty"`
	}
	audit := struct {
		Items   []item `json:"items"`
		Omitted int    `json:"omitted,omitempty"`
	}{Omitted: s.Omitted}
	for _, i := range s.Items {
		audit.Items = append(audit.Items, item{i.ID, i.Score, i.Pinned})
		c.SourceRefs = append(c.SourceRefs, phases.SourceRef{Kind: "memory", ID: i.ID, Label: i.Scope + " " + i.Category})
	}
	details, err := json.Marshal(audit)
	if err != nil {
		return nil, err
	}
	return sdk.Reply(c, &phases.Audit{Common: phases.Common{ContributionID: id + "_audit", Domain: domain}, EventKind: event, Details: details, SafeForUser: true})
}

// receivedItems are the memories that the recalls of a turn have passed on.
type receivedItems struct {
	list    []receivedItem // the most important first
	omitted int            // how many more the recalls found
}

type receivedItem struct {
	recall.Recalled

	hook string // that recalled it
}

func (r receivedItems) items() (all []recall.Recalled) {
	for _, i := range r.list {
		all = append(all, i.Recalled)
	}
	return all
}

// received returns what the recalls of this turn have passed on. An unreadable context, such as one that the turn's
// limits have cut, counts as nothing, with a remark. Another plugin's contributions to our domain do not count.
func received(call *sdk.Call) (all receivedItems, notes []phases.Diagnostic) {
	plugin, _, _ := strings.Cut(call.Subscription, ".")
	for _, id := range []string{recallID, activeRecallID} {
		i := slices.IndexFunc(call.Contexts, func(c phases.ContextEntry) bool {
			owner, _, _ := strings.Cut(c.Owner, ".")
			return c.Domain == domain && c.ContributionID == id && owner == plugin && !c.Render
		})
		if i < 0 {
			continue
		}
		c := &call.Contexts[i]
		s, err := decodeSelection(c.Content)
		if err != nil {
			notes = append(notes, remark("recall_unreadable", phases.SeverityWarning,
				"the memories recalled by "+c.Owner+" did not arrive whole, because the turn's contexts exceed their limit, and are omitted"))
		}
		all.omitted += s.Omitted
		for _, item := range s.Items {
			all.list = append(all.list, receivedItem{item, c.Owner})
		}
	}
	return all, notes
}

// decodeSelection reads what passOn encoded, and bounds it; the section escapes all texts.
func decodeSelection(content string) (s recall.Selection, err error) {
	if content == "" || len(content) > maxPassedBytes {
		return s, fmt.Errorf("empty, or more than %d bytes", maxPassedBytes)
	}
	if err := sdk.DecodeConfig([]byte(content), &s); err != nil {
		return recall.Selection{}, err
	}
	if len(s.Items) > maxPassedItems || s.Omitted < 0 {
		return recall.Selection{}, fmt.Errorf("%d items and %d omitted", len(s.Items), s.Omitted)
	}
	return s, nil
}
