package recall

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
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
	items []Candidate
	stats Stats
}

// newMemory indexes items.
func newMemory(tb testing.TB, items []judgedItem) *memory {
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
	m := &memory{stats: Stats{Docs: len(items), DF: map[string]int{}}}
	total := 0
	for _, it := range items {
		counts, length := Index(it.Text)
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
	q := Read(utterance)
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
	return Rank(terms, asked, m.candidates(terms), judgedNow())
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
	ids := make([]string, 0, maxItems)
	for _, r := range Pick(m.rank(utterance)).Items {
		ids = append(ids, r.ID)
	}
	return ids
}

// figures are the mean share of the relevant items, at most five, that came; the mean reciprocal rank of the first that is
// needed; the share of relevant items in what came; and the share of the queries without relevant items that brought nothing.
type figures struct{ recall, rank, precision, quiet float64 }

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
		var found, rank float64
		for i, id := range ids {
			if q.Relevant[id] > 0 {
				found++
			}
			if q.Relevant[id] == 2 && rank == 0 {
				rank = 1 / float64(i+1)
			}
		}
		asked++
		f.recall += found / float64(min(maxItems, len(q.Relevant)))
		f.rank += rank
		if len(ids) > 0 {
			answered++
			f.precision += found / float64(len(ids))
		}
	}
	return figures{f.recall / asked, f.rank / asked, f.precision / max(1, answered), f.quiet / silent}
}

// TestRetrieval judges recall by the labelled set, and prints its figures with -v.
func TestRetrieval(t *testing.T) {
	t.Parallel()
	items := readLines[judgedItem](t, "items.jsonl")
	parts := []struct {
		name    string
		queries []judgedQuery
		floor   figures
	}{
		{"development", readLines[judgedQuery](t, "development.jsonl"), figures{0.78, 0.84, 0.51, 0.8}},
		{"held-out", readLines[judgedQuery](t, "held_out.jsonl"), figures{0.82, 0.82, 0.55, 0.9}},
	}
	m := newMemory(t, items)
	for _, part := range parts {
		f := judge(part.queries, m.recall)
		t.Logf("%s, %d queries: %+v", part.name, len(part.queries), f)
		if f.recall < part.floor.recall || f.rank < part.floor.rank || f.precision < part.floor.precision || f.quiet < part.floor.quiet {
			t.Errorf("%s: %+v, want at least %+v", part.name, f, part.floor)
		}
	}
}

// TestSmallStores: a store of a few items has no statistics worth the name, and yet
// finds what was said and says nothing to small talk.
func TestSmallStores(t *testing.T) {
	t.Parallel()
	all := []judgedItem{
		{ID: "editor", Text: "The user's favourite editor is Helix."},
		{ID: "port", Text: "The staging database listens on port 5433."},
		{ID: "answers", Text: "Please keep the answers short, and do it in German."},
		{ID: "release", Text: "Wir veröffentlichen jeden zweiten Montag."},
		{ID: "zh", Text: "每周四晚上发布新版本。"},
	}
	for n := 1; n <= len(all); n++ {
		t.Run(fmt.Sprint(n, " items"), func(t *testing.T) {
			t.Parallel()
			m := newMemory(t, all[:n])
			for _, c := range []struct{ asked, want string }{
				{"Which editor do I use?", "editor"},
				{"what is the port of the staging database", "port"},
				{"Was veröffentlichen wir am Montag?", "release"},
				{"什么时候发布新版本?", "zh"},
			} {
				has := slices.ContainsFunc(all[:n], func(it judgedItem) bool { return it.ID == c.want })
				if got := m.recall(c.asked); has && !slices.Contains(got, c.want) {
					t.Errorf("%q brings %q, want %q among them", c.asked, got, c.want)
				}
			}
			for _, talk := range []string{"Thanks!", "Could you please do it?", "What is it in the end?", "谢谢你", "Und was ist mit dem?"} {
				if got := m.recall(talk); len(got) != 0 {
					t.Errorf("%q brings %q", talk, got)
				}
			}
		})
	}
}
