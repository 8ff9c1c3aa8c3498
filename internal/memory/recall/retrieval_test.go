package recall

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
)

// judgedItem is a line of testdata/retrieval/items.jsonl.
type judgedItem struct {
	ID, Lang, Scope, Category, Text string
	Updated, Used                   string
	Uses                            int
}

// judgedQuery is a line of development.jsonl or held_out.jsonl. Relevant has the
// grades: 2 for an item that is needed, 1 for one that helps.
type judgedQuery struct {
	ID, Lang, Kind, Text string
	Relevant             map[string]int
}

// readLines decodes a file of the set, whose first line says where it is from.
func readLines[T any](tb testing.TB, name string) []T {
	tb.Helper()
	f, err := os.Open(filepath.Join("testdata", "retrieval", name))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	if !lines.Scan() || !strings.Contains(lines.Text(), `"provenance"`) {
		tb.Fatalf("%s does not begin with its provenance", name)
	}
	var all []T
	for lines.Scan() {
		var one T
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			tb.Fatalf("%s, line %d: %v", name, len(all)+2, err)
		}
		all = append(all, one)
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	return all
}

// judgedNow is the time at which the queries are asked.
func judgedNow() time.Time { return time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC) }

// memory is a store for tests: all items in memory, and what it takes to recall.
type memory struct {
	tuning tuning
	items  []Candidate
	stats  Stats
}

// newMemory indexes items.
func newMemory(tb testing.TB, items []judgedItem, with tuning) *memory {
	tb.Helper()
	day := func(s string) time.Time {
		if s == "" {
			return time.Time{}
		}
		at, err := time.Parse(time.DateOnly, s)
		if err != nil {
			tb.Fatal(err)
		}
		return at
	}
	m := &memory{tuning: with, stats: Stats{Docs: len(items), DF: map[string]int{}}}
	total := 0
	for _, it := range items {
		counts, length := index(it.Text, with)
		for term := range counts {
			m.stats.DF[term]++
		}
		total += length
		m.items = append(m.items, Candidate{
			ID: it.ID, Text: it.Text, Scope: it.Scope, Category: it.Category, Counts: counts, Length: length,
			UpdatedAt: day(it.Updated), LastUsedAt: day(it.Used), Uses: it.Uses,
		})
	}
	m.stats.AvgLen = float64(total) / float64(max(1, len(items)))
	return m
}

// rank runs a query up to the ranking, by way of what a store would be asked for.
func (m *memory) rank(utterance string) []Scored {
	q := read(utterance, m.tuning)
	asked := Stats{Docs: m.stats.Docs, AvgLen: m.stats.AvgLen, DF: map[string]int{}}
	for _, term := range q.Vocabulary() {
		if n := m.stats.DF[term]; n > 0 {
			asked.DF[term] = n
		}
	}
	for _, begin := range q.Prefixes(asked) {
		for term, n := range m.stats.DF {
			if strings.HasPrefix(term, begin) {
				asked.DF[term] = n
			}
		}
	}
	terms := Terms(q, asked)
	return rank(terms, asked, m.candidates(terms), judgedNow(), m.tuning)
}

// candidates returns at most 200 items, those with the rarest terms first.
func (m *memory) candidates(terms []Term) []Candidate {
	var found []Candidate
	has := map[string]bool{}
	for _, t := range terms {
		for _, c := range m.items {
			if c.Counts[t.Text] > 0 && !has[c.ID] && len(found) < 200 {
				has[c.ID] = true
				found = append(found, c)
			}
		}
	}
	return found
}

// recall runs a query to its end and returns the ids.
func (m *memory) recall(utterance string) []string {
	p := newPicker(Limits{}, m.tuning)
	p.take(m.rank(utterance))
	ids := make([]string, 0, DefaultItems)
	for _, r := range p.selection.Items {
		ids = append(ids, r.ID)
	}
	return ids
}

