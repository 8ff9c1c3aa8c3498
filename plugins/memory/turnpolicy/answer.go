package turnpolicy

import (
	"errors"
	"fmt"
	"slices"
)

// Intent is what a user wishes of memory. The empty one is undefined.
type Intent string

// The intents.
const (
	// IntentRemember asks to keep something beyond the turn.
	IntentRemember Intent = "remember"
	// IntentForget asks to remove something that is remembered.
	IntentForget Intent = "forget"
	// IntentNoUse asks to answer without what is remembered.
	IntentNoUse Intent = "no_use"
	// IntentNoSave asks to keep nothing of the turn.
	IntentNoSave Intent = "no_save"
)

// Intents returns the intents. In this order they decide: the first of a turn's
// wishes gives the policy its reason.
func Intents() []Intent {
	return []Intent{IntentForget, IntentNoUse, IntentNoSave, IntentRemember}
}

// Wish is one thing that the user wishes.
type Wish struct {
	Intent     Intent  `json:"intent"`
	Confidence float64 `json:"confidence"`
	// Target is what is to be forgotten, in the user's words; see
	// [Policy.ForgetTarget].
	Target string `json:"target,omitempty"`
	// Rule is the id of the rule that found the wish; models leave it out.
	Rule string `json:"rule,omitempty"`
	// Language is that of the words.
	Language string `json:"language,omitempty"`
}

// reason is what a policy says of the wish.
func (w Wish) reason() string {
	if w.Rule != "" {
		return w.Rule
	}
	return "model." + string(w.Intent)
}

// Answer is what a classifier says of a text. The zero value is that nothing is
// wished.
type Answer struct {
	// Wishes has at most one wish of each intent, in the order of [Intents].
	Wishes []Wish `json:"wishes"`
	// Rules are the ids of all rules that matched, in the order of the text. They
	// are for people who ask why; nothing depends on them.
	Rules []string `json:"rules,omitempty"`
}

// ParseAnswer reads a model's answer, of the shape {"wishes": [{"intent":
// "forget", "confidence": 0.9, "target": "my address"}]}. Anything else is an error:
// words that are no intent, two wishes of one intent, targets where nothing is to be
// forgotten.
func ParseAnswer(data []byte) (Answer, error) {
	var a Answer
	if err := decode(data, &a); err != nil {
		return Answer{}, fmt.Errorf("answer: %w", err)
	}
	if err := a.validate(); err != nil {
		return Answer{}, fmt.Errorf("answer: %w", err)
	}
	a.sort()
	return a, nil
}

// validate reports what is wrong with an answer that is not of the rules.
func (a Answer) validate() error {
	var problems []error
	seen := map[Intent]bool{}
	for i, w := range a.Wishes {
		err := errors.Join(
			known("intent", w.Intent, Intents()),
			validConfidence(w.Confidence),
			validText("target", w.Target, MaxTarget),
			validText("language", w.Language, maxReason),
		)
		switch {
		case err != nil:
		case seen[w.Intent]:
			err = fmt.Errorf("%s is there twice", w.Intent)
		case w.Target != "" && w.Intent != IntentForget:
			err = fmt.Errorf("%s has no target", w.Intent)
		case w.Rule != "":
			err = errors.New("rule: only rules have one")
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("wish %d: %w", i, err))
		}
		seen[w.Intent] = true
	}
	if len(a.Rules) > 0 {
		problems = append(problems, errors.New("rules: only rules have some"))
	}
	return errors.Join(problems...)
}

// sort puts the wishes in the order of [Intents].
func (a Answer) sort() {
	slices.SortFunc(a.Wishes, func(x, y Wish) int {
		return slices.Index(Intents(), x.Intent) - slices.Index(Intents(), y.Intent)
	})
}

// confidence is that of the surest wish, and 0 without any.
func (a Answer) confidence() float64 {
	most := 0.0
	for _, w := range a.Wishes {
		most = max(most, w.Confidence)
	}
	return most
}

// above returns the wishes that are sure enough.
func (a Answer) above(threshold float64) []Wish {
	var sure []Wish
	for _, w := range a.Wishes {
		if w.Confidence >= threshold {
			sure = append(sure, w)
		}
	}
	return sure
}

// source is who answered: rules leave their ids.
func (a Answer) source() Source {
	if len(a.Rules) > 0 {
		return SourceRules
	}
	return SourceModel
}
