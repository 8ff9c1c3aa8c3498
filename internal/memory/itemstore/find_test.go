package itemstore_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// sentence is a text of common and rare words, in several scripts.
func sentence(r *rand.Rand) string {
	common := strings.Fields("the user build deploy server please database tests Große Maßnahme naïve café パスワード設定 東京都 база данных order_id getUserName C++ don't")
	words := make([]string, 3+r.IntN(12))
	for n := range words {
		if words[n] = common[r.IntN(len(common))]; r.IntN(3) == 0 {
			words[n] = fmt.Sprint("word", r.IntN(400))
		}
	}
	return strings.Join(words, " ")
}

// randomNew is an item in one of a few scopes.
func randomNew(r *rand.Rand) itemstore.Item {
	n := fact(sentence(r))
	n.Category = turnpolicy.Categories()[r.IntN(6)]
	if n.Category == turnpolicy.Instruction && r.IntN(4) > 0 {
		n.Category = turnpolicy.Task
	}
	if r.IntN(2) == 0 {
		n.Scope = []itemstore.Scope{itemstore.ScopeThread, itemstore.ScopeAgent, itemstore.ScopeUser}[r.IntN(3)]
		n.ScopeID = []string{"a", "b"}[r.IntN(2)]
	}
	if r.IntN(5) == 0 {
		n.Slot = fmt.Sprint("slot ", r.IntN(8))
	}
	return n
}

// TestOneOrder does the same on both databases. All answers are the same, to the byte.
func TestOneOrder(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	var answers [2][]string
	for n, dsn := range []string{storetest.SQLite(t), shared.NewDSN(t)} {
		c := newClock()
		s := open(t, dsn, fixed(c))
		r := rand.New(rand.NewPCG(3, 5))
		say := func(v any, err error) {
			t.Helper()
			data, jsonErr := json.Marshal(v)
			if err != nil || jsonErr != nil {
				t.Fatal(err, jsonErr)
			}
			answers[n] = append(answers[n], string(data))
		}
		for range rounds(10, 40) {
			b := itemstore.Batch{WorkspaceID: []string{"w", "w", "v"}[r.IntN(3)]}
			for range 1 + r.IntN(40) {
				b.Items = append(b.Items, randomNew(r))
			}
			c.move(time.Duration(r.IntN(90)) * time.Hour)
			outcomes, err := s.Remember(t.Context(), b)
			say(outcomes, err)
			view := itemstore.View{WorkspaceID: "w", ThreadID: "a", AgentID: "b", UserID: "a", UserEverywhere: r.IntN(2) == 0}
			view.AllScopes = !view.UserEverywhere && r.IntN(2) == 0
			found, err := s.Recall(t.Context(), view, recall.Read(sentence(r)+" buidl servre"), c.Now())
			say(found, err)
			hits, err := search(t.Context(), s, view, sentence(r), 20)
			say(hits, err)
			var used []string
			for _, h := range found[:min(5, len(found))] {
				used = append(used, h.ID)
			}
			say(nil, s.Used(t.Context(), view, used, c.Now()))
			if len(used) > 0 && r.IntN(4) == 0 {
				removed, err := s.Forget(t.Context(), view, used[:1])
				slices.Sort(removed.IDs)
				say(removed, err)
			}
		}
		items, next, err := s.List(t.Context(), everything("w"), itemstore.Filter{History: true}, itemstore.Page{Limit: itemstore.MaxPage})
		say(items, err)
		say(next, nil)
		stats, err := s.Stats(t.Context(), everything("w"))
		stats.Bytes = 0
		say(stats, err)
		checkIndex(t, dsn)
	}
	if diff := cmp.Diff(answers[0], answers[1]); diff != "" {
		t.Errorf("(-sqlite +postgres):\n%.4000s", diff)
	}
}

// TestCandidates: a recall ranks at most 120 items, those of rare terms first, of a
// common one the newest; pinned ones come besides.
func TestCandidates(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		s := open(t, dsn, itemstore.Options{})
		var rare, newest []string
		for n := range 5 {
			var items []itemstore.Item
			for m := range 60 {
				text := fmt.Sprintf("common item%d", n*60+m)
				if m == 7 {
					text += " rarity"
					rare = append(rare, text)
				} else {
					newest = append(newest, text)
				}
				items = append(items, fact(text))
			}
			rule := fact(fmt.Sprint("rule", n))
			rule.Category = turnpolicy.Instruction
			remember(t, s, append(items, rule)...)
		}
		again := newest[3]
		remember(t, s, fact(again)) // said again, it is the newest
		found, err := s.Recall(t.Context(), itemstore.View{WorkspaceID: "w"}, recall.Read("common rarity"), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		var pinned int
		got := map[string]bool{}
		for _, r := range found {
			if got[r.Text] = true; r.Pinned {
				pinned++
			}
		}
		want := map[string]bool{again: true}
		for _, text := range slices.Concat(rare, newest[len(newest)-114:], []string{"rule0", "rule1", "rule2", "rule3", "rule4"}) {
			want[text] = true
		}
		if diff := cmp.Diff(want, got); diff != "" || pinned != 5 || len(found) != 125 {
			t.Errorf("%d pinned, %d candidates (-want +got):\n%s", pinned, len(found), diff)
		}
		if !strings.Contains(found[5].Text, "rarity") {
			t.Errorf("the best is %q", found[5].Text)
		}
	})
}

// TestMisspelt: a word that nobody in view has said finds what is spelt like it, and is never taken for another one when
// something is forgotten.
func TestMisspelt(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		s := open(t, dsn, itemstore.Options{})
		said := []string{
			"the retention of invoices is ten years", "the schema of memory", "a legal product", "another product", "one produkt", "a clean rest", "the backup",
		}
		for _, text := range said {
			remember(t, s, fact(text))
		}
		remember(t, s, of(itemstore.ScopeUser, "bob", fact("a retentive memory")))
		write(t, s, itemstore.Batch{WorkspaceID: "v", Items: []itemstore.Item{fact("databases of others")}})
		v := itemstore.View{WorkspaceID: "w"}
		for text, want := range map[string]string{
			"retenion of incvoices": said[0],
			"incvoices":             said[0], // a letter more
			"shcema":                "",      // the first two letters must be right
			"produckt":              said[3], // two are as near: the one that more items have
			"restarting":            "",      // a short term is near to too much
			"clear":                 "",      // so is a short word
			"bakcup":                said[6],
			"databse":               "", // of another workspace
		} {
			found, err := s.Recall(t.Context(), v, recall.Read(text), time.Now())
			got := ""
			if len(found) > 0 {
				got = found[0].Text
			}
			if got != want || err != nil {
				t.Errorf("%q: %q found, error %v", text, got, err)
			}
			if hits, _, err := s.Matches(t.Context(), v, text, time.Now()); len(hits) > 0 && text != "retenion of incvoices" || err != nil {
				t.Errorf("%q: would be forgotten: %v, %v", text, hits, err)
			}
		}
		hits, _, err := s.Search(t.Context(), v, "incvoices", 5, time.Now())
		if len(hits) != 1 || err != nil {
			t.Errorf("search: %v, %v", hits, err)
		}
	})
}
