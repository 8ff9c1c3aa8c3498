package merge_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/phases"
)

// fuzzReply is one hook and what it answers, as a fuzzer may write it.
type fuzzReply struct {
	Subscription  string               `json:"subscription"`
	Priority      int                  `json:"priority,omitempty"`
	Budget        phases.TextBudget    `json:"budget,omitzero"`
	Shadow        bool                 `json:"shadow,omitempty"`
	Grants        phases.Grants        `json:"grants,omitzero"`
	Contributions phases.Contributions `json:"contributions"`
}

// FuzzMerge sends whole dispatches of any hooks, grants and contributions through
// the boundary and merging: twice, the second time on top of what the first one
// came to. What is refused is refused as a whole and for a reason with a code;
// of what is admitted nothing is lost, no limit is passed, and the same input
// gives the same bytes.
func FuzzMerge(f *testing.F) {
	for _, seed := range mergeSeeds(f) {
		f.Add(seed, uint8(0), uint16(0), uint16(0), uint8(0), uint16(0))
		f.Add(seed, uint8(2), uint16(100), uint16(150), uint8(2), uint16(90))
	}
	f.Fuzz(func(t *testing.T, data []byte, sections uint8, sectionChars, totalChars uint16, contexts uint8, contextChars uint16) {
		var given []fuzzReply
		if json.Unmarshal(data, &given) != nil || len(given) > 8 {
			return
		}
		w := world{limits: merge.Limits{
			Sections: int(sections), SectionChars: int(sectionChars), TotalChars: int(totalChars), Contexts: int(contexts), ContextChars: int(contextChars),
		}}
		replies := refusing(t, &w, given)
		for range 2 {
			got := checkProperties(t, w, replies)
			checkOwners(t, got)
			w.state.Policies, w.state.Contexts = got.Policies, got.Contexts
		}
	})
}

// refusing runs the boundary for all hooks, and leaves out those whose replies it
// refuses. A subscription is in a dispatch once.
func refusing(t *testing.T, w *world, given []fuzzReply) []merge.Reply {
	t.Helper()

	var replies []merge.Reply
	seen := map[string]bool{}
	for i := range given {
		g := &given[i]
		if seen[g.Subscription] {
			continue
		}
		seen[g.Subscription] = true
		h := hook(g.Subscription, phases.Kinds()...)
		h.Priority, h.Budget, h.Shadow, h.Grants = g.Priority, g.Budget, g.Shadow, &g.Grants
		got, err := merge.Admit(anyRow(), h, g.Contributions)
		checkOwned(t, h, g.Contributions, got, err)
		if err != nil {
			if phases.CodeOf(err) != phases.CauseInvalidReply || len(got.Entries) > 0 {
				t.Errorf("refused with %v and %d entries", err, len(got.Entries))
			}
			continue
		}
		if n := len(got.Entries) + len(got.Dropped); n != len(g.Contributions) {
			t.Errorf("%d of %d contributions are admitted or dropped", n, len(g.Contributions))
		}
		w.hooks = append(w.hooks, h)
		replies = append(replies, merge.Reply{Hook: h, Entries: got.Entries, Dropped: got.Dropped})
	}
	return replies
}

// checkOwners: each slot has one owner, and only what was granted is there.
func checkOwners(t *testing.T, got merge.Result) {
	t.Helper()

	slots := map[string]bool{}
	take := func(slot string) {
		if slots[slot] {
			t.Errorf("the slot %q has two owners", slot)
		}
		slots[slot] = true
	}
	for _, s := range got.Merged.Sections {
		take("section " + s.SectionID)
	}
	for _, p := range got.Policies {
		take("policy " + p.Domain + "/" + p.Key)
	}
	for _, tool := range got.Merged.Tools {
		take("tool " + tool.Name)
	}
	for _, c := range got.Contexts {
		take("context " + c.ContributionID)
	}
}

// mergeSeeds are dispatches of every kind: the random worlds of the property tests,
// and what plugins of the repository send.
func mergeSeeds(f *testing.F) [][]byte {
	f.Helper()

	var seeds [][]byte
	for seed := range uint64(12) {
		w := randomWorld(rand.New(rand.NewPCG(seed, 11)))
		var given []fuzzReply
		for i, h := range w.hooks {
			given = append(given, fuzzReply{
				Subscription: h.Subscription, Priority: h.Priority, Budget: h.Budget, Shadow: seed == 3, Grants: *h.Grants, Contributions: w.given[i],
			})
		}
		data, err := json.Marshal(given)
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, data)
	}
	return slices.Concat(seeds, [][]byte{
		[]byte(`[]`),
		[]byte(`[{"subscription":"a.h","contributions":[{"kind":"noop"}]},{"subscription":"a.h","contributions":[]}]`),
		[]byte(`[{"subscription":"r.h","grants":{"contribute":["*"]},"contributions":[{"kind":"rewrite","path":"/a/b","value":1},{"kind":"rewrite","path":"/a","value":{}},{"kind":"reminder","type":"t","dedupe_key":"k"},{"kind":"background_job","job_kind":"j","payload":{}}]}]`),
	})
}
