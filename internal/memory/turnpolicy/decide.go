package turnpolicy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/grapnelhq/grapnel/phases"
)

// DefaultThreshold is the confidence from which a classifier's answer counts.
const DefaultThreshold = 0.6

// Reason codes that are not a rule's id. The last two are followed by the name of the default: "default.read_only".
const (
	reasonChatMode       = "chat_mode"
	reasonOverride       = "override"
	reasonBadOverride    = "override_invalid"
	reasonDefault        = "default"
	reasonBelowThreshold = "below_threshold"
)

// Default is the policy of turns without a wish of the user.
type Default string

// The defaults. The empty one counts as DefaultAllow.
const (
	DefaultAllow Default = "default_allow"
	ReadOnly     Default = "read_only"
	StrictDeny   Default = "strict_deny"
)

// Defaults returns the defaults.
func Defaults() []Default { return []Default{DefaultAllow, ReadOnly, StrictDeny} }

// Preset returns what the default allows. Unknown values allow nothing.
func (d Default) Preset() Preset {
	switch d { //nolint:exhaustive // the others allow nothing
	case "", DefaultAllow:
		return Normal
	case ReadOnly:
		return NoSave
	}
	return NoUse
}

// Input describes a turn.
type Input struct {
	Mode phases.Mode
	// Override is the host's metadata memory.policy_override, JSON: the name of a [Preset], or a [Policy] whose missing
	// switches are disabled. Empty and null are no override.
	Override json.RawMessage
	Text     string // what the user wrote, of any size
}

// Options say how to decide. The zero value applies [DefaultAllow] to every turn.
type Options struct {
	Default Default // for turns without a wish, or with an unclear one
	// Classify reads the user's words, as [Rules.Classify] does. It is called at most once, and not when the mode or the
	// override decides. It may be nil.
	Classify func(text string) Answer
}

// Decide returns the turn's policy. The order is: chat mode allows nothing; an override decides; then what the user
// wishes, see [Answer]; then the default. An invalid override allows nothing, because its author meant to restrict.
//
// A wish changes what it is about and leaves the rest as the default has it: remembering one thing on request does not
// open the rest, and "don't save this" never allows what the default does not.
func Decide(in Input, o Options) Policy {
	if in.Mode == phases.ModeChat {
		return because(NoUse.Policy(), SourceMode, reasonChatMode, 1)
	}
	if word := bytes.TrimSpace(in.Override); len(word) > 0 && !bytes.Equal(word, []byte("null")) {
		p, err := parseOverride(word)
		if err != nil {
			return because(NoUse.Policy(), SourceOverride, reasonBadOverride, 1)
		}
		return p
	}
	var answer Answer
	if o.Classify != nil {
		answer = o.Classify(in.Text)
	}
	most, reason := 0.0, reasonDefault
	var sure []Wish
	for _, w := range answer.Wishes {
		most, reason = max(most, w.Confidence), reasonBelowThreshold
		if w.Confidence >= DefaultThreshold {
			sure = append(sure, w)
		}
	}
	if len(sure) == 0 {
		return because(o.Default.Preset().Policy(), SourceDefault, reason+"."+string(cmp.Or(o.Default, DefaultAllow)), most)
	}
	p := because(granted(o.Default.Preset(), sure), SourceRules, sure[0].Rule, sure[0].Confidence)
	p.Language = sure[0].Language
	return p
}

func because(p Policy, source Source, reason string, confidence float64) Policy {
	p.Source, p.ReasonCode, p.Confidence = source, reason, confidence
	return p
}

// granted is the policy of several wishes. Restrictions are stronger, but a wish to forget always gets what it needs,
// and a wish to remember yields only to one not to save.
func granted(base Preset, wishes []Wish) Policy {
	wished := map[Intent]*Wish{}
	for i := range wishes {
		wished[wishes[i].Intent] = &wishes[i]
	}
	p := base.Policy()
	switch forget := wished[IntentForget]; {
	case forget != nil:
		p = ExplicitForget.Policy()
		p.ForgetTarget = forget.Target
	case wished[IntentNoUse] != nil:
		p = NoUse.Policy()
	case wished[IntentNoSave] != nil && base == Normal:
		p = NoSave.Policy() // the other defaults allow no more
	}
	if wished[IntentRemember] != nil && wished[IntentNoSave] == nil {
		p.ExplicitRemember, p.RememberTool = true, Allow
		if p.Prompt == PromptReadOnly {
			// Read-only prompts tell the model that nothing is written.
			p.Prompt = PromptFull
		}
	}
	return p
}

// Intent is what a user wishes of memory. The empty one is undefined.
type Intent string

// The intents.
const (
	IntentRemember Intent = "remember" // keep something beyond the turn
	IntentForget   Intent = "forget"   // remove something that is remembered
	IntentNoUse    Intent = "no_use"   // answer without what is remembered
	IntentNoSave   Intent = "no_save"  // keep nothing of the turn
)

// Intents returns the intents in the order of precedence: the first of a turn's wishes gives the policy its reason.
func Intents() []Intent {
	return []Intent{IntentForget, IntentNoUse, IntentNoSave, IntentRemember}
}

// Wish is one thing that the user wishes.
type Wish struct {
	Intent     Intent
	Confidence float64
	Target     string // see [Policy.ForgetTarget]
	Rule       string // the id of the rule that found the wish
	Language   string // of the words
}

// Answer is the result of a classifier. The zero value has no wish.
type Answer struct {
	// Wishes has at most one wish of each intent, in the order of [Intents].
	Wishes []Wish
	// Rules are the ids of all rules that matched, in the order of the text.
	Rules []string
}

func (a Answer) sort() {
	slices.SortFunc(a.Wishes, func(x, y Wish) int {
		return slices.Index(Intents(), x.Intent) - slices.Index(Intents(), y.Intent)
	})
}
