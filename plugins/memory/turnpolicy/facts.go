package turnpolicy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bounds of what is extracted of one turn: facts, and characters of each text.
const (
	MaxFacts    = 8
	MaxFactText = 800
	MaxEvidence = 500
)

// Category is the kind of a fact. The empty one is undefined.
type Category string

// The categories.
const (
	Preference  Category = "preference"
	Factual     Category = "fact"
	Decision    Category = "decision"
	Task        Category = "task"
	Instruction Category = "instruction"
	Other       Category = "other"
)

// Categories returns the categories.
func Categories() []Category {
	return []Category{Preference, Factual, Decision, Task, Instruction, Other}
}

// Fact is one thing to remember.
type Fact struct {
	Category Category `json:"category"`
	// Text is what to remember, in the user's words, at most MaxFactText characters.
	Text string `json:"text"`
	// Evidence is the sentence that it stands in, with the one that asks to remember
	// it, at most MaxEvidence characters.
	Evidence string `json:"evidence,omitempty"`
	// Slot is what the fact is the one answer to, if it is.
	Slot Slot `json:"slot,omitempty"`
	// Explicit says that the user asked for it.
	Explicit bool `json:"explicit,omitempty"`
	// Rule is the id of the rule that found it; models leave it out.
	Rule string `json:"rule,omitempty"`
}

// Extract returns the facts that a user states in a text of any size: what they ask
// to remember, and sentences that state a durable fact about them or their work. They
// come in the order of the text, no two alike, at most [MaxFacts].
//
// Only give it the user's own words: the rules take "I" for the user. It does not ask
// whether the policy allows to keep anything, nor whether a fact is a secret.
func (r *Rules) Extract(text string) []Fact {
	var all []Fact
	seen := map[string]bool{}
	parts := r.read(text)
	total, before := 0, 0
	for _, part := range parts {
		total += len(part.sentences)
	}
	for _, part := range parts {
		for i := range part.sentences {
			for _, f := range part.facts(i, atEdge(before+i, total)) {
				key := fold(f.Text).text
				if key == "" || seen[key] || len(all) == MaxFacts {
					continue
				}
				seen[key] = true
				f.Slot = r.Slot(f.Text)
				all = append(all, f)
			}
		}
		before += len(part.sentences)
	}
	return all
}

// facts returns what a sentence states. What the user forbids to keep is none, and
// neither are statements in the middle of a long text.
func (p *reading) facts(i int, edge bool) []Fact {
	var best hit
	for _, h := range p.hits {
		if h.sentence != i {
			continue
		}
		if h.pattern.Intent != IntentRemember {
			return nil
		}
		if h.confidence > best.confidence && h.confidence >= DefaultThreshold {
			best = h
		}
	}
	if best.pattern != nil {
		return p.asked(best)
	}
	// What a later sentence refers to is taken once, when that one is reached.
	if !edge || p.referred(i) {
		return nil
	}
	s := p.sentences[i]
	for _, l := range p.rules {
		if f, ok := p.stated(l, s); ok {
			return []Fact{f}
		}
	}
	return nil
}

// asked returns what the user asks to remember.
func (p *reading) asked(h hit) []Fact {
	at := p.sentences[h.sentence]
	things := []span{h.it}
	switch {
	case h.it != (span{}):
	case h.pattern.Refers == refersBefore && h.sentence > 0:
		things = p.sentences[h.sentence-1 : h.sentence]
	case h.pattern.Refers == refersAfter:
		things = listed(p.text, p.sentences, h.sentence)
	}
	var all []Fact
	for _, s := range things {
		if s == (span{}) {
			continue
		}
		both := span{min(at.from, s.from), max(at.to, s.to)}
		all = append(all, Fact{
			Category: p.category(s), Text: cut(tidy(p.quote(s)), MaxFactText),
			Evidence: cut(tidy(p.quote(both)), MaxEvidence), Explicit: true, Rule: h.pattern.ID,
		})
	}
	return all
}

// referred reports whether the sentence after i asks to remember this one.
func (p *reading) referred(i int) bool {
	return slices.ContainsFunc(p.hits, func(h hit) bool {
		return h.sentence == i+1 && h.it == (span{}) && h.pattern.Refers == refersBefore
	})
}

// category is the kind of a span's text: that of the statement it is, if it is one.
func (p *reading) category(s span) Category {
	for _, l := range p.rules {
		if f, ok := p.stated(l, s); ok {
			return f.Category
		}
	}
	return Factual
}

// stated returns the fact that a span states by the rules of a language.
func (p *reading) stated(l language, s span) (Fact, bool) {
	if len(l.facts) == 0 {
		return Fact{}, false
	}
	sentence := l.hear(s.in(p.text))
	for _, rule := range l.facts {
		it, ok := rule.find(sentence)
		if !ok || l.guarded(sentence, "") {
			continue
		}
		said := s
		if it != (span{}) {
			said = span{s.from + it.from, s.from + it.to}
		}
		return Fact{
			Category: rule.Category, Text: cut(tidy(p.quote(said)), MaxFactText),
			Evidence: cut(tidy(p.quote(s)), MaxEvidence), Rule: rule.ID,
		}, true
	}
	return Fact{}, false
}

// ParseFacts reads a model's facts, of the shape {"facts": [{"category":
// "preference", "text": "…", "evidence": "…", "slot": "home", "explicit": true}]}, the
// last three of which may be missing. Anything else is an error: too many or too long
// ones, empty ones, words that are no category or slot. Two alike are one.
func ParseFacts(data []byte) ([]Fact, error) {
	var answer struct {
		Facts []Fact `json:"facts"`
	}
	if err := decode(data, &answer); err != nil {
		return nil, fmt.Errorf("facts: %w", err)
	}
	if len(answer.Facts) > MaxFacts {
		return nil, fmt.Errorf("facts: more than %d", MaxFacts)
	}
	var all []Fact
	seen := map[string]bool{}
	for i, f := range answer.Facts {
		f.Text, f.Evidence = strings.TrimSpace(f.Text), strings.TrimSpace(f.Evidence)
		if err := f.validate(); err != nil {
			return nil, fmt.Errorf("facts: fact %d: %w", i, err)
		}
		if key := fold(f.Text).text; !seen[key] {
			seen[key] = true
			all = append(all, f)
		}
	}
	return all, nil
}

// validate reports what is wrong with a fact that is not of the rules.
func (f Fact) validate() error {
	switch {
	case f.Text == "":
		return errors.New("text: none")
	case f.Rule != "":
		return errors.New("rule: only rules have one")
	case f.Slot != "" && !slices.Contains(Slots(), f.Slot):
		return known("slot", f.Slot, Slots())
	}
	return errors.Join(
		known("category", f.Category, Categories()),
		validText("text", f.Text, MaxFactText),
		validText("evidence", f.Evidence, MaxEvidence),
	)
}
