package recall

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/sdk/prompttext"
)

// Bounds of what goes into the prompt, of a recall and of each query of an active one.
const (
	maxItems      = 5
	maxItemChars  = 280  // of one item's text
	maxTotalChars = 1500 // of all texts together, with around for each
	around        = 40   // what a prompt has around a text, such as "- (workspace, instruction, 2006-01-02) "
	minCut        = 40   // the fewest characters that a text is shortened to
)

// Recalled is an item as it goes into the prompt.
type Recalled struct {
	ID       string `json:"id"`
	Scope    string `json:"scope"`
	Category string `json:"category"`
	// Date is the day on which it was last said (UTC, 2006-01-02); empty if that is unknown.
	Date string `json:"date,omitempty"`
	// Text is one line of valid UTF-8, shortened by [prompttext.Line]. It is not escaped.
	Text   string  `json:"text"`
	Pinned bool    `json:"pinned,omitempty"`
	Score  float64 `json:"score"`
}

// Selection is the result of [Pick].
type Selection struct {
	Items []Recalled `json:"items"`
	// Omitted is how many more items were good enough but exceeded the limits.
	Omitted int `json:"omitted,omitempty"`
}

// Pick selects from the result of [Rank], in that order: pinned items, and those with evidence (see the package
// comment), up to the bounds. It drops duplicates, as [Key] compares texts. An item that does not fit into 1,500
// characters is shortened, unless fewer than 40 characters are left; then a smaller one after it may still fit.
func Pick(ranked []Scored) Selection {
	p := newPicker()
	p.pinned = true
	for _, r := range p.eligible(ranked) {
		p.put(r)
	}
	return p.selection
}

type picker struct {
	pinned    bool            // pinned items need no evidence
	left      int             // of maxTotalChars
	ids, keys map[string]bool // of the items that are in the prompt already
	selection Selection
}

func newPicker() *picker {
	return &picker{left: maxTotalChars, ids: map[string]bool{}, keys: map[string]bool{}}
}

func (p *picker) eligible(ranked []Scored) []*Scored {
	var best float64
	for i := range ranked {
		if ranked[i].Evidence >= minEvidence {
			best = max(best, ranked[i].Score)
		}
	}
	var good []*Scored
	for i := range ranked {
		r := &ranked[i]
		if r.Pinned && p.pinned || r.Evidence >= minEvidence && r.Score >= tailShare*best {
			good = append(good, r)
		}
	}
	return good
}

func (p *picker) put(r *Scored) {
	if len(p.selection.Items) == maxItems {
		p.selection.Omitted++
		return
	}
	whole := strings.Join(strings.Fields(strings.ToValidUTF8(r.Text, "\uFFFD")), " ")
	// Items that look alike when they are shortened are duplicates.
	shown, _ := prompttext.Line(whole, maxItemChars)
	key := Key(shown)
	if whole == "" || p.ids[r.ID] || p.keys[key] {
		return
	}
	most := min(maxItemChars, p.left-around)
	text, cut := prompttext.Line(whole, most)
	if text == "" || cut && most < minCut {
		p.selection.Omitted++
		return
	}
	p.ids[r.ID], p.keys[key] = true, true
	p.left -= prompttext.Chars(text) + around
	date := ""
	if !r.UpdatedAt.IsZero() {
		date = r.UpdatedAt.UTC().Format(time.DateOnly)
	}
	p.selection.Items = append(p.selection.Items, Recalled{
		ID: r.ID, Date: date, Scope: r.Scope, Category: r.Category, Text: text, Pinned: r.Pinned, Score: r.Score,
	})
}

// MaxQueries is how many queries an active recall runs.
const MaxQueries = 3

// Active selects from the results of [Rank] for the first three queries of an active recall: the best items up to the
// bounds, without those already recalled, by id or by text; weaker ones do not move up. Pinned items need evidence,
// since recall has brought them. The bounds count for each query.
func Active(answers [][]Scored, already []Recalled) Selection {
	p := newPicker()
	for _, r := range already {
		p.ids[r.ID], p.keys[Key(r.Text)] = true, true
	}
	var all Selection
	for _, ranked := range answers[:min(len(answers), MaxQueries)] {
		ranked = slices.SortedFunc(slices.Values(ranked), func(a, b Scored) int {
			return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
		})
		good := p.eligible(ranked)
		p.left, p.selection = maxTotalChars, Selection{Omitted: max(0, len(good)-maxItems)}
		for _, r := range good[:len(good)-p.selection.Omitted] {
			p.put(r)
		}
		all.Items = append(all.Items, p.selection.Items...)
		all.Omitted += p.selection.Omitted
	}
	return all
}

// Split returns up to three queries for an active recall of an utterance about several things: the sentences with the
// most words that are not talk, in their order; none if there is only one, because recall has asked for it.
func Split(utterance string) []string {
	head, tail := windows(utterance)
	type sentence struct {
		text            string
		place, subjects int
	}
	var found []sentence
	for n, s := range append(sentences(head), sentences(tail)...) {
		if subjects := subjects(s); subjects > 1 {
			found = append(found, sentence{s, n, subjects})
		}
	}
	if len(found) < 2 {
		return nil
	}
	slices.SortStableFunc(found, func(a, b sentence) int { return cmp.Compare(b.subjects, a.subjects) })
	found = found[:min(len(found), MaxQueries)]
	slices.SortFunc(found, func(a, b sentence) int { return cmp.Compare(a.place, b.place) })
	queries := make([]string, 0, len(found))
	for _, s := range found {
		queries = append(queries, s.text)
	}
	return queries
}

// subjects counts the different words of a text that are not talk.
func subjects(text string) (n int) {
	for _, t := range Read(text).words {
		if t.share() == 0 {
			n++
		}
	}
	return n
}

func sentences(text string) []string {
	var parts []string
	start := 0
	for i, c := range text {
		end := i + utf8.RuneLen(c)
		switch c {
		case '\n', '。', '\uFF01', '\uFF1F':
		case '.', '!', '?', ';':
			// Not the points of versions, numbers and file names.
			if end < len(text) && text[end] != ' ' && text[end] != '\n' {
				continue
			}
		default:
			continue
		}
		parts = append(parts, strings.TrimSpace(text[start:end]))
		start = end
	}
	return append(parts, strings.TrimSpace(text[start:]))
}
