package turnpolicy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/phases"
)

// DefaultThreshold is the confidence from which a classifier's answer counts.
const DefaultThreshold = 0.6

// Reason codes that are no rule's id. Those of defaults go before the default's
// name: "default.read_only".
const (
	reasonChatMode       = "chat_mode"
	reasonOverride       = "override"
	reasonBadOverride    = "override_invalid"
	reasonDefault        = "default"
	reasonBelowThreshold = "below_threshold"
)

// Default is the policy of turns in which the user wishes nothing.
type Default string

// The defaults. The empty one counts as DefaultAllow.
const (
	DefaultAllow Default = "default_allow"
	ReadOnly     Default = "read_only"
	StrictDeny   Default = "strict_deny"
)

// ParseDefault reads the word of a configuration. The empty word is [DefaultAllow].
func ParseDefault(word string) (Default, error) {
	d := Default(word)
	if d == "" {
		return DefaultAllow, nil
	}
	if err := known("default_policy", d, []Default{DefaultAllow, ReadOnly, StrictDeny}); err != nil {
		return "", err
	}
	return d, nil
}

// Preset returns what the default allows. A word that is none allows nothing.
func (d Default) Preset() Preset {
	switch d {
	case "", DefaultAllow:
		return Normal
	case ReadOnly:
		return NoSave
	case StrictDeny:
	}
	return NoUse
}

// Input is what is known of a turn.
type Input struct {
	// Mode is the turn's mode.
	Mode phases.Mode
	// Override is the host's metadata memory.policy_override, JSON: the name of a
	// [Preset], or a [Policy] whose missing switches are disabled. None, and null, is
	// no override.
	Override json.RawMessage
	// Text is what the user wrote, of any size.
	Text string
}

// Options is how to decide. The zero value applies [DefaultAllow] to every turn.
type Options struct {
	// Default is for turns in which the user wishes nothing, or unclearly.
	Default Default
	// Threshold is the confidence from which a wish counts; 0 means
	// [DefaultThreshold].
	Threshold float64
	// Classify reads the user's words: [Rules.Classify], or a model with that as its
	// fallback. It is called at most once, and not when the mode or the override
	// decides. Nil is no classifier.
	Classify func(text string) Answer
}

// Decide returns the turn's policy. The order is: chat mode allows nothing; an
// override decides; then what the user wishes, see [Answer]; then the default. An
// override that cannot be read allows nothing, because who writes one means to
// restrict.
//
// A wish changes what it is about and leaves the rest as the default has it: who asks
// to remember one thing where nothing is remembered by default has asked for that
// one thing, and "don't save this" never allows what the default does not.
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
	return o.apply(answer)
}

// because sets what a policy says of its origin.
func because(p Policy, source Source, reason string, confidence float64) Policy {
	p.Source, p.ReasonCode, p.Confidence = source, reason, confidence
	return p
}

// apply turns an answer into a policy.
func (o Options) apply(answer Answer) Policy {
	threshold := o.Threshold
	if threshold == 0 {
		threshold = DefaultThreshold
	}
	base := o.Default.Preset().Policy()
	sure := answer.above(threshold)
	if len(sure) == 0 {
		return because(base, SourceDefault, o.reason(answer), answer.confidence())
	}
	p := granted(base, sure)
	decisive := sure[0]
	p = because(p, answer.source(), decisive.reason(), decisive.Confidence)
	p.Language = decisive.Language
	return p
}

// reason is why the default applies.
func (o Options) reason(answer Answer) string {
	name := o.Default
	if name == "" {
		name = DefaultAllow
	}
	if len(answer.Wishes) > 0 {
		return fmt.Sprintf("%s.%s", reasonBelowThreshold, name)
	}
	return fmt.Sprintf("%s.%s", reasonDefault, name)
}

// granted is what several wishes come to. What restricts is stronger, but a wish to
// forget always gets what it needs, and one to remember only yields to one not to
// save.
func granted(base Policy, wishes []Wish) Policy {
	find := func(intent Intent) int {
		return slices.IndexFunc(wishes, func(w Wish) bool { return w.Intent == intent })
	}
	p := base
	forget := find(IntentForget)
	switch {
	case forget >= 0:
		p = ExplicitForget.Policy()
		p.ForgetTarget = wishes[forget].Target
	case find(IntentNoUse) >= 0:
		p = NoUse.Policy()
	case find(IntentNoSave) >= 0:
		p = restrict(base, NoSave.Policy())
	}
	if find(IntentRemember) >= 0 && find(IntentNoSave) < 0 {
		p.ExplicitRemember, p.RememberTool = true, Allow
		if p.Prompt == PromptReadOnly {
			// Read-only prompts tell the model that nothing is written.
			p.Prompt = PromptFull
		}
	}
	return p
}
