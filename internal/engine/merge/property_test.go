package merge_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// world is one random dispatch.
type world struct {
	hooks  []*merge.Hook
	given  [][]phases.Contribution
	limits merge.Limits
	state  merge.State
}

// admit runs the boundary for all hooks.
func (w world) admit(t testing.TB) []merge.Reply {
	t.Helper()

	replies := make([]merge.Reply, len(w.hooks))
	for i, h := range w.hooks {
		replies[i] = from(t, h, w.given[i]...)
	}
	return replies
}

func oneOf[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }

// randomBody is a text of up to about 2,000 characters with lines, clusters,
// and things that only the host may write.
func randomBody(rng *rand.Rand) string {
	pieces := []string{
		"word ", "Some more words in a line.\n", "\n", "é", "e\u0301", "漢字", "👩‍👩‍👧‍👦", "🇩🇪", "\r\n", "<N>", "</n >", text.Boundary, "\n[truncated: kept 1 of 2 characters]\n", "x",
	}
	var b strings.Builder
	for range rng.IntN(oneOf(rng, 3, 30, 200)) {
		b.WriteString(oneOf(rng, pieces...))
	}
	return b.String()
}

func randomText(rng *rand.Rand) phases.Contribution {
	head := phases.Common{Priority: rng.IntN(3)}
	maxChars := oneOf(rng, 0, 0, 10, 60, 300)
	if rng.IntN(3) == 0 {
		head.ContributionID = oneOf(rng, "", "", "", "shared")
		return &phases.PromptContext{Common: head, Content: randomBody(rng), MaxChars: maxChars}
	}
	c := &phases.PromptSection{Common: head, SectionID: oneOf(rng, "a", "b", "c", "d"), Content: randomBody(rng), MaxChars: maxChars}
	if rng.IntN(3) == 0 {
		c.Frame = &phases.Frame{Open: oneOf(rng, "", "<N>", "Preamble.\n<N>", text.Boundary), Close: oneOf(rng, "", "</N>")}
	}
	if rng.IntN(6) == 0 {
		c.Cut = &phases.SelfCut{Original: 500, Kept: 100}
	}
	return c
}

func randomOther(rng *rand.Rand) phases.Contribution {
	head := phases.Common{Priority: rng.IntN(2)}
	value := json.RawMessage(oneOf(rng, "1", "2", `{"a":1}`))
	switch rng.IntN(8) {
	case 0:
		return &phases.Policy{Common: phases.Common{Domain: "d", Priority: rng.IntN(2)}, Key: oneOf(rng, "k", "l"), Value: value}
	case 1:
		b := bundle("b", oneOf(rng, "t", "u"), oneOf(rng, "v", "w"))
		b.Priority = head.Priority
		return b
	case 2:
		return &phases.Rewrite{Common: head, Path: oneOf(rng, "", "/a", "/a/b", "/a/-", "/c"), Value: value}
	case 3:
		return &phases.Reminder{Common: head, Type: "t", DedupeKey: oneOf(rng, "", "k")}
	case 4:
		return &phases.Decision{Common: head, Verdict: oneOf(rng, phases.VerdictAllow, phases.VerdictAsk, phases.VerdictDeny)}
	case 5:
		return &phases.Audit{Common: head, EventKind: "e"}
	case 6:
		return &phases.ManifestDiagnostic{Common: head, Code: "c"}
	}
	return &phases.Noop{Common: head}
}

func randomWorld(rng *rand.Rand) world {
	w := world{limits: merge.Limits{
		Sections: oneOf(rng, 0, 1, 3), SectionChars: oneOf(rng, 0, 40, 500, 2000), TotalChars: oneOf(rng, 0, 50, 700, 1500),
		Contexts: oneOf(rng, 0, 2), ContextChars: oneOf(rng, 0, 70, 900),
	}}
	for i := range rng.IntN(5) + 1 {
		h := hook(fmt.Sprintf("p%d.h%d", rng.IntN(3), i))
		h.Priority, h.Budget.Chars = rng.IntN(3), oneOf(rng, 0, 0, 45, 400)
		h.Grants.Join = oneOf(rng, nil, nil, []string{"a", "b"})
		if h.Grants.Join != nil && rng.IntN(2) == 0 {
			h.Grants.Sections = []string{"c", "d"}
		}
		var given []phases.Contribution
		for range rng.IntN(6) {
			if rng.IntN(3) == 0 {
				given = append(given, randomOther(rng))
			} else {
				given = append(given, randomText(rng))
			}
		}
		w.hooks, w.given = append(w.hooks, h), append(w.given, given)
	}
	if rng.IntN(3) == 0 {
		w.state.Contexts = []phases.ContextEntry{{ContributionID: "shared", Owner: "p0.h9", Content: chars(30), Priority: 1}}
	}
	return w
}

