package turnpolicy

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/grapnelhq/grapnel/sdk/prompttext"
)

// unsure multiplies the confidence of a wish in the middle of a long text, where people paste what others wrote.
const unsure = 0.6

// Classify returns what the user wishes of memory. Of a long text it reads both ends, and searches the middle for
// blocks of code only.
func (r *Rules) Classify(text string) Answer {
	var a Answer
	for _, part := range r.read(text) {
		for _, h := range part.hits {
			a.add(h.wish(part))
		}
	}
	a.sort()
	return a
}

// add adds a wish. Of two with one intent the surer stays, and of two equally sure the one that names its target, or
// the first.
func (a *Answer) add(w Wish) {
	a.Rules = append(a.Rules, w.Rule)
	i := slices.IndexFunc(a.Wishes, func(x Wish) bool { return x.Intent == w.Intent })
	if i < 0 {
		a.Wishes = append(a.Wishes, w)
		return
	}
	old := a.Wishes[i]
	if w.Confidence > old.Confidence || w.Confidence == old.Confidence && old.Target == "" {
		a.Wishes[i] = w
	}
}

// reading is a window of a text and what the rules found in it.
type reading struct {
	source    string
	folded    folded
	text      string // folded and blanked
	sentences []span
	edge      []bool // by sentence: it is near an end of the whole text
	hits      []hit
	rules     []language // that the window may be in
}

// hit is a rule that matches a sentence.
type hit struct {
	pattern    *pattern
	sentence   int
	it         span // of the object in the window's text; may be empty
	confidence float64
}

func (r *Rules) read(text string) []reading {
	var all []reading
	total := 0
	for _, w := range windows(text) {
		f := fold(w.text)
		part := reading{source: w.text, folded: f, text: blank(f.text, w.inFence)}
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
		for n := range all[i].sentences {
			all[i].edge = append(all[i].edge, atEdge(before+n, total))
		}
		before += len(all[i].sentences)
		all[i].findHits()
	}
	return all
}

func (p *reading) findHits() {
	for i, s := range p.sentences {
		for n := range p.rules {
			l := &p.rules[n]
			heard := l.hear(s.in(p.text))
			for r := range l.rules {
				rule := &l.rules[r]
				it, ok := rule.find(heard)
				if !ok || l.guarded(heard, rule.Intent) {
					continue
				}
				h := hit{pattern: rule, sentence: i, it: it.after(s.from), confidence: rule.Confidence}
				if !p.edge[i] {
					h.confidence *= unsure
				}
				p.hits = append(p.hits, h)
			}
		}
	}
}

func (h hit) wish(in reading) Wish {
	w := Wish{Intent: h.pattern.Intent, Confidence: h.confidence, Rule: h.pattern.ID, Language: h.pattern.language}
	if w.Intent == IntentForget {
		w.Target = cmp.Or(h.pattern.Target, tidy(in.quote(h.it), MaxTarget))
	}
	return w
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
	return strings.TrimSpace(prompttext.Prefix(text, math.MaxInt, most))
}
