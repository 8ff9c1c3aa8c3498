package itemstore_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// tenantItems are what workspace "w" remembers: few items in all of its scopes.
func tenantItems() []itemstore.Item {
	var items []itemstore.Item
	for n, text := range []string{
		"Katharina leads the billing team", "our database is PostgreSQL 17", "we deploy on Tuesdays", "the staging server is called kiwi",
		"invoices are sent on the first of the month", "order_id is a UUID", "der Vertrag mit Müller läuft bis Mai", "東京オフィスは九時に開く",
	} {
		items = append(items, fact(text), of(itemstore.ScopeUser, "ann", fact("ann says: "+text)), of(itemstore.ScopeUser, "bob", fact(fmt.Sprint("bob ", n, " knows ", text))))
	}
	rule := fact("always answer in Dutch")
	rule.Category = turnpolicy.Instruction
	return append(
		items, rule, inSlot("city", "the office is in Bern"), of(itemstore.ScopeThread, "t", fact("this thread is about the migration of invoices")),
		of(itemstore.ScopeAgent, "a", fact("the agent reviews database migrations")),
	)
}

// tenantQuestions are what it asks: plainly, misspelt, of what nobody there has said. Short runs
// ask every second one.
func tenantQuestions() []string {
	var list []string
	for n, q := range []string{
		"Who is Katharina?", "Which database is it?", "What is order_id?", "When do we deploy?", "Wie lange läuft der Vertrag mit Müller?",
		"What is the staging server called?", "東京オフィスはいつ開く", "When are invoices sent?", "What about zanzibar and xylophones?", "Where is the office?",
		"", "Who reviews the migrations?",
	} {
		if n%rounds(2, 1) != 0 {
			continue
		}
		list = append(list, "please tell me: "+q+" katarina databse invoces migraton")
		if storetest.Long() {
			list = append(list, q, strings.ToUpper(q), q+" "+q+" of the and the")
		}
	}
	return append(list, "Katharnia", "Katharinna", "kathrina databsae", strings.Repeat("Katharina zanzibar ", 400))
}

// tenantViews are how it asks.
func tenantViews() []itemstore.View {
	return []itemstore.View{
		{WorkspaceID: "w"},
		{WorkspaceID: "w", ThreadID: "t", AgentID: "a", UserID: "ann"},
		{WorkspaceID: "w", UserID: "bob"},
		{WorkspaceID: "w", UserID: "bob", UserEverywhere: true},
		everything("w"),
	}
}

// answers is all that a workspace can learn of a store, to the byte.
func answers(t *testing.T, s *itemstore.Store, now time.Time) []string {
	t.Helper()
	var all []string
	say := func(v any, err error) {
		t.Helper()
		data, jsonErr := json.Marshal(v)
		if err != nil || jsonErr != nil {
			t.Fatal(err, jsonErr)
		}
		all = append(all, string(data))
	}
	for _, v := range tenantViews() {
		for _, q := range tenantQuestions() {
			say(s.Recall(t.Context(), v, recall.Read(q), now))
		}
		say(search(t.Context(), s, v, tenantQuestions()[3], 100))
		items, next, err := s.List(t.Context(), v, itemstore.Filter{History: true}, itemstore.Page{Limit: 10})
		say(items, err)
		say(next, nil)
		stats, err := s.Stats(t.Context(), v)
		stats.Bytes = 0 // of the database, for its operator
		say(stats, err)
	}
	return all
}

// neighbour is a batch of a workspace that is made to be noticed in another one.
func neighbour(r *rand.Rand, workspace string) itemstore.Batch {
	b := itemstore.Batch{WorkspaceID: workspace}
	for range itemstore.MaxBatch {
		words := []string{}
		for range 1 + r.IntN(40) {
			words = append(words, []string{
				"Katharina", "Katharine", "Katarina", "databse", "database", "invoces", "invoice", "migraton", "zanzibar", "kiwi", "Müller", "東京", "order_id", "please", "the",
				fmt.Sprint("word", r.IntN(3000)),
			}[r.IntN(16)])
		}
		n := fact(strings.Join(words, " "))
		switch r.IntN(5) {
		case 0:
			n.Text = strings.Repeat("Katharina ", itemstore.MaxText/10)[:itemstore.MaxText-1-r.IntN(700)]
		case 1:
			n.Text = "C" // next to nothing
		case 2:
			n.Category = turnpolicy.Instruction
		}
		if r.IntN(2) == 0 { // the names of w's own scopes
			n = of([]itemstore.Scope{itemstore.ScopeUser, itemstore.ScopeThread, itemstore.ScopeAgent}[r.IntN(3)], []string{"ann", "t", "a"}[r.IntN(3)], n)
		}
		if r.IntN(8) == 0 {
			n.Slot = "city"
		}
		b.Items = append(b.Items, n)
	}
	return b
}

// TestOthersChangeNothing: what other workspaces remember, import, use and forget
// changes no answer of a workspace: no item, no order, no score.
func TestOthersChangeNothing(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		c := newClock()
		s := open(t, dsn, fixed(c))
		remember(t, s, tenantItems()...)
		want := answers(t, s, c.Now())
		if len(want) < rounds(65, 250) || !strings.Contains(want[0], "Katharina leads") {
			t.Fatalf("%d answers, the first %s", len(want), want[0])
		}
		same := func(after string) {
			t.Helper()
			if diff := cmp.Diff(want, answers(t, s, c.Now())); diff != "" {
				t.Fatalf("after %s (-before +after):\n%.3000s", after, diff)
			}
		}
		r := rand.New(rand.NewPCG(21, 22))
		for _, workspace := range []string{"v", "", "w2"} {
			for range rounds(1, 4) {
				write(t, s, neighbour(r, workspace))
			}
			same("batches of " + workspace)
		}
		copied := exported(t, s)
		for n := range copied {
			copied[n].WorkspaceID = "copy"
			if copied[n].ScopeID == "bob" {
				copied[n].ScopeID = "rob" // bob sees his own items everywhere
			}
		}
		importAll(t, s, copied)
		same("an import of its own items by another")
		for _, workspace := range []string{"v", "copy", ""} {
			var ids []string
			for _, i := range list(t, s, everything(workspace)) {
				ids = append(ids, i.ID)
			}
			if err := s.Used(t.Context(), everything(workspace), ids, c.Now()); err != nil {
				t.Fatal(err)
			}
			same("uses in " + workspace)
			removed, err := s.Forget(t.Context(), everything(workspace), ids)
			if err != nil || len(removed.IDs) < len(ids) || removed.Lingering != nil {
				t.Fatal(err, removed)
			}
			same("forgetting " + workspace)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dsn, fixed(c))
		same("opening again")
		checkIndex(t, dsn)
	})
}
