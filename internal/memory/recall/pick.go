package recall

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/sdk"
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
	// Text is one line of valid UTF-8, shortened by [sdk.CutLine]. It is not escaped.
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
	p := newPicker(nil)
	for _, r := range eligible(ranked, true) {
		p.put(r)
	}
	return p.Selection
}

// MaxQueries is how many queries an active recall runs.
const MaxQueries = 3

// Active selects from the results of [Rank] for the first three queries of an active recall: the best items up to the
// bounds, without those already recalled, by id or by text; weaker ones do not move up. Pinned items need evidence,
// since recall has brought them. The bounds count for each query.
func Active(answers [][]Scored, already []Recalled) Selection {
	p := newPicker(already)
	var all Selection
	for _, ranked := range answers[:min(len(answers), MaxQueries)] {
		ranked = slices.SortedFunc(slices.Values(ranked), func(a, b Scored) int {
			return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
		})
		good := eligible(ranked, false)
		p.left, p.Selection = maxTotalChars, Selection{Omitted: max(0, len(good)-maxItems)}
		for _, r := range good[:len(good)-p.Omitted] {
			p.put(r)
		}
		all.Items = append(all.Items, p.Items...)
		all.Omitted += p.Omitted
	}
	return all
}

// eligible returns the items with evidence that are near enough to the best, and perhaps the pinned ones.
func eligible(ranked []Scored, pinned bool) []Scored {
	var best float64
	for i := range ranked {
		if ranked[i].Evidence >= minEvidence {
			best = max(best, ranked[i].Score)
		}
	}
	return slices.DeleteFunc(slices.Clone(ranked), func(r Scored) bool {
		return (!r.Pinned || !pinned) && (r.Evidence < minEvidence || r.Score < tailShare*best)
	})
}

type picker struct {
	Selection

	left      int             // of maxTotalChars
	ids, keys map[string]bool // of the items that are in the prompt already
}

func newPicker(already []Recalled) *picker {
	p := &picker{left: maxTotalChars, ids: map[string]bool{}, keys: map[string]bool{}}
	for _, r := range already {
		p.ids[r.ID], p.keys[Key(r.Text)] = true, true
	}
	return p
}

func (p *picker) put(r Scored) {
	if len(p.Items) == maxItems {
		p.Omitted++
		return
	}
	whole := strings.Join(strings.Fields(strings.ToValidUTF8(r.Text, "\uFFFD")), " ")
	// Items that look alike when they are shortened are duplicates.
	shown, _ := sdk.CutLine(whole, maxItemChars)
	key := Key(shown)
	if whole == "" || p.ids[r.ID] || p.keys[key] {
		return
	}
	most := min(maxItemChars, p.left-around)
	text, cut := sdk.CutLine(whole, most)
	if text == "" || cut && most < minCut {
		p.Omitted++
		return
	}
	p.ids[r.ID], p.keys[key] = true, true
	p.left -= sdk.CountChars(text) + around
	date := ""
	if !r.UpdatedAt.IsZero() {
		date = r.UpdatedAt.UTC().Format(time.DateOnly)
	}
	p.Items = append(p.Items, Recalled{
		ID: r.ID, Date: date, Scope: r.Scope, Category: r.Category, Text: text, Pinned: r.Pinned, Score: r.Score,
	})
}
