package recall

import "unicode/utf8"

// The limits that hold where a field of [Limits] is not set.
const (
	DefaultItems      = 5
	DefaultItemChars  = 280
	DefaultTotalChars = 1500
)

// Limits bound what is brought into the prompt. Characters are Unicode scalar values.
// The zero value stands for the limits above.
type Limits struct {
	// Items is the most items; 0 or less means [DefaultItems].
	Items int
	// ItemChars is the most characters of one item's text; 0 or less means
	// [DefaultItemChars].
	ItemChars int
	// TotalChars is the most characters of all texts together, and of what is written
	// around them; 0 or less means [DefaultTotalChars].
	TotalChars int
	// Around is how many characters the caller writes around each text.
	Around int
}

// withDefaults fills what is not set.
func (l Limits) withDefaults() Limits {
	orElse := func(n *int, otherwise int) {
		if *n <= 0 {
			*n = otherwise
		}
	}
	orElse(&l.Items, DefaultItems)
	orElse(&l.ItemChars, DefaultItemChars)
	orElse(&l.TotalChars, DefaultTotalChars)
	l.Around = max(l.Around, 0)
	return l
}

// Recalled is an item as it goes into the prompt.
type Recalled struct {
	ID, Scope, Category string
	// Text is one line of valid UTF-8, cut as [Cut] does. It is the item's own words:
	// escape it where it is written.
	Text string
	// Cut says that the item's text is longer.
	Cut    bool
	Pinned bool
	Score  float64
}

// Selection is what was picked.
type Selection struct {
	Items []Recalled
	// Left is how many items would have been good enough and found no room. Those
	// after the last that did are not looked at for having one text.
	Left int
}

// Pick selects from what [Rank] gave, in that order: pinned items, and those with
// evidence (see the package comment), up to the limits. An item with the text of one
// before it, as [Key] compares, is dropped. An item that finds too little room in the
// whole is cut shorter, unless fewer than 40 characters are left; then a smaller one
// after it may still find room.
func Pick(ranked []Scored, limits Limits) Selection {
	p := newPicker(limits, tuned())
	p.pinned = true
	p.take(ranked)
	return p.selection
}

// minCut is the room below which a text is not cut to fit.
const minCut = 40

// picker selects items up to limits.
type picker struct {
	tuning tuning
	limits Limits
	// pinned says that pinned items need no evidence.
	pinned bool
	// left is the room that is left of the whole.
	left int
	// ids and keys are those of the items that are in the prompt already.
	ids, keys map[string]bool
	selection Selection
}

// newPicker returns a picker with all its room.
func newPicker(limits Limits, with tuning) *picker {
	limits = limits.withDefaults()
	return &picker{
		tuning: with, limits: limits, left: limits.TotalChars, ids: map[string]bool{}, keys: map[string]bool{},
	}
}

// take selects from ranked items.
func (p *picker) take(ranked []Scored) {
	for _, r := range p.eligible(ranked) {
		p.put(r)
	}
}

// eligible returns the items that are good enough.
func (p *picker) eligible(ranked []Scored) []*Scored {
	var best float64
	for i := range ranked {
		if ranked[i].Evidence >= p.tuning.evidence {
			best = max(best, ranked[i].Score)
		}
	}
	var good []*Scored
	for i := range ranked {
		r := &ranked[i]
		fits := r.Evidence >= p.tuning.evidence && r.Score >= p.tuning.tail*best
		if fits || r.Pinned && p.pinned {
			good = append(good, r)
		}
	}
	return good
}

// put adds an item if it is new and finds room.
func (p *picker) put(r *Scored) {
	if len(p.selection.Items) == p.limits.Items {
		p.selection.Left++
		return
	}
	line := oneLine(r.Text)
	// The key is that of what is shown: two items that look alike are one too many.
	key := Key(cutLine(line, p.limits.ItemChars))
	if line == "" || p.ids[r.ID] || p.keys[key] {
		return
	}
	room := min(p.limits.ItemChars, p.left-p.limits.Around)
	text := cutLine(line, room)
	if text == "" || text != line && room < min(p.limits.ItemChars, minCut) {
		p.selection.Left++
		return
	}
	p.ids[r.ID], p.keys[key] = true, true
	p.left -= utf8.RuneCountInString(text) + p.limits.Around
	p.selection.Items = append(p.selection.Items, Recalled{
		ID: r.ID, Scope: r.Scope, Category: r.Category, Text: text, Cut: text != line, Pinned: r.Pinned, Score: r.Score,
	})
}
