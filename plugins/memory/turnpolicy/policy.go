package turnpolicy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxTarget bounds [Policy.ForgetTarget], in characters.
const MaxTarget = 200

// maxReason bounds [Policy.ReasonCode] and [Policy.Language], in characters.
const maxReason = 128

// Switch says whether something may happen in the turn. The empty one is undefined
// and allows nothing.
type Switch string

// The switches.
const (
	Allow    Switch = "allow"
	Disabled Switch = "disabled"
)

// Allowed reports whether the switch is [Allow].
func (s Switch) Allowed() bool { return s == Allow }

// ReadTools says which of the reading tools (search, list, get) may be called. The
// empty one is undefined and allows none.
type ReadTools string

// The values of [Policy.ReadTools]. ReadForgetOnly is for finding what is to be
// forgotten.
const (
	ReadAllow      ReadTools = "allow"
	ReadForgetOnly ReadTools = "forget_only"
	ReadDisabled   ReadTools = "disabled"
)

// Prompt says what the prompt's memory section may hold. The empty one is undefined
// and means that there is no section.
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
	SourceModel    Source = "model"
	SourceDefault  Source = "default"
)

// Policy is what memory may do in one turn. Its JSON is the value of the policy
// entry memory/turn_policy, by which the hooks of a turn know of it. The zero value
// allows nothing, so a turn without an entry neither reads nor writes.
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
	// ExplicitRemember and ExplicitForget say that the user asked for it in so many
	// words.
	ExplicitRemember bool `json:"explicit_remember"`
	ExplicitForget   bool `json:"explicit_forget"`
	// ForgetTarget is what is to be forgotten, in the user's words; "everything"
	// stands for all that is remembered of the user. It is text of a person: show it,
	// search for it, and put it nowhere as it is.
	ForgetTarget string `json:"forget_target,omitempty"`
	// ReasonCode is why: the id of the rule that decided, or chat_mode, override,
	// override_invalid, model.INTENT, default.NAME or below_threshold.NAME, with the
	// name of the default.
	ReasonCode string `json:"reason_code"`
	// Confidence is from 0 to 1. With [SourceDefault] it is that of the answer that
	// was too weak, and 0 if there was none.
	Confidence float64 `json:"confidence"`
	Source     Source  `json:"source"`
	// Language is that of the words that decided, if it is known.
	Language string `json:"language,omitempty"`
}

// Preset is a policy by name.
type Preset string

// The presets.
const (
	// Normal allows everything.
	Normal Preset = "normal"
	// NoUse allows nothing.
	NoUse Preset = "no_use"
	// NoSave allows recall and reading, and no writing. Forgetting is writing too.
	NoSave Preset = "no_save"
	// ExplicitForget allows what forgetting needs.
	ExplicitForget Preset = "explicit_forget"
)

// presets returns all presets.
func presets() []Preset { return []Preset{Normal, NoUse, NoSave, ExplicitForget} }

// Policy returns what the preset allows, without reason, source and confidence. A
// name that is none of the presets allows nothing.
func (p Preset) Policy() Policy {
	switch p {
	case Normal:
		return Policy{
			Recall: Allow, RememberTool: Allow, ForgetTool: Allow, PostTurnExtraction: Allow, ActiveRecall: Allow,
			ReadTools: ReadAllow, Prompt: PromptFull,
		}
	case NoSave:
		return Policy{
			Recall: Allow, RememberTool: Disabled, ForgetTool: Disabled, PostTurnExtraction: Disabled, ActiveRecall: Allow,
			ReadTools: ReadAllow, Prompt: PromptReadOnly,
		}
	case ExplicitForget:
		return Policy{
			Recall: Disabled, RememberTool: Disabled, ForgetTool: Allow, PostTurnExtraction: Disabled, ActiveRecall: Disabled,
			ReadTools: ReadForgetOnly, Prompt: PromptForgetOnly, ExplicitForget: true,
		}
	case NoUse:
	}
	return Policy{
		Recall: Disabled, RememberTool: Disabled, ForgetTool: Disabled, PostTurnExtraction: Disabled, ActiveRecall: Disabled,
		ReadTools: ReadDisabled, Prompt: PromptDisabled,
	}
}

// restrict returns what both a and b allow; all else is a's.
func restrict(a, b Policy) Policy {
	a.Recall = weaker(switches(), a.Recall, b.Recall)
	a.RememberTool = weaker(switches(), a.RememberTool, b.RememberTool)
	a.ForgetTool = weaker(switches(), a.ForgetTool, b.ForgetTool)
	a.PostTurnExtraction = weaker(switches(), a.PostTurnExtraction, b.PostTurnExtraction)
	a.ActiveRecall = weaker(switches(), a.ActiveRecall, b.ActiveRecall)
	a.ReadTools = weaker(readings(), a.ReadTools, b.ReadTools)
	a.Prompt = weaker(prompts(), a.Prompt, b.Prompt)
	return a
}

// switches, readings and prompts list values from the weakest to the strongest.
func switches() []Switch    { return []Switch{Disabled, Allow} }
func readings() []ReadTools { return []ReadTools{ReadDisabled, ReadForgetOnly, ReadAllow} }
func prompts() []Prompt {
	return []Prompt{PromptDisabled, PromptForgetOnly, PromptReadOnly, PromptFull}
}

// weaker returns the one of a and b that comes first in order; what is not there
// comes before all.
func weaker[T comparable](order []T, a, b T) T {
	if slices.Index(order, a) <= slices.Index(order, b) {
		return a
	}
	return b
}

// Validate reports what is wrong with the policy: words that are none of their type,
// a confidence outside 0 to 1, texts that are too long or not UTF-8.
func (p Policy) Validate() error {
	var problems []error
	for _, s := range []struct {
		name  string
		value Switch
	}{
		{"recall", p.Recall},
		{"remember_tool", p.RememberTool},
		{"forget_tool", p.ForgetTool},
		{"post_turn_extraction", p.PostTurnExtraction},
		{"active_recall", p.ActiveRecall},
	} {
		problems = append(problems, known(s.name, s.value, switches()))
	}
	problems = append(problems,
		known("read_tools", p.ReadTools, readings()),
		known("prompt", p.Prompt, prompts()),
		known("source", p.Source, []Source{SourceMode, SourceOverride, SourceRules, SourceModel, SourceDefault}),
		validConfidence(p.Confidence),
		validText("forget_target", p.ForgetTarget, MaxTarget),
		validText("reason_code", p.ReasonCode, maxReason),
		validText("language", p.Language, maxReason),
	)
	return errors.Join(problems...)
}

// known reports a value that is none of a list.
func known[T ~string](name string, value T, list []T) error {
	if slices.Contains(list, value) {
		return nil
	}
	return fmt.Errorf("%s: %q is none of %q", name, value, list)
}

// validConfidence reports a number outside 0 to 1; what is no number is outside too.
func validConfidence(c float64) error {
	if c >= 0 && c <= 1 {
		return nil
	}
	return fmt.Errorf("confidence: %v is not from 0 to 1", c)
}

// validText reports a text that is too long or no text.
func validText(name, text string, most int) error {
	switch {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return fmt.Errorf("%s: not UTF-8 without NUL", name)
	case utf8.RuneCountInString(text) > most:
		return fmt.Errorf("%s: more than %d characters", name, most)
	}
	return nil
}
