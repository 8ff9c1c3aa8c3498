package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/advice"
	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
	"github.com/grapnelhq/grapnel/plugins/memory/toolset"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/sdk"
)

// extract is the handler of the hook "extract". Facts are stored under the turn's key,
// so that a second run adds nothing; the notes of use come behind that, where nothing
// can fail any more and make the queue repeat them.
//
// Uses are counted here and not where the prompt is made: that hook has no time for a
// write, and a turn in which the user wishes nothing to be kept leaves no trace.
func (m *memory) extract(ctx context.Context, call *sdk.Call, in *phases.PostTurnInput) ([]phases.Contribution, error) {
	p, _ := turnPolicy(call.Policies)
	if !p.PostTurnExtraction.Allowed() {
		return nil, nil
	}
	if slices.Contains(call.Withheld, "status") {
		return stored(nil, []phases.Diagnostic{remark("status_withheld", phases.SeverityWarning,
			"whether the turn succeeded is withheld (grants.see: status), so nothing is stored of it")})
	}
	if in.Status != phases.TurnSucceeded {
		return nil, nil
	}
	facts, notes := m.facts(ctx, call, in)
	facts, more := m.withoutSecrets(withoutTold(facts, in.ToolEvents))
	notes = append(notes, more...)
	used := usedIDs(call)
	if len(facts) == 0 && len(used) == 0 {
		return stored(nil, notes)
	}
	var out []itemstore.Outcome
	err := m.db.use(ctx, func(s *itemstore.Store) (err error) {
		if len(facts) > 0 {
			if out, err = s.Remember(ctx, m.batch(call, p, facts)); err != nil {
				return err
			}
		}
		return s.Used(ctx, m.view(&call.Context), used, m.clock(&call.Context))
	})
	if err != nil {
		return nil, failure(err)
	}
	return stored(out, notes)
}

// facts are what the user stated in a turn, by a model or by the rules.
func (m *memory) facts(ctx context.Context, call *sdk.Call, in *phases.PostTurnInput) ([]turnpolicy.Fact, []phases.Diagnostic) {
	text := in.UserText.Text
	if text == "" || !byUser(&call.Context) {
		return nil, nil
	}
	if m.settings.Extraction == ReaderRules || m.settings.Extraction == ReaderAuto && !m.model {
		return m.rules.Extract(text), nil
	}
	facts, unfounded, err := m.factsByModel(ctx, call.Host, in)
	if err != nil {
		return m.rules.Extract(text), []phases.Diagnostic{modelFailed("facts were found by the rules alone", err)}
	}
	if unfounded > 0 {
		return facts, []phases.Diagnostic{remark("facts_unfounded", phases.SeverityInfo,
			fmt.Sprintf("%d facts of the model were left out: the user's words do not bear them out", unfounded))}
	}
	return facts, nil
}

// factsByModel asks a model. What has a slot by the rules has it whatever the model
// says.
func (m *memory) factsByModel(ctx context.Context, host phases.Host, in *phases.PostTurnInput) ([]turnpolicy.Fact, int, error) {
	answer, err := m.ask(ctx, host, advice.Extraction(in.UserText.Text, in.AssistantText.Text))
	if err != nil {
		return nil, 0, err
	}
	facts, unfounded, err := advice.Facts(answer, in.UserText.Text)
	for i := range facts {
		if slot := m.rules.Slot(facts[i].Text); slot != "" {
			facts[i].Slot = slot
		}
	}
	return facts, unfounded, err
}

// withoutTold drops what the user asked to remember if the model has stored it by the
// tool in the turn, maybe in other words. Without word of an outcome it has not.
func withoutTold(facts []turnpolicy.Fact, events []phases.ToolEvent) []turnpolicy.Fact {
	told := slices.ContainsFunc(events, func(e phases.ToolEvent) bool {
		return e.Tool == toolset.Remember && slices.Contains([]string{"ok", "success", "succeeded"}, e.Outcome)
	})
	if !told {
		return facts
	}
	return slices.DeleteFunc(facts, func(f turnpolicy.Fact) bool { return f.Explicit })
}

