package recall

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxQueries is how many queries an active recall runs.
const MaxQueries = 3

// Active selects from the answers to the queries of an active recall, each as [Rank]
// gave it: of the first three, the best of each up to the limits, less what is in
// already, by id and then by text. Being in already does not make room for weaker
// items. Pinned items have no privilege here: recall has brought them.
//
// TotalChars of the limits bounds what each query brings.
func Active(answers [][]Scored, already []Recalled, limits Limits) Selection {
	p := newPicker(limits, tuned())
	for _, r := range already {
		p.ids[r.ID], p.keys[Key(r.Text)] = true, true
	}
	var all Selection
	for _, ranked := range answers[:min(len(answers), MaxQueries)] {
		ranked = slices.SortedFunc(slices.Values(ranked), func(a, b Scored) int {
			return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
		})
		good := p.eligible(ranked)
		p.left, p.selection = p.limits.TotalChars, Selection{Left: max(0, len(good)-p.limits.Items)}
		for _, r := range good[:len(good)-p.selection.Left] {
			p.put(r)
		}
		all.Items = append(all.Items, p.selection.Items...)
		all.Left += p.selection.Left
	}
	return all
}

// Split returns up to three queries for an active recall of an utterance about
// several things: those of its sentences with the most words that are not of talk, in
// the order in which they stand. An utterance of one such sentence gives none: recall
// has asked for it.
func Split(utterance string) []string {
	head, tail := windows(utterance)
	var found []sentence
	for _, s := range append(sentences(head), sentences(tail)...) {
		found = append(found, sentence{s, len(found), subjects(s)})
	}
	found = slices.DeleteFunc(found, func(s sentence) bool { return s.subjects < 2 })
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

// sentence is a part of an utterance.
type sentence struct {
	text string
	// place is where it stands, and subjects how many of its words are not of talk.
	place, subjects int
}

// subjects counts the different words of a text that are not of talk.
func subjects(text string) int {
	q, n := Read(text), 0
	for _, t := range q.words {
		if t.kind != part && q.tuning.share(t) == 0 {
			n++
		}
	}
	return n
}

// sentences divides a text at newlines and where sentences end.
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
