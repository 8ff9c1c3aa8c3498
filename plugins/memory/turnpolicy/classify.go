package turnpolicy

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unsure is by what the confidence of a wish is multiplied that stands in the middle
// of a long text, where people paste what others wrote.
const unsure = 0.6

// Classify returns what the user wishes of memory, by the words of a text of any
// size. Its work has a bound, but for the search for blocks of code in what lies
// between the ends of a long text.
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

// add takes a wish in. Of two of one intent the surer one stays, and of two like
// sure ones the one that names its target, or the first.
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

// reading is a window of a text as the rules see it, and what they found.
type reading struct {
	source    string
	folded    folded
	text      string // folded and blanked
	sentences []span
	hits      []hit
	// rules are what can match in the window.
	rules []language
}

// hit is a rule that matches a sentence.
type hit struct {
	pattern *pattern
	// sentence is its number, and it is the span in the window's text, which may be
	// empty.
	sentence   int
	it         span
	confidence float64
}

// read applies the rules to the windows of a text.
func (r *Rules) read(text string) []reading {
	var all []reading
	for _, w := range windows(text) {
		f := fold(w.text)
		part := reading{source: w.text, folded: f, text: blank(f.text, w.inFence)}
		part.sentences = sentences(part.text)
		if w.torn && len(part.sentences) > 1 {
			part.sentences = part.sentences[1:]
		}
		part.rules = r.in(part.text)
		all = append(all, part)
	}
	total, before := 0, 0
	for _, part := range all {
		total += len(part.sentences)
	}
	for i := range all {
		all[i].findHits(before, total)
		before += len(all[i].sentences)
	}
	return all
}

// findHits tries the rules on each sentence. Before the window's first there were
// some, of so many in all.
func (p *reading) findHits(before, total int) {
	for i, s := range p.sentences {
		factor := 1.0
		if !atEdge(before+i, total) {
			factor = unsure
		}
		for _, l := range p.rules {
			for _, h := range l.hits(s.in(p.text)) {
				h.sentence = i
				h.confidence *= factor
				if h.it != (span{}) {
					h.it.from += s.from
					h.it.to += s.from
				}
				p.hits = append(p.hits, h)
			}
		}
	}
}

// hits returns the rules of a language that match a sentence and that no guard
// stops.
func (l language) hits(sentence string) []hit {
	if len(l.rules) == 0 {
		return nil
	}
	var all []hit
	heard := l.hear(sentence)
	for i := range l.rules {
		p := &l.rules[i]
		it, ok := p.find(heard)
		if ok && !l.guarded(heard, p.Intent) {
			all = append(all, hit{pattern: p, it: it, confidence: p.Confidence})
		}
	}
	return all
}

// guarded reports whether a sentence wishes nothing, for rules of an intent.
func (l language) guarded(sentence said, intent Intent) bool {
	return slices.ContainsFunc(l.guards, func(p pattern) bool {
		if !p.guards(intent) {
			return false
		}
		_, ok := p.find(sentence)
		return ok
	})
}

// wish is what a hit comes to.
func (h hit) wish(in reading) Wish {
	w := Wish{Intent: h.pattern.Intent, Confidence: h.confidence, Rule: h.pattern.ID, Language: h.pattern.language}
	switch {
	case w.Intent != IntentForget:
	case h.pattern.Target != "":
		w.Target = h.pattern.Target
	default:
		w.Target = cut(tidy(in.quote(h.it)), MaxTarget)
	}
	return w
}

// quote returns the part of the source behind a span of the window's text.
func (p *reading) quote(s span) string { return p.folded.source(p.source, s.from, s.to) }

// tidy makes one line of a quoted part, without the signs around it and without
// characters that nobody sees.
func tidy(text string) string {
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
	return strings.Trim(text, " ,.;:!?。，、；：！？-")
}

// cut returns the first characters of a text.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return strings.TrimSpace(text[:prefixLen(text, most)])
}
