// Package turnpolicy decides what memory may do in one turn.
//
// [Decide] takes the turn's mode, the host's override and the user's words, and returns a [Policy]. [Rules] classify
// the user's words, and [Rules.Extract] finds the facts in them for hosts that offer no model.
//
// # How a text is read
//
// Classify looks at the first and the last 4,000 characters. It folds them (lower case, no accents, one kind of
// quote), blanks what is not the user's own words (code, quotations, lines that quote a mail), splits the rest into
// sentences, and tries the rules of every language on each. Sentences in the middle of a long text count for less:
// wishes are at the beginning or at the end, pasted text between them.
//
// A wish counts only if it is addressed to the assistant. Questions about memory, reports of what somebody said,
// idioms ("forget it") and orders about the work ("don't save the file") are not wishes. Precision comes first: a
// missed wish leaves the default in force, and a mistaken one takes something away from a user who did not ask for
// it.
//
// # Rule files
//
// A language is one file rules/*.json, with these keys:
//
//   - language: its code, which is also how each of its ids begins.
//   - words: beginnings of words. The rules are tried on texts that have one, so each text that a rule or a fact
//     matches must have one.
//   - lead: one courtesy, as in "hey" or "could you". Several may begin a sentence.
//   - clause: what separates two clauses.
//   - greeting: what may be before the statement of a fact in its sentence, and is no part of it.
//   - ends: what is after the statement of a fact in its sentence; another one may follow.
//   - foreign: what is in sentences about a text to work on, a story, a joke or somebody else's words. Messages with one state
//     no facts.
//   - parts: named pieces of patterns. {name} in a pattern stands for the piece; pieces may use pieces.
//   - guards: patterns of sentences without a wish, whatever else is in them. With intents, a guard applies to rules
//     of these only; the intent "fact" stands for facts.
//   - rules: the wishes. Each has an id, an intent (remember, forget, no_use, no_save), a confidence from 0 to 1 and
//     a match. With at "start" it must match at the beginning of the sentence or after a courtesy there, with
//     "clause" also at the beginning of a clause, and without at anywhere. Patterns in with must match as well, and
//     patterns in unless must not. The group (?P<it>…) is what to remember or forget; target replaces the group;
//     refers says that it is in the sentence before or in those after.
//   - facts: clauses that state a durable fact, in the opening of a message. Each has an id, a category and a match, and may have at, with,
//     unless and the group "it".
//   - slots: facts that alone answer a question, such as where the user lives, so that a newer one replaces the
//     older. Each has an id, a slot and a match, and may have at, with and unless. They are tried on the text of any
//     fact.
//
// Patterns have the syntax of package regexp and match folded text: "für" is written fur, "l’été" is l'ete. Blanked
// text is a run of the control character 1A, which "." and \x1a match. Each rule has says: utterances that it must
// match; a test checks them. The id of the rule that decided is the policy's reason code.
package turnpolicy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// MaxTarget bounds [Policy.ForgetTarget], in characters.
const MaxTarget = 200

const (
	maxReason = 128      // characters of [Policy.ReasonCode] and [Policy.Language]
	maxJSON   = 64 << 10 // bytes of a policy, an answer or facts
)

// Switch says whether something may happen in the turn. The empty one is undefined and allows nothing.
type Switch string

// The switches.
const (
	Allow    Switch = "allow"
	Disabled Switch = "disabled"
)

// Allowed reports whether the switch is [Allow].
func (s Switch) Allowed() bool { return s == Allow }

// ReadTools says which of the reading tools (search, list, get) may be called. The empty one is undefined and allows
// none.
type ReadTools string

// The values of [Policy.ReadTools]. ReadForgetOnly is for finding what to forget.
const (
	ReadAllow      ReadTools = "allow"
	ReadForgetOnly ReadTools = "forget_only"
	ReadDisabled   ReadTools = "disabled"
)

// Prompt says what the prompt's memory section may hold. The empty one is undefined and means no section.
type Prompt string

// The values of [Policy.Prompt]. PromptForgetOnly shows no recalled text.
const (
	PromptFull       Prompt = "full"
	PromptReadOnly   Prompt = "read_only"
	PromptForgetOnly Prompt = "forget_only"
	PromptDisabled   Prompt = "disabled"
)

// Source says what decided.
type Source string

// The sources, in the order in which they are asked.
const (
	SourceMode     Source = "mode"
	SourceOverride Source = "override"
	SourceRules    Source = "rules"
	SourceDefault  Source = "default"
)

