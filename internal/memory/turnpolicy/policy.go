// Package turnpolicy decides what memory may do in one turn.
//
// [Rules.Decide] takes the turn's mode, the host's override and the user's words, and returns a [Policy].
// [Rules.Extract] finds facts in the user's words for hosts that offer no model.
//
// # How a text is read
//
// The rules look at the first and the last 4,000 characters. They fold them (lower case, no accents, one kind of
// quote), blank what is not the user's own words (code, quotations, lines that quote a mail), split the rest into
// sentences, and try the rules of every language on each. Only the first and the last six sentences can have a wish:
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
//   - greeting: what may be before the statement of a fact in its sentence, without being part of it.
//   - ends: what is after the statement of a fact in its sentence; another one may follow.
//   - foreign: what is in sentences about a text to work on, a story, a joke or somebody else's words. Messages with one state
//     no facts.
//   - parts: named pieces of patterns. {name} in a pattern stands for the piece; pieces may use pieces.
//   - guards: patterns of sentences without a wish, whatever else is in them. With intents, a guard applies to rules
//     of these only; the intent "fact" stands for facts.
//   - rules: the wishes. Each has an id, an intent (remember, forget, no_use, no_save), a confidence from 0 to 1 and
//     a match. Of several rules that match a text, the one with the most confidence gives the policy its reason; below
//     0.6 the match is not a wish, and only keeps facts of its sentence from being stored. With at "start" it must match at the beginning of the sentence or after a courtesy there, with
//     "clause" also at the beginning of a clause, and without at anywhere. Patterns in with must match as well, and
//     patterns in unless must not. The group (?P<it>…) is what to remember;
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
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/phases"
)

// maxJSON bounds a policy and a model's facts, in bytes.
const maxJSON = 64 << 10

// Switch says whether something may happen in the turn. Any other value than [Allow] allows nothing.
type Switch string

// The switches.
const (
	Allow    Switch = "allow"
	Disabled Switch = "disabled"
)

// Allowed reports whether the switch is [Allow].
func (s Switch) Allowed() bool { return s == Allow }

// Prompt says what the prompt's memory section may hold. Unknown values mean no section.
type Prompt string

// The values of [Policy.Prompt]. PromptForgetOnly shows no recalled text.
const (
	PromptFull       Prompt = "full"
	PromptReadOnly   Prompt = "read_only"
	PromptForgetOnly Prompt = "forget_only"
	PromptDisabled   Prompt = "disabled"
)

// Policy is what memory may do in one turn. Its JSON is the value of the policy entry memory/turn_policy, which the
// hooks of a turn read. The zero value allows nothing, so a turn without an entry neither reads nor writes.
type Policy struct {
	Recall             Switch `json:"recall"`               // brings items into the prompt by the user's words
	RememberTool       Switch `json:"remember_tool"`        // memory_remember
	ForgetTool         Switch `json:"forget_tool"`          // memory_forget
	PostTurnExtraction Switch `json:"post_turn_extraction"` // writes facts after the turn
	ActiveRecall       Switch `json:"active_recall"`        // brings items by the host's recall plan
	ReadTools          Switch `json:"read_tools"`           // memory_search, memory_list and memory_get
	Prompt             Prompt `json:"prompt"`
	// ExplicitRemember says that the user asked to remember something.
	ExplicitRemember bool `json:"explicit_remember"`
	// ReasonCode is the id of the rule that decided, or chat_mode, override, override_invalid, or default.NAME with the
	// name of the preset.
	ReasonCode string `json:"reason_code"`
}

func (p Policy) because(reason string) Policy {
	p.ReasonCode = reason
	return p
}

// Reason codes that are not a rule's id. The last is followed by the name of the preset: "default.no_save".
const (
	reasonChatMode    = "chat_mode"
	reasonOverride    = "override"
	reasonBadOverride = "override_invalid"
	reasonDefault     = "default."
)

// Preset is a named policy.
type Preset string

// The presets.
const (
	Normal         Preset = "normal"          // allows everything
	NoUse          Preset = "no_use"          // allows nothing
	NoSave         Preset = "no_save"         // allows recall and reading, and no writing; forgetting is writing too
	ExplicitForget Preset = "explicit_forget" // allows what forgetting needs
)

