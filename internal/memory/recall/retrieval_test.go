package recall_test

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

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// judgedItem is a line of testdata/retrieval/items.jsonl.
type judgedItem struct {
	ID, Text, Updated, Used string
	Uses                    int
}

// judgedQuery is a line of development.jsonl or held_out.jsonl. Relevant has the
// grades: 2 for an item that is needed, 1 for one that helps.
type judgedQuery struct {
	Text     string
	Relevant map[string]int
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

// recalling stores items, and returns what a recall brings: their ids.
func recalling(t *testing.T, items []judgedItem) func(text string) []string {
	t.Helper()
	day := func(s string) (at time.Time) {
		if s != "" {
			var err error
			if at, err = time.Parse(time.DateOnly, s); err != nil {
				t.Fatal(err)
			}
		}
		return at
	}
	s, err := itemstore.Open(t.Context(), storetest.SQLite(t), itemstore.Options{Now: judgedNow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	ids := map[string]string{} // by the text, which the store keeps
	_, err = s.Import(t.Context(), func(yield func(itemstore.Item, error) bool) {
		for _, it := range items {
			ids[it.Text] = it.ID
			item := itemstore.Item{
				WorkspaceID: "w", Scope: itemstore.ScopeWorkspace, Category: turnpolicy.Factual, Source: itemstore.SourceTurn, Text: it.Text,
				CreatedAt: day(it.Updated), UpdatedAt: day(it.Updated), LastUsedAt: day(it.Used), Uses: it.Uses,
			}
			if !yield(item, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) []string {
		found, err := s.Recall(t.Context(), itemstore.View{WorkspaceID: "w"}, recall.Read(text), judgedNow())
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]string{}
		for _, r := range found {
			texts[r.ID] = r.Text
		}
		brought := []string{}
		for _, r := range recall.Pick(found).Items {
			brought = append(brought, ids[texts[r.ID]])
		}
		return brought
	}
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
		f.recall += found / float64(min(5, len(q.Relevant)))
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
	parts := []struct {
		name    string
		queries []judgedQuery
		floor   figures
	}{
		{"development", readLines[judgedQuery](t, "development.jsonl"), figures{0.78, 0.84, 0.51, 0.8}},
		{"held-out", readLines[judgedQuery](t, "held_out.jsonl"), figures{0.82, 0.82, 0.55, 0.9}},
	}
	brings := recalling(t, readLines[judgedItem](t, "items.jsonl"))
	for _, part := range parts {
		f := judge(part.queries, brings)
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
			brings := recalling(t, all[:n])
			for _, c := range []struct{ asked, want string }{
				{"Which editor do I use?", "editor"},
				{"what is the port of the staging database", "port"},
				{"Was veröffentlichen wir am Montag?", "release"},
				{"什么时候发布新版本?", "zh"},
			} {
				has := slices.ContainsFunc(all[:n], func(it judgedItem) bool { return it.ID == c.want })
				if got := brings(c.asked); has && !slices.Contains(got, c.want) {
					t.Errorf("%q brings %q, want %q among them", c.asked, got, c.want)
				}
			}
			for _, talk := range []string{"Thanks!", "Could you please do it?", "What is it in the end?", "谢谢你", "Und was ist mit dem?"} {
				if got := brings(talk); len(got) != 0 {
					t.Errorf("%q brings %q", talk, got)
				}
			}
		})
	}
}
