package turnpolicy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// maxRuleFile bounds a rule file, in bytes.
const maxRuleFile = 1 << 20

// ruleFile is the JSON of one language. The package comment describes it.
type ruleFile struct {
	Language string            `json:"language"`
	Words    []string          `json:"words"`
	Lead     string            `json:"lead"`
	Clause   string            `json:"clause"`
	Parts    map[string]string `json:"parts"`
	Guards   []patternJSON     `json:"guards"`
	Rules    []patternJSON     `json:"rules"`
	Facts    []patternJSON     `json:"facts"`
	Slots    []patternJSON     `json:"slots"`
}

// patternJSON is a guard, a rule, a fact or a slot. Which keys it may have is checked when
// it is compiled.
type patternJSON struct {
	ID         string   `json:"id"`
	Intent     Intent   `json:"intent,omitempty"`
	Intents    []Intent `json:"intents,omitempty"`
	Category   Category `json:"category,omitempty"`
	Slot       Slot     `json:"slot,omitempty"`
	Confidence float64  `json:"confidence,omitempty"`
	Target     string   `json:"target,omitempty"`
	Refers     refers   `json:"refers,omitempty"`
	At         place    `json:"at,omitempty"`
	Match      string   `json:"match"`
	With       []string `json:"with,omitempty"`
	Unless     []string `json:"unless,omitempty"`
	Says       []string `json:"says,omitempty"`
}

// refers says where the thing stands that a rule is about, if not in its sentence.
type refers string

const (
	refersBefore refers = "before"
	refersAfter  refers = "after"
)

// place says where in a sentence a pattern must match. The empty one is anywhere.
type place string

const (
	atStart  place = "start"
	atClause place = "clause"
)

// parseRuleFile reads a rule file. What is in it is checked by [ruleFile.compile].
func parseRuleFile(data []byte) (*ruleFile, error) {
	if len(data) > maxRuleFile {
		return nil, fmt.Errorf("more than %d bytes", maxRuleFile)
	}
	var file ruleFile
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, err
	}
	if file.Language == "" {
		return nil, errors.New("language: none")
	}
	return &file, nil
}

// checkGuard reports keys that a guard cannot have.
func checkGuard(j patternJSON) error {
	if j.Intent != "" || j.Category != "" || j.Slot != "" || j.Target != "" || j.Refers != "" || j.Confidence != 0 {
		return errors.New("a guard has id, at, match, with, unless, intents and says")
	}
	for _, intent := range j.Intents {
		if err := known("intents", intent, Intents()); err != nil {
			return err
		}
	}
	return nil
}

// checkRule reports what a rule lacks or cannot have.
func checkRule(j patternJSON) error {
	err := errors.Join(known("intent", j.Intent, Intents()), validConfidence(j.Confidence))
	switch {
	case err != nil:
		return err
	case j.Category != "" || j.Slot != "" || j.Intents != nil:
		return errors.New("a rule has no category, no slot and no intents")
	case j.Confidence == 0:
		return errors.New("confidence: none")
	case j.Target != "" && j.Intent != IntentForget:
		return errors.New("target: only what is to be forgotten has one")
	case j.Refers != "" && j.Intent != IntentRemember:
		return errors.New("refers: only what is to be remembered is looked for elsewhere")
	case j.Refers != "":
		return known("refers", j.Refers, []refers{refersBefore, refersAfter})
	}
	return nil
}

// checkFact reports what a fact lacks or cannot have.
func checkFact(j patternJSON) error {
	if j.Intent != "" || j.Intents != nil || j.Slot != "" || j.Target != "" || j.Refers != "" || j.Confidence != 0 {
		return errors.New("a fact has id, category, at, match, with, unless and says")
	}
	return known("category", j.Category, Categories())
}

// checkSlot reports what a slot's pattern lacks or cannot have.
func checkSlot(j patternJSON) error {
	if j.Intent != "" || j.Intents != nil || j.Category != "" || j.Target != "" || j.Refers != "" || j.Confidence != 0 {
		return errors.New("a slot has id, slot, match, at, with, unless and says")
	}
	return known("slot", j.Slot, Slots())
}