// withoutSecrets drops facts that hold a secret, and evidence that does, and says by
// which pattern it knew.
func (m *memory) withoutSecrets(facts []turnpolicy.Fact) ([]turnpolicy.Fact, []phases.Diagnostic) {
	var kept []turnpolicy.Fact
	var notes []phases.Diagnostic
	for _, f := range facts {
		if found := m.scanner.Find(f.Text); len(found) > 0 {
			notes = append(notes, remark("secret_refused", phases.SeverityWarning, "a fact was not stored: it looks like a secret ("+found[0].Pattern+")"))
			continue
		}
		if found := m.scanner.Find(f.Evidence); len(found) > 0 {
			f.Evidence = ""
			notes = append(notes, remark("secret_refused", phases.SeverityWarning,
				"a fact was stored without its evidence, which looks like a secret ("+found[0].Pattern+")"))
		}
		kept = append(kept, f)
	}
	return kept, notes
}

// batch is what is written, in one transaction.
func (m *memory) batch(call *sdk.Call, p turnpolicy.Policy, facts []turnpolicy.Fact) itemstore.Batch {
	b := itemstore.Batch{WorkspaceID: call.Context.WorkspaceID, Key: call.IdempotencyKey}
	for _, f := range facts {
		scope := scopeOf(f.Category, &call.Context)
		if f.Slot != "" && user(&call.Context) != "" {
			scope = itemstore.ScopeUser // a slot is a person's, whatever the category
		}
		id, _ := scopeID(scope, &call.Context)
		b.Items = append(b.Items, itemstore.New{
			Scope: scope, ScopeID: id, Category: f.Category, Text: f.Text, Evidence: f.Evidence, Source: itemstore.SourceTurn, Slot: string(f.Slot),
		})
		b.Restore = b.Restore || f.Explicit && p.ExplicitRemember
	}
	return b
}

// usedIDs are the memories that this turn's recalls have handed on.
func usedIDs(call *sdk.Call) []string {
	var ids []string
	for _, id := range []string{recallID, activeRecallID} {
		parcel, _ := received(call, id) // the hook "prompt" has remarked on what cannot be read
		for _, item := range parcel.Items {
			ids = append(ids, item.ID)
		}
	}
	return ids
}

// storedAudit is what the audit trail has of an extraction: no text of a user's.
type storedAudit struct {
	Items []storedItem `json:"items,omitempty"`
	// Remarks are the diagnostics. They are here too, because a hook that runs behind
	// the turn has no manifest to put them in.
	Remarks []storedRemark `json:"remarks,omitempty"`
}

// storedRemark is one of them.
type storedRemark struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// storedItem is what became of one fact.
type storedItem struct {
	Change   itemstore.Change `json:"change"`
	ID       string           `json:"id,omitempty"`
	Replaced []string         `json:"replaced,omitempty"`
}

// stored is the answer: an audit of what was written and of what there is to say about
// it, if there is anything: ids and words that hold no text of users.
func stored(out []itemstore.Outcome, notes []phases.Diagnostic) ([]phases.Contribution, error) {
	var audit storedAudit
	for i := range out {
		if o := &out[i]; !o.Repeated {
			audit.Items = append(audit.Items, storedItem{o.Change, o.Item.ID, o.Replaced})
		}
	}
	for _, n := range notes {
		r := storedRemark{Code: n.Code}
		if n.SafeForUser {
			r.Message = n.Message
		}
		audit.Remarks = append(audit.Remarks, r)
	}
	if len(audit.Items) == 0 && len(audit.Remarks) == 0 {
		return nil, nil
	}
	details, err := json.Marshal(audit)
	if err != nil {
		return nil, err
	}
	return sdk.Reply(&phases.Audit{
		Common: phases.Common{ContributionID: "stored", Domain: domain, Diagnostics: notes}, EventKind: "memory_stored", Details: details, SafeForUser: true,
	})
}
