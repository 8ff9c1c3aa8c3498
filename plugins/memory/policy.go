package memory

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/advice"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/sdk"
)

// reserve is what is left of a hook's time when a model is given up, to go on with the
// rules.
const reserve = 50 * time.Millisecond

// policy is the handler of the hook "policy".
func (m *memory) policy(ctx context.Context, call *sdk.Call, in *phases.PrePolicyInput) ([]phases.Contribution, error) {
	var notes []phases.Diagnostic
	if in.UserText.Withheld {
		notes = append(notes, remark("user_text_withheld", phases.SeverityWarning,
			"what the user says is withheld (grants.see: user_text), so no wish is heard, nothing is recalled and nothing is stored of the turn"))
	}
	if slices.Contains(call.Withheld, "metadata") {
		notes = append(notes, remark("metadata_withheld", phases.SeverityInfo,
			"the host's metadata is withheld (grants.see: metadata), so a "+overrideKey+" in it has no effect"))
	}
	text := in.UserText.Value
	if !byUser(&call.Context) {
		text = "" // no words of a user
	}
	p := turnpolicy.Decide(
		turnpolicy.Input{Mode: call.Context.Mode, Override: call.Context.Metadata[overrideKey], Text: text},
		turnpolicy.Options{Default: m.settings.Default, Classify: func(text string) turnpolicy.Answer {
			answer, more := m.classify(ctx, call.Host, text)
			notes = append(notes, more...)
			return answer
		}},
	)
	value, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return sdk.Reply(&phases.Policy{
		Common: phases.Common{ContributionID: policyKey, Domain: domain, Diagnostics: notes}, Key: policyKey, Value: value,
	})
}

// classify says what a text wishes, by the rules, and by a model where the
// configuration wants one.
func (m *memory) classify(ctx context.Context, host phases.Host, text string) (turnpolicy.Answer, []phases.Diagnostic) {
	byRules := m.rules.Classify(text)
	if text == "" || m.settings.Classifier == ReaderRules || m.settings.Classifier == ReaderAuto && (!m.model || !unsure(byRules)) {
		return byRules, nil
	}
	answer, err := m.ask(ctx, host, advice.Classification(text))
	if err == nil {
		var byModel turnpolicy.Answer
		if byModel, err = advice.Wishes(answer); err == nil {
			return byModel, nil
		}
	}
	return byRules, []phases.Diagnostic{modelFailed("the user's wishes were read by the rules alone", err)}
}

// unsure reports whether the rules have found wishes, and are sure of none.
func unsure(a turnpolicy.Answer) bool {
	return len(a.Wishes) > 0 && !slices.ContainsFunc(a.Wishes, func(w turnpolicy.Wish) bool { return w.Confidence >= turnpolicy.DefaultThreshold })
}