// Policy returns what the preset allows, without a reason. An unknown name allows nothing.
func (p Preset) Policy() Policy {
	policy := Policy{
		Recall: Disabled, RememberTool: Disabled, ForgetTool: Disabled, PostTurnExtraction: Disabled, ActiveRecall: Disabled,
		ReadTools: Disabled, Prompt: PromptDisabled,
	}
	switch p {
	case Normal:
		policy.RememberTool, policy.ForgetTool, policy.PostTurnExtraction = Allow, Allow, Allow
		policy.Recall, policy.ActiveRecall, policy.ReadTools, policy.Prompt = Allow, Allow, Allow, PromptFull
	case NoSave:
		policy.Recall, policy.ActiveRecall, policy.ReadTools, policy.Prompt = Allow, Allow, Allow, PromptReadOnly
	case ExplicitForget:
		policy.ForgetTool, policy.ReadTools, policy.Prompt = Allow, Allow, PromptForgetOnly
	case NoUse:
	}
	return policy
}

// Defaults returns the presets for turns without a wish of the user.
func Defaults() []Preset { return []Preset{Normal, NoSave, NoUse} }

// Input describes a turn.
type Input struct {
	Mode phases.Mode
	// Override is the host's metadata memory.policy_override, JSON: the name of a [Preset], or a [Policy] whose missing
	// switches are disabled. Empty and null are no override.
	Override json.RawMessage
	Text     string // what the user wrote, of any size
	Default  Preset // for turns without a wish; unknown values allow nothing
}

// Decide returns the turn's policy. The order is: chat mode allows nothing; an override decides; then what the user
// wishes; then the default. An invalid override allows nothing, because its author meant to restrict.
//
// A wish changes what it is about and leaves the rest as the default has it: remembering one thing on request does not
// open the rest, and "don't save this" never allows what the default does not.
func (r *Rules) Decide(in Input) Policy {
	if in.Mode == phases.ModeChat {
		return NoUse.Policy().because(reasonChatMode)
	}
	if word := bytes.TrimSpace(in.Override); len(word) > 0 && !bytes.Equal(word, []byte("null")) {
		p, err := parseOverride(word)
		if err != nil {
			return NoUse.Policy().because(reasonBadOverride)
		}
		return p.because(cmp.Or(p.ReasonCode, reasonOverride))
	}
	return granted(in.Default, r.Wishes(in.Text))
}

// granted is the policy of a preset and of wishes. Restrictions are stronger, but a wish to forget always gets what it
// needs, and a wish to remember yields only to one not to save.
func granted(preset Preset, wishes []Wish) Policy {
	wished := func(i Intent) bool { return slices.ContainsFunc(wishes, func(w Wish) bool { return w.Intent == i }) }
	p := preset.Policy()
	switch {
	case wished(IntentForget):
		p = ExplicitForget.Policy()
	case wished(IntentNoUse):
		p = NoUse.Policy()
	case wished(IntentNoSave) && preset == Normal:
		p = NoSave.Policy() // the other presets allow no more
	}
	if wished(IntentRemember) && !wished(IntentNoSave) {
		p.ExplicitRemember, p.RememberTool = true, Allow
		if p.Prompt == PromptReadOnly {
			// Read-only prompts tell the model that nothing is written.
			p.Prompt = PromptFull
		}
	}
	if len(wishes) > 0 {
		return p.because(wishes[0].Rule)
	}
	return p.because(reasonDefault + string(preset))
}

// Parse reads a policy from its JSON. Omitted switches are disabled; unknown keys are errors, so that a mistyped name
// is noticed.
func Parse(data []byte) (Policy, error) {
	p := NoUse.Policy()
	if err := decode(data, &p); err != nil {
		return Policy{}, fmt.Errorf("turn policy: %w", err)
	}
	return p, nil
}

// parseOverride reads the name of a preset, or a policy.
func parseOverride(data []byte) (Policy, error) {
	if !bytes.HasPrefix(data, []byte(`"`)) {
		return Parse(data)
	}
	var preset Preset
	if err := decode(data, &preset); err != nil {
		return Policy{}, err
	}
	if !slices.Contains([]Preset{Normal, NoUse, NoSave, ExplicitForget}, preset) {
		return Policy{}, errors.New("no such preset")
	}
	return preset.Policy(), nil
}

func decode(data []byte, into any) error {
	if len(data) > maxJSON {
		return fmt.Errorf("more than %d bytes", maxJSON)
	}
	return jsonscan.Decode(data, into)
}