// Policy is what memory may do in one turn. Its JSON is the value of the policy entry memory/turn_policy, which the
// hooks of a turn read. The zero value allows nothing, so a turn without an entry neither reads nor writes.
type Policy struct {
	// Recall brings items into the prompt by the user's words.
	Recall Switch `json:"recall"`
	// RememberTool and ForgetTool are the tools that write.
	RememberTool Switch `json:"remember_tool"`
	ForgetTool   Switch `json:"forget_tool"`
	// PostTurnExtraction writes facts after the turn.
	PostTurnExtraction Switch `json:"post_turn_extraction"`
	// ActiveRecall brings items by the host's recall plan or by own queries.
	ActiveRecall Switch    `json:"active_recall"`
	ReadTools    ReadTools `json:"read_tools"`
	Prompt       Prompt    `json:"prompt"`
	// ExplicitRemember and ExplicitForget say that the user explicitly asked for it.
	ExplicitRemember bool `json:"explicit_remember"`
	ExplicitForget   bool `json:"explicit_forget"`
	// ForgetTarget is what to forget, in the user's words; "everything" means all memories of the user. It is a
	// person's text: show it or search for it, but do not interpret it.
	ForgetTarget string `json:"forget_target,omitempty"`
	// ReasonCode is the id of the rule that decided, or chat_mode, override, override_invalid, model.INTENT,
	// default.NAME or below_threshold.NAME, with the name of the default.
	ReasonCode string `json:"reason_code"`
	// Confidence is from 0 to 1. With [SourceDefault] it belongs to the answer that was too weak, and is 0 without any.
	Confidence float64 `json:"confidence"`
	Source     Source  `json:"source"`
	// Language is the language of the words that decided, if it is known.
	Language string `json:"language,omitempty"`
}

// Preset is a named policy.
type Preset string

// The presets.
const (
	Normal         Preset = "normal"          // allows everything
	NoUse          Preset = "no_use"          // allows nothing
	NoSave         Preset = "no_save"         // allows recall and reading, and no writing; forgetting is writing too
	ExplicitForget Preset = "explicit_forget" // allows what forgetting needs
)

// Policy returns what the preset allows, without reason, source and confidence. An unknown name allows nothing.
func (p Preset) Policy() Policy {
	policy := Policy{
		Recall: Disabled, RememberTool: Disabled, ForgetTool: Disabled, PostTurnExtraction: Disabled, ActiveRecall: Disabled,
		ReadTools: ReadDisabled, Prompt: PromptDisabled,
	}
	switch p {
	case Normal:
		policy.RememberTool, policy.ForgetTool, policy.PostTurnExtraction = Allow, Allow, Allow
		policy.Recall, policy.ActiveRecall, policy.ReadTools, policy.Prompt = Allow, Allow, ReadAllow, PromptFull
	case NoSave:
		policy.Recall, policy.ActiveRecall, policy.ReadTools, policy.Prompt = Allow, Allow, ReadAllow, PromptReadOnly
	case ExplicitForget:
		policy.ForgetTool, policy.ReadTools, policy.Prompt, policy.ExplicitForget = Allow, ReadForgetOnly, PromptForgetOnly, true
	case NoUse:
	}
	return policy
}

// Validate reports unknown words, a confidence outside 0 to 1, and texts that are too long or not UTF-8.
func (p Policy) Validate() error {
	switches := []Switch{Disabled, Allow}
	return errors.Join(
		known("recall", p.Recall, switches),
		known("remember_tool", p.RememberTool, switches),
		known("forget_tool", p.ForgetTool, switches),
		known("post_turn_extraction", p.PostTurnExtraction, switches),
		known("active_recall", p.ActiveRecall, switches),
		known("read_tools", p.ReadTools, []ReadTools{ReadDisabled, ReadForgetOnly, ReadAllow}),
		known("prompt", p.Prompt, []Prompt{PromptDisabled, PromptForgetOnly, PromptReadOnly, PromptFull}),
		known("source", p.Source, []Source{SourceMode, SourceOverride, SourceRules, SourceDefault}),
		validConfidence(p.Confidence),
		validText("forget_target", p.ForgetTarget, MaxTarget),
		validText("reason_code", p.ReasonCode, maxReason),
		validText("language", p.Language, maxReason),
	)
}

func known[T ~string](name string, value T, list []T) error {
	if slices.Contains(list, value) {
		return nil
	}
	return fmt.Errorf("%s: %q is not one of %q", name, value, list)
}

// validConfidence rejects numbers outside 0 to 1, NaN included.
func validConfidence(c float64) error {
	if c >= 0 && c <= 1 {
		return nil
	}
	return fmt.Errorf("confidence: %v is not from 0 to 1", c)
}

func validText(name, text string, most int) error {
	switch {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return fmt.Errorf("%s: not UTF-8 without NUL", name)
	case utf8.RuneCountInString(text) > most:
		return fmt.Errorf("%s: more than %d characters", name, most)
	}
	return nil
}

// Parse reads a policy from its JSON. Omitted switches are disabled; unknown keys are errors, so that a mistyped name
// is noticed.
func Parse(data []byte) (Policy, error) {
	p := NoUse.Policy()
	err := decode(data, &p)
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		return Policy{}, fmt.Errorf("turn policy: %w", err)
	}
	return p, nil
}

// parseOverride reads the name of a preset, or a policy, whose source and confidence are ignored.
func parseOverride(data []byte) (Policy, error) {
	p := NoUse.Policy()
	var err error
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte(`"`)) {
		var preset Preset
		if err = decode(data, &preset); err == nil {
			err = known("preset", preset, []Preset{Normal, NoUse, NoSave, ExplicitForget})
		}
		p = preset.Policy()
	} else {
		err = decode(data, &p)
	}
	p.Source, p.Confidence, p.ReasonCode = SourceOverride, 1, cmp.Or(p.ReasonCode, reasonOverride)
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		return Policy{}, fmt.Errorf("policy override: %w", err)
	}
	return p, nil
}

func decode(data []byte, into any) error {
	if len(data) > maxJSON {
		return fmt.Errorf("more than %d bytes", maxJSON)
	}
	return jsonscan.Decode(data, into)
}
