package recall_test

import (
	"fmt"
	"strconv"
	"time"

	"github.com/grapnelhq/grapnel/internal/memory/recall"
)

// store is the least that a store keeps: the items with what Index gave, and the
// statistics over all of them.
type store struct {
	items []recall.Candidate
	stats recall.Stats
}

// open indexes texts; the number of each is its id.
func open(texts ...string) store {
	s := store{stats: recall.Stats{Docs: len(texts), DF: map[string]int{}}}
	for i, text := range texts {
		counts, length := recall.Index(text)
		for term := range counts {
			s.stats.DF[term]++
		}
		s.stats.AvgLen += float64(length) / float64(len(texts))
		s.items = append(s.items, recall.Candidate{ID: strconv.Itoa(i), Text: text, Counts: counts, Length: length})
	}
	return s
}

// ask runs a query up to the ranking. A store with many items would collect
// candidates by the terms, and look up only the statistics that are needed.
func (s store) ask(utterance string) []recall.Scored {
	query := recall.Read(utterance)
	terms := recall.Terms(query, s.stats)
	return recall.Rank(terms, s.stats, s.items, time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC))
}

// deck is a store of a few items.
func deck() store {
	return open(
		"The staging database listens on port 5433.",
		"Deployments happen on Tuesdays at 11:00.",
		"Der Testserver heißt Möwe.",
		"parseCamtEntry drops entries without a booking date on purpose.",
		"每周四晚上发布新版本。",
	)
}

// Example runs a whole recall.
func Example() {
	s := deck()
	for _, utterance := range []string{
		"Which port does the staging database use?",
		"wie heisst nochmal der testserver",
		"What does parse_camt_entry do?",
		"我们什么时候发布新版本?",
		"Thanks, that was all!",
	} {
		selection := recall.Pick(s.ask(utterance), recall.Limits{Items: 1})
		for _, item := range selection.Items {
			fmt.Println(item.Text)
		}
		if len(selection.Items) == 0 {
			fmt.Println("(nothing)")
		}
	}
	// Output:
	// The staging database listens on port 5433.
	// Der Testserver heißt Möwe.
	// parseCamtEntry drops entries without a booking date on purpose.
	// 每周四晚上发布新版本。
	// (nothing)
}

// Pinned items come with every query.
func ExamplePick() {
	s := deck()
	s.items[1].Pinned = true
	selection := recall.Pick(s.ask("Which port has the staging database?"), recall.Limits{ItemChars: 30})
	for _, item := range selection.Items {
		fmt.Println(item.ID, item.Pinned, item.Text)
	}
	// Output:
	// 1 true Deployments happen on Tuesday…
	// 0 false The staging database listens…
}

// An active recall asks for each thing that an utterance is about, and brings what
// recall has not.
func ExampleActive() {
	s := deck()
	utterance := "Write down the port of the staging database. And say when deployments happen."
	already := recall.Pick(s.ask(utterance), recall.Limits{Items: 1}).Items
	var answers [][]recall.Scored
	for _, query := range recall.Split(utterance) {
		answers = append(answers, s.ask(query))
	}
	for _, item := range recall.Active(answers, already, recall.Limits{}).Items {
		fmt.Println(item.Text)
	}
	// Output:
	// Deployments happen on Tuesdays at 11:00.
}

func ExampleIndex() {
	counts, length := recall.Index("orderId and order_id")
	fmt.Println(length, counts["order"], counts["id"], counts["and"])
	// Output:
	// 5 2 2 1
}
