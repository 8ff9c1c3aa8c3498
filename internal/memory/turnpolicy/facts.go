package turnpolicy

import (
	"cmp"
	"slices"
	"strings"
)

// Bounds of an extraction: facts, and characters of each text.
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
	// Evidence is its sentence, with the one that asks to remember it, at most MaxEvidence characters.
	Evidence string `json:"evidence,omitempty"`
	Slot     Slot   `json:"slot,omitempty"`     // the question that the fact alone answers, if any
	Explicit bool   `json:"explicit,omitempty"` // the user asked for it
	Rule     string `json:"-"`                  // the id of the rule that found it
}

// Extract returns the facts that a user states in a text of any size: what they ask to remember, and what they state of
// themselves and their work in the opening of the text, up to the first sentence that is neither a fact nor a greeting.
// They are in the order of the text, without duplicates, at most [MaxFacts]. What stands further on may be pasted,
// quoted, made up or text to work on, which rules cannot tell apart.
//
// Extract checks neither the policy nor whether a fact is a secret.
func (r *Rules) Extract(text string) []Fact {
	var all []Fact
	seen := map[string]bool{}
	opening := true
	for _, part := range r.read(text) {
		for i := range part.sentences {
			var facts []Fact
			facts, opening = part.facts(i, opening)
			for _, f := range facts {
				key := fold(f.Text).text
				if key == "" || seen[key] || len(all) == MaxFacts {
					continue
				}
				seen[key] = true
				f.Slot = r.Slot(f.Text)
				all = append(all, f)
			}
		}
	}
	return all
}

// facts returns what a sentence asks to remember, or in the opening of a text states, unless the user forbids to keep
// it. opening reports whether the next sentence is in the opening too.
func (p *reading) facts(i int, inOpening bool) (all []Fact, opening bool) {
	var best hit
	for _, h := range p.hits {
		if h.sentence != i {
			continue
		}
		if h.pattern.Intent != IntentRemember {
			return nil, false
		}
		if h.wish && (best.pattern == nil || h.pattern.Confidence > best.pattern.Confidence) {
			best = h
		}
	}
	if best.pattern != nil {
		return p.asked(best), inOpening
	}
	if !inOpening {
		return nil, false
	}
	all = p.stated(p.sentences[i])
	refersHere := func(h hit) bool {
		return h.sentence == i+1 && h.it == (span{}) && h.pattern.Refers == refersBefore
	}
	switch {
	case slices.ContainsFunc(p.hits, refersHere): // it is taken there
		return nil, true
	case p.foreign(i):
		return nil, false
	}
	return all, len(all) > 0 || p.greets(i)
}

// greets reports whether a sentence is a courtesy or an exclamation of a few words.
func (p *reading) greets(i int) bool {
	text := p.sentences[i].in(p.text)
	return len(strings.Fields(text)) <= maxGreeting && (strings.HasSuffix(text, "!") || slices.ContainsFunc(p.rules, func(l *language) bool {
		return l.Lead.in(strings.TrimRight(text, ".? ")+" ") != nil
	}))
}

const maxGreeting = 6 // words

// foreign reports whether another sentence, or what follows in this one, says that the text is to be worked on, made up
// or somebody else's.
func (p *reading) foreign(i int) bool {
	for j, s := range p.sentences {
		text := s.in(p.text)
		if j == i {
			_, text, _ = strings.Cut(strings.NewReplacer(";", ",", ":", ",", "(", ",", "—", ",").Replace(text), ",")
		}
		if slices.ContainsFunc(p.rules, func(l *language) bool { return l.Foreign.in(text) != nil }) {
			return true
		}
	}
	return false
}

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
		category := Factual
		if stated := p.stated(s); len(stated) > 0 {
			category = stated[0].Category
		}
		both := span{min(at.from, s.from), max(at.to, s.to)}
		all = append(all, Fact{
			Category: category, Text: tidy(p.quote(s), MaxFactText),
			Evidence: tidy(p.quote(both), MaxEvidence), Explicit: true, Rule: h.pattern.ID,
		})
	}
	return all
}

// stated returns the facts that a sentence begins with, one a clause.
func (p *reading) stated(s span) (all []Fact) {
	for _, l := range p.rules {
		rest := s
		if m := l.Greeting.in(rest.in(p.text)); m != nil {
			rest.from += m[1]
		}
		for rest.from < rest.to {
			clause, next := rest, rest.to
			if end := l.Ends.in(rest.in(p.text)); end != nil {
				clause.to = rest.from + end[0]
				next = clause.to + len(",") // or the space before the next word
			}
			f, ok := l.states(p, clause)
			if !ok {
				break
			}
			f.Evidence = tidy(p.quote(s), MaxEvidence)
			all = append(all, f)
			next += len(p.text[next:s.to]) - len(strings.TrimLeft(p.text[next:s.to], " ,;-"))
			rest.from = next
		}
	}
	return all
}

// states returns the fact that a clause states.
func (l *language) states(p *reading, clause span) (Fact, bool) {
	heard := l.clauses(clause.in(p.text))
	if l.guarded(heard, intentFact) {
		return Fact{}, false
	}
	for i := range l.Facts {
		if it, ok := l.Facts[i].find(heard); ok {
			text := cmp.Or(it.after(clause.from), clause)
			return Fact{Category: l.Facts[i].Category, Text: tidy(p.quote(text), MaxFactText), Rule: l.Facts[i].ID}, true
		}
	}
	return Fact{}, false
}

// Slot names the question that a fact alone answers: of two facts with one slot the newer holds. Most facts have
// none.
type Slot string

// SlotName is the slot of a person's name.
const SlotName Slot = "name"

// Slots returns the slots. All are about one person.
func Slots() []Slot {
	return []Slot{
		SlotName, "pronouns", "home", "address", "email", "phone", "birthday", "employer", "job", "time_zone", "editor", "shell",
		"operating_system", "reply_language",
	}
}

// Slot returns the slot of a fact, by its text; empty if it has none or in doubt: a wrong slot would replace another
// fact.
func (r *Rules) Slot(fact string) Slot {
	if len(fact) > MaxFactText {
		return ""
	}
	text := fold(tidy(fact, MaxFactText)).text
	for _, l := range r.in(text) {
		heard := l.clauses(text)
		for i := range l.Slots {
			if _, ok := l.Slots[i].find(heard); ok {
				return l.Slots[i].Slot
			}
		}
	}
	return ""
}
