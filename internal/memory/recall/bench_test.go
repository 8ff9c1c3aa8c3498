package recall

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkRank is what a query of twelve terms with 200 candidates costs.
func BenchmarkRank(b *testing.B) {
	terms, candidates := busy()
	stats := Stats{Docs: 100_000, AvgLen: 20}
	now := judgedNow()
	b.ReportAllocs()
	for b.Loop() {
		if ranked := Rank(terms, stats, candidates, now); len(ranked) != len(candidates) {
			b.Fatal(len(ranked))
		}
	}
}

// busy returns twelve terms and 200 candidates that have six of them each.
func busy() ([]Term, []Candidate) {
	var terms []Term
	for i := range MaxTerms {
		terms = append(terms, Term{Text: fmt.Sprint("term", i), Weight: 1 - float64(i)/20})
	}
	var candidates []Candidate
	for i := range 200 {
		c := Candidate{
			ID: fmt.Sprintf("01J%023d", i), Text: strings.Repeat(fmt.Sprint("text ", i, " "), 30), Length: 10 + i%20, Uses: i % 7,
			Counts: map[string]int{}, UpdatedAt: judgedNow().AddDate(0, 0, -i), LastUsedAt: judgedNow().AddDate(0, 0, -i/2),
		}
		for j := range MaxTerms / 2 {
			c.Counts[terms[(i+2*j)%MaxTerms].Text] = 1 + i%3
		}
		candidates = append(candidates, c)
	}
	return terms, candidates
}

// BenchmarkTerms is what the terms of utterances cost.
func BenchmarkTerms(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"short", "Which port does the staging database listen on, and who knows about orders_customer_created_idx?"},
		{"1MB", strings.Repeat("An utterance with parseCamtEntry, 数据库, übergroße words and numbers such as 5433. ", 11_500)},
	} {
		b.Run(c.name, func(b *testing.B) {
			stats := Stats{Docs: 100_000, AvgLen: 20, DF: map[string]int{}}
			q := Read(c.text)
			for i, term := range q.Vocabulary() {
				stats.DF[term] = i % 9
			}
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			for b.Loop() {
				q := Read(c.text)
				if terms := Terms(q, stats); len(terms) == 0 {
					b.Fatal("no terms")
				}
			}
		})
	}
}
