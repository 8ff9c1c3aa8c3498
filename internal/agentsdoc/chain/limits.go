package chain

import (
	"math"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// MaxChars is the length of the files that the plugin proposes to the operator, in Unicode scalar values, frame included,
// unless the preset or the configuration asks for more (see [FileChars]).
const MaxChars = 32_000

// userFileChars is what the presets of other tools give a person's own file beside the budget of the project's.
const userFileChars = 1 << 20

// FileChars is the length that the plugin proposes for the files: what the preset or the configured limits ask for, so
// that characters do not cut what bytes allow.
func FileChars(o *Options) int {
	switch {
	case o.Layout != LayoutDelimited:
		return o.Budget.Total + userFileChars
	case o.Budget.Total > Default().Budget.Total:
		return o.Budget.Total + sdk.SectionSize((&Chain{Options: *o}).Frame(), "")
	default:
		return MaxChars
	}
}

// FollowChars raises limits in bytes that nobody set to the characters that the operator gives the subscription, so
// that the operator has one limit to raise.
func FollowChars(o Options, chars int) Options {
	if usual := Default().Budget; o.Layout == LayoutDelimited && o.Budget.Total == usual.Total && o.Budget.File == usual.File {
		o.Budget.Total, o.Budget.File = max(usual.Total, chars), max(usual.File, chars)
	}
	return o
}

// TextChars returns how many characters the instruction text may have within a limit for the whole: the frame and the
// two newlines within it take the rest. A limit of 0 does not bound, as in [phases.AnswerBudget].
func TextChars(limit int, f phases.Frame) int {
	if limit == 0 {
		return math.MaxInt
	}
	return max(0, limit-utf8.RuneCountInString(f.Open)-utf8.RuneCountInString(f.Close)-len("\n\n"))
}