// plainBM25 is what recall is compared with: words in lower case, BM25 over all of
// them, the best five.
func plainBM25(items []judgedItem) func(string) []string {
	words := func(s string) []string {
		return strings.FieldsFunc(strings.ToLower(s), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	}
	df, docs, total := map[string]int{}, make([]map[string]int, len(items)), 0
	lengths := make([]int, len(items))
	for i, it := range items {
		docs[i] = map[string]int{}
		for _, w := range words(it.Text) {
			docs[i][w]++
			lengths[i]++
		}
		total += lengths[i]
		for w := range docs[i] {
			df[w]++
		}
	}
	return func(query string) []string {
		var found []Scored
		for i, it := range items {
			var sum float64
			for _, w := range words(query) {
				n, norm := float64(docs[i][w]), 0.25+0.75*float64(lengths[i])*float64(len(items))/float64(total)
				idf := math.Log1p((float64(len(items)-df[w]) + 0.5) / (float64(df[w]) + 0.5))
				sum += idf * n * 2.2 / (n + 1.2*norm)
			}
			if sum > 0 {
				found = append(found, Scored{Candidate: Candidate{ID: it.ID}, Score: sum})
			}
		}
		slices.SortFunc(found, func(a, b Scored) int { return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ID, b.ID)) })
		var ids []string
		for _, f := range found[:min(len(found), DefaultItems)] {
			ids = append(ids, f.ID)
		}
		return ids
	}
}

// figures are what a part of the set says of a way to recall.
type figures struct {
	// recall is the mean share of the relevant items, at most five, that came; rank
	// the mean reciprocal rank of the first that is needed; gain the normalised
	// discounted cumulative gain; precision the share of relevant items in what came.
	recall, rank, gain, precision float64
	// quiet is the share of the queries without relevant items that brought nothing.
	quiet float64
}

// judge runs the queries and calculates the figures.
func judge(queries []judgedQuery, recall func(string) []string) figures {
	var f figures
	var asked, silent, answered float64
	for _, q := range queries {
		ids := recall(q.Text)
		if len(q.Relevant) == 0 {
			silent++
			if len(ids) == 0 {
				f.quiet++
			}
			continue
		}
		asked++
		found, rank, gain := judgeOne(q.Relevant, ids)
		f.recall += found / float64(min(DefaultItems, len(q.Relevant)))
		f.rank += rank
		f.gain += gain
		if len(ids) > 0 {
			answered++
			f.precision += found / float64(len(ids))
		}
	}
	return figures{
		recall: f.recall / asked, rank: f.rank / asked, gain: f.gain / asked,
		precision: f.precision / max(1, answered), quiet: f.quiet / silent,
	}
}

// judgeOne returns how many relevant items came, the reciprocal rank of the first that
// is needed, and the gain.
func judgeOne(relevant map[string]int, ids []string) (found, rank, gain float64) {
	discounted := func(grade, place int) float64 { return (math.Exp2(float64(grade)) - 1) / math.Log2(float64(place+2)) }
	for i, id := range ids {
		if grade := relevant[id]; grade > 0 {
			found++
			gain += discounted(grade, i)
			if grade == 2 && rank == 0 {
				rank = 1 / float64(i+1)
			}
		}
	}
	grades := make([]int, 0, len(relevant))
	for _, grade := range relevant {
		grades = append(grades, grade)
	}
	slices.Sort(grades)
	slices.Reverse(grades)
	var ideal float64
	for i, grade := range grades[:min(DefaultItems, len(grades))] {
		ideal += discounted(grade, i)
	}
	return found, rank, gain / ideal
}

func (f figures) String() string {
	return fmt.Sprintf("%.3f | %.3f | %.3f | %.3f | %.2f", f.recall, f.rank, f.gain, f.precision, f.quiet)
}

// below names the first figure that is less than a floor.
func (f figures) below(floor figures) string {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"recall@5", f.recall, floor.recall},
		{"MRR", f.rank, floor.rank},
		{"nDCG@5", f.gain, floor.gain},
		{"precision", f.precision, floor.precision},
		{"quiet", f.quiet, floor.quiet},
	} {
		if c.got < c.want {
			return fmt.Sprintf("%s is %.3f, want at least %.3f", c.name, c.got, c.want)
		}
	}
	return ""
}