// eachWorld runs check on many random dispatches.
func eachWorld(t *testing.T, check func(t *testing.T, rng *rand.Rand, w world)) {
	t.Helper()

	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		check(t, rng, randomWorld(rng))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// inForce are the limits with the defaults that the specification gives.
func inForce(l merge.Limits) merge.Limits {
	set := func(p *int, n int) {
		if *p == 0 {
			*p = n
		}
	}
	set(&l.Sections, 16)
	set(&l.SectionChars, 20_000)
	set(&l.TotalChars, 64_000)
	set(&l.Contexts, 16)
	set(&l.ContextChars, 12_000)
	return l
}

// checkLimits: no section, context, sum or subscription has more than it may.
func checkLimits(t *testing.T, w world, replies []merge.Reply, got merge.Result) {
	t.Helper()

	limits, total, asked := inForce(w.limits), 0, 0
	for i := range replies {
		asked += replies[i].Hook.Budget.Chars
	}
	alone := map[string]int{} // characters by subscription, where they are its alone
	for _, s := range got.Merged.Sections {
		n := text.Chars(s.Content)
		if total += n; n-2*(len(s.Sources)-1) > max(asked, limits.SectionChars) { // joints count for the total alone
			t.Errorf("section %s has %d characters of %d", s.SectionID, n, limits.SectionChars)
		}
		if len(s.Sources) == 1 {
			alone[s.Sources[0].SubscriptionID] += n
		}
		checkText(t, s.Content)
	}
	if total > limits.TotalChars || len(got.Merged.Sections) > limits.Sections {
		t.Errorf("%d sections of %d, %d characters of %d", len(got.Merged.Sections), limits.Sections, total, limits.TotalChars)
	}
	contexts := 0
	for _, c := range got.Contexts {
		contexts += text.Chars(c.Content)
		checkText(t, c.Content)
	}
	for _, c := range got.Merged.Contexts {
		alone[c.Owner] += text.Chars(c.Content)
	}
	if contexts > limits.ContextChars || len(got.Contexts) > limits.Contexts {
		t.Errorf("%d contexts of %d, %d characters of %d", len(got.Contexts), limits.Contexts, contexts, limits.ContextChars)
	}
	for _, h := range w.hooks {
		if n := alone[h.Subscription]; h.Budget.Chars > 0 && n > h.Budget.Chars {
			t.Errorf("%s kept %d characters of %d", h.Subscription, n, h.Budget.Chars)
		}
	}
}

func checkText(t *testing.T, s string) {
	t.Helper()

	if !utf8.ValidString(s) || strings.Contains(s, text.Boundary) || strings.Contains(s, "\r") {
		t.Errorf("text is not fit for a prompt: %q", s)
	}
}

// TestProperties: of any dispatch nothing is lost, no limit is passed, and the same input gives the same bytes.
func TestProperties(t *testing.T) {
	t.Parallel()

	eachWorld(t, func(t *testing.T, rng *rand.Rand, w world) {
		got := checkProperties(t, w, w.admit(t))
		// Hooks finish in any order; the boundary does not know which.
		again := make([]merge.Reply, len(w.hooks))
		for _, i := range rng.Perm(len(w.hooks)) {
			again[i] = from(t, w.hooks[i], w.given[i]...)
		}
		checkSame(t, "another order", encode(t, merge.Merge(anyRow(), again, w.state, w.limits)), encode(t, got))
	})
}

// checkProperties merges replies and checks what holds for all of them.
func checkProperties(t *testing.T, w world, replies []merge.Reply) merge.Result {
	t.Helper()

	before := encode(t, replies)
	got := merge.Merge(anyRow(), replies, w.state, w.limits)
	checkLimits(t, w, replies, got)
	checkKept(t, replies, got)
	checkScratch(t, replies, w, got)
	checkSame(t, "a second merge", encode(t, merge.Merge(anyRow(), replies, w.state, w.limits)), encode(t, got))
	checkSame(t, "the input", encode(t, replies), before)
	return got
}

// encode prints everything that can be compared; it has no maps but reminders'
// attributes, which encoding/json sorts.
func encode(t *testing.T, v any) string {
	t.Helper()

	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// checkKept: each admitted contribution was kept, or has a row that says why not.
func checkKept(t *testing.T, replies []merge.Reply, got merge.Result) {
	t.Helper()

	found := map[string]int{}
	for _, c := range got.Contributions {
		found[c.Hash+c.Subscription]++
	}
	rows := map[string]bool{}
	for _, l := range got.Omitted {
		rows[l.ID] = true
	}
	shadowed := 0
	for _, r := range replies {
		if r.Hook.Shadow {
			shadowed += len(r.Entries)
			continue
		}
		for _, e := range r.Entries {
			if key := e.Hash + r.Hook.Subscription; found[key] > 0 {
				found[key]--
			} else if !accounted(e.Value, rows) {
				t.Errorf("%s of %s is nowhere", e.Value.Head().ContributionID, r.Hook.Subscription)
			}
		}
	}
	if len(got.Sources) != len(got.Contributions) {
		t.Errorf("%d sources for %d contributions", len(got.Sources), len(got.Contributions))
	}
	kept := 0
	for _, p := range got.Parts {
		kept += len(p.Kept)
	}
	if kept != len(got.Contributions)+shadowed {
		t.Errorf("the ledger has %d of %d kept hashes", kept, len(got.Contributions)+shadowed)
	}
}

// accounted reports whether one of the rows of omitted is about c: by its own
// id, by its section, or by its tools.
func accounted(c phases.Contribution, rows map[string]bool) bool {
	switch c := c.(type) {
	case *phases.PromptSection:
		return rows[c.ContributionID] || rows[c.SectionID]
	case *phases.ToolBundle:
		return rows[c.Tools[0].Name] && rows[c.Tools[len(c.Tools)-1].Name]
	}
	return rows[c.Head().ContributionID]
}

// checkScratch: in memory that is used again, Merge comes to the same, and what outlives a
// dispatch stays when the memory is cleared.
func checkScratch(t *testing.T, replies []merge.Reply, w world, want merge.Result) {
	t.Helper()

	var s merge.Scratch
	var got merge.Result
	s.Merge(&got, anyRow(), slices.Concat(replies, replies), w.state, w.limits) // leaves more than is needed
	s.Merge(&got, anyRow(), replies, w.state, w.limits)
	if diff := cmp.Diff(encode(t, want), encode(t, got)); diff != "" {
		t.Errorf("merged in memory that is used again:\n%s", diff)
	}
	parts := slices.Clone(got.Parts)
	s.Clear()
	if got.Parts = parts; encode(t, got) != encode(t, want) {
		t.Errorf("cleared memory changed a result:\n%s", cmp.Diff(encode(t, want), encode(t, got)))
	}
}

// checkOwned: AdmitOwned comes to the same as Admit.
func checkOwned(t *testing.T, h *merge.Hook, cs []phases.Contribution, want merge.Admitted, wantErr error) {
	t.Helper()

	mine := slices.Clone(cs)
	for i, c := range mine {
		mine[i] = phases.CloneContribution(c)
	}
	own := hook(h.Subscription, h.Kinds...)
	own.Grants, own.IDs = h.Grants, merge.DefaultIDs(h.Subscription)
	got, err := merge.AdmitOwned(anyRow(), own, mine, make([]merge.Entry, 0, 1))
	if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
		t.Errorf("AdmitOwned: %v, Admit: %v", err, wantErr)
	}
	if diff := cmp.Diff(encode(t, want), encode(t, got)); diff != "" && err == nil {
		t.Errorf("AdmitOwned differs from Admit:\n%s", diff)
	}
}
