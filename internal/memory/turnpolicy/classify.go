package turnpolicy

import (
	"math"
	"strings"
	"unicode"

	"github.com/grapnelhq/grapnel/sdk"
)

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
	Intent Intent
	Rule   string // the id of the rule that found the wish
}

// Wishes returns what the user wishes of memory, at most one wish of each intent, in the order of [Intents]. Of a long
// text it reads both ends, and searches the middle for blocks of code only.
func (r *Rules) Wishes(text string) []Wish {
	best := map[Intent]*pattern{}
	for _, part := range r.read(text) {
		for _, h := range part.hits {
			if p := best[h.pattern.Intent]; h.wish && (p == nil || h.pattern.Confidence > p.Confidence) {
				best[h.pattern.Intent] = h.pattern
			}
		}
	}
	var all []Wish
	for _, intent := range Intents() {
		if p := best[intent]; p != nil {
			all = append(all, Wish{intent, p.ID})
		}
	}
	return all
}

// reading is a window of a text and what the rules found in it.
type reading struct {
	source    string
	folded    folded
	text      string // folded and blanked
	sentences []span
	hits      []hit
	rules     []*language // that the window may be in
}

// hit is a rule that matches a sentence.
type hit struct {
	pattern  *pattern
	sentence int
	it       span // of the object in the window's text; may be empty
	wish     bool // near an end of the whole text, by a rule that is sure enough
}

const (
	minConfidence = 0.6 // of a rule whose match is a wish
	edge          = 6   // sentences at each end of a text that can have a wish
)

func (r *Rules) read(text string) []reading {
	var all []reading
	total := 0
	for _, w := range windows(text) {
		f := fold(w.text)
		part := reading{source: w.text, folded: f, text: blank(f.text, w.fence)}
		part.sentences = sentences(part.text)
		if w.torn && len(part.sentences) > 1 {
			part.sentences = part.sentences[1:]
		}
		part.rules = r.in(part.text)
		total += len(part.sentences)
		all = append(all, part)
	}
	before := 0
	for i := range all {
		all[i].findHits(before, total)
		before += len(all[i].sentences)
	}
	return all
}

// findHits tries the rules on the sentences of a window, before which the text has others.
func (p *reading) findHits(before, total int) {
	for i, s := range p.sentences {
		atEdge := before+i < edge || before+i >= total-edge
		for _, l := range p.rules {
			heard := l.clauses(s.in(p.text))
			for r := range l.Rules {
				rule := &l.Rules[r]
				if it, ok := rule.find(heard); ok && !l.guarded(heard, rule.Intent) {
					p.hits = append(p.hits, hit{rule, i, it.after(s.from), atEdge && rule.Confidence >= minConfidence})
				}
			}
		}
	}
}

func (p *reading) quote(s span) string {
	return p.source[p.folded.at[s.from]:p.folded.at[s.to]]
}

func tidy(text string, most int) string {
	const nonJoiner, joiner = '\u200c', '\u200d' // scripts and emoji need them
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Cf, r) && r != nonJoiner && r != joiner:
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
	text = strings.Join(strings.Fields(text), " ")
	text = strings.Trim(text, " ,.;:!?。，、；：！？-")
	return strings.TrimSpace(sdk.LongestPrefix(text, math.MaxInt, most))
}