// TestRetrieval judges recall by the labelled set. With -v it prints the figures of
// plain BM25, of what ships, and of what ships without each of its ideas.
func TestRetrieval(t *testing.T) {
	t.Parallel()
	items := readLines[judgedItem](t, "items.jsonl")
	parts := []struct {
		name    string
		queries []judgedQuery
		floor   figures
	}{
		{"development", readLines[judgedQuery](t, "development.jsonl"), figures{0.78, 0.84, 0.81, 0.51, 0.8}},
		{"held-out", readLines[judgedQuery](t, "held_out.jsonl"), figures{0.82, 0.82, 0.82, 0.55, 0.9}},
	}
	without := func(change func(*tuning)) func(string) []string {
		with := tuned()
		change(&with)
		return newMemory(t, items, with).recall
	}
	ways := []struct {
		name   string
		recall func(string) []string
	}{
		{"plain BM25", plainBM25(items)},
		{"what ships", without(func(*tuning) {})},
		{"without stems", without(func(w *tuning) { w.stems = false })},
		{"without the prior of 50 items", without(func(w *tuning) { w.prior = 0 })},
		{"without words of talk", without(func(w *tuning) { w.talk = 0 })},
		{"without more for the first word", without(func(w *tuning) { w.lead = 0 })},
		{"without guessing at misspelt words", without(func(w *tuning) { w.guess = 0 })},
		{"without recency", without(func(w *tuning) { w.recency = 0 })},
		{"without use", without(func(w *tuning) { w.use = 0 })},
		{"without a need for evidence", without(func(w *tuning) { w.evidence = 0 })},
		{"without a cut of the tail", without(func(w *tuning) { w.tail = 0 })},
	}
	for _, part := range parts {
		var table strings.Builder
		fmt.Fprintf(&table, "%s: %d items, %d queries\n\n", part.name, len(items), len(part.queries))
		table.WriteString("| | recall@5 | MRR | nDCG@5 | precision | quiet |\n|---|---|---|---|---|---|\n")
		for _, way := range ways {
			f := judge(part.queries, way.recall)
			fmt.Fprintf(&table, "| %s | %s |\n", way.name, f)
			if low := f.below(part.floor); way.name == "what ships" && low != "" {
				t.Errorf("%s: %s", part.name, low)
			}
		}
		t.Log(table.String())
	}
}

// TestRetrievalByKind prints what ships by language and by kind of query.
func TestRetrievalByKind(t *testing.T) {
	t.Parallel()
	m := newMemory(t, readLines[judgedItem](t, "items.jsonl"), tuned())
	groups := map[string][]judgedQuery{}
	for _, name := range []string{"development.jsonl", "held_out.jsonl"} {
		for _, q := range readLines[judgedQuery](t, name) {
			if len(q.Relevant) > 0 {
				groups["language "+q.Lang] = append(groups["language "+q.Lang], q)
				groups["kind "+q.Kind] = append(groups["kind "+q.Kind], q)
			}
		}
	}
	names := make([]string, 0, len(groups))
	for name := range groups {
		names = append(names, name)
	}
	slices.Sort(names)
	var table strings.Builder
	table.WriteString("\n| | queries | recall@5 | MRR |\n|---|---|---|---|\n")
	for _, name := range names {
		f := judge(groups[name], m.recall)
		fmt.Fprintf(&table, "| %s | %d | %.3f | %.3f |\n", name, len(groups[name]), f.recall, f.rank)
		// Whoever asks in the words of an item finds it, in whatever language.
		if strings.HasPrefix(name, "language ") && f.recall < 0.6 {
			t.Errorf("%s: recall@5 is %.3f", name, f.recall)
		}
		if name == "kind typo" && f.recall < 0.75 {
			t.Errorf("misspelt words: recall@5 is %.3f", f.recall)
		}
	}
	t.Log(table.String())
}
